"""The values that the inspector tells of columns: as they stand in the rows, as many as asked for."""

from __future__ import annotations

from dragoman.dialect import Capability, Dialect
from dragoman.model import ProfileBudget, Scope, Table
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite
from dragoman.testing.catalog import TABLES, explain_difference, inspect
from dragoman.testing.tiers import capability


async def _few(opened: OpenDatabase) -> list[Table]:
    """The relations of the sample, without those that are only many."""
    names = frozenset(sample.stored_name(opened.dialect, name) for name in TABLES)
    return list((await opened.inspector.tables(Scope(names=names))).tables)


class ProfileCases(Suite):
    """Of the genres and the tracks, whose values are known."""

    @capability(Capability.STATISTICS)
    async def test_values_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        tables = await _few(opened)
        told = await opened.inspector.profiles(tables, ProfileBudget(sample=True))
        declared = Capability.STATISTICS in dialect.capabilities
        assert declared or not told, explain_difference("STATISTICS", declared, told)
        columns = {table.relation: {column.name for column in table.columns} for table in tables}
        for relation, profiles in told.items():
            unknown = {profile.name for profile in profiles} - columns[relation]
            assert not unknown, f"inspector.profiles() told of {sorted(unknown)}, which {relation} does not have."
            for profile in profiles:
                assert 0 <= (profile.null_fraction or 0) <= 1, f"null_fraction of {profile.name}: not from 0 to 1."
                assert len(set(profile.values)) == len(profile.values), f"{profile.name} has a value twice."
                assert all(isinstance(value, str) for value in profile.values), f"{profile.name}: values are text."

    @capability(Capability.STATISTICS)
    async def test_values_that_are_told_stand_in_the_rows(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened, (sample.GENRE, sample.TRACK))
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True))
        profiles = {(relation.name.lower(), each.name.lower()): each for relation, own in told.items() for each in own}
        if name := profiles.get((sample.GENRE, "name")):
            there = {genre for _, genre in sample.GENRES}
            wrong = set(name.values) - there
            assert not wrong, f"{sample.GENRE}.name never held {sorted(wrong)}: tell values as they are stored."
            if name.values and name.kind == "all":
                assert set(name.values) == there, f"kind 'all', and {sorted(there - set(name.values))} are missing."
            assert sum(name.fractions) <= 1.001, "The fractions of a column's values are more than 1 together."
        if note := profiles.get((sample.TRACK, "note")):
            assert note.null_fraction in (None, 1), f"Every {sample.TRACK}.note is NULL; told: {note.null_fraction}."
            assert not note.values, f"Every {sample.TRACK}.note is NULL, and has the values {note.values}."

    @capability(Capability.STATISTICS)
    async def test_values_of_some_rows_are_not_told_as_all(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened, (sample.GENRE,))
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True, rows=1))
        for profile in (each for own in told.values() for each in own if each.name.lower() == "name"):
            assert profile.kind != "all" or set(profile.values) == {genre for _, genre in sample.GENRES}, (
                f"Of one row of three the values {profile.values} came as all there are: pass"
                " `profile_columns(..., whole=...)` whether these are all rows."
            )

    @capability(Capability.STATISTICS)
    async def test_values_are_told_of_each_relation_that_was_asked_for(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened, (sample.GENRE, sample.TRACK))
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True))
        silent = {*tables} - {relation.name.lower() for relation in told}
        assert not (told and silent), (
            f"inspector.profiles() told nothing of {sorted(silent)}: tell of each relation that it is given."
        )

    @capability(Capability.STATISTICS)
    async def test_no_more_values_are_told_than_asked_for(self, opened: OpenDatabase) -> None:
        tables = await _few(opened)
        told = await opened.inspector.profiles(tables, ProfileBudget(sample=True, values=1))
        long = [p.name for profiles in told.values() for p in profiles if len(p.values) > 1]
        assert not long, f"ProfileBudget(values=1), and {long} have more; honour ProfileBudget.values."
