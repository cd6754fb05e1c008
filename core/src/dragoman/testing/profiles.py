"""The column values that the inspector reports: as stored, and as many as asked for."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final

import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.model import Encoded, ProfileBudget, Request, RowStream, Scope, Table
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite
from dragoman.testing.catalog import TABLES, explain_difference, inspect
from dragoman.testing.tiers import capability

ROWS: Final = 2


def _count_rows(opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that collects the number of rows of each query that the inspector sends through the executor."""
    counts: list[int] = []
    answering: Callable[[Request], AbstractAsyncContextManager[RowStream]] = opened.executor.open

    async def count(batches: AsyncIterator[Sequence[Any] | Encoded]) -> AsyncIterator[Sequence[Any] | Encoded]:
        place = len(counts)
        counts.append(0)
        async for batch in batches:
            counts[place] += batch.count if isinstance(batch, Encoded) else len(batch)
            yield batch

    @asynccontextmanager
    async def open_and_count(request: Request) -> AsyncGenerator[RowStream]:
        async with answering(request) as stream:
            yield RowStream(stream.columns, count(stream.batches))

    monkeypatch.setattr(opened.executor, "open", open_and_count)
    return counts


async def _few(opened: OpenDatabase) -> list[Table]:
    """Return the relations of the sample, without the many similar ones."""
    names = frozenset(sample.stored_name(opened.dialect, name) for name in TABLES)
    return list((await opened.inspector.tables(Scope(names=names))).tables)


class ProfileCases(Suite):
    """Cases about the genres and the tracks, whose values are known."""

    @capability(Capability.STATISTICS)
    async def test_values_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        tables = await _few(opened)
        told = await opened.inspector.profiles(tables, ProfileBudget(sample=True))
        declared = Capability.STATISTICS in dialect.capabilities
        assert declared or not told, explain_difference("STATISTICS", declared, told)
        columns = {table.relation: {column.name for column in table.columns} for table in tables}
        for relation, profiles in told.items():
            unknown = {profile.name for profile in profiles} - columns[relation]
            assert not unknown, f"inspector.profiles() reported {sorted(unknown)}, which {relation} does not have."
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
            assert not wrong, f"{sample.GENRE}.name never held {sorted(wrong)}: report values as they are stored."
            if name.values and name.kind == "all":
                assert set(name.values) == there, f"kind 'all', and {sorted(there - set(name.values))} are missing."
            assert sum(name.fractions) <= 1.001, "The sum of the fractions of a column's values is more than 1."
        if note := profiles.get((sample.TRACK, "note")):
            assert note.null_fraction in (None, 1), (
                f"Every {sample.TRACK}.note is NULL; reported: {note.null_fraction}."
            )
            assert not note.values, f"Every {sample.TRACK}.note is NULL, and has the values {note.values}."

    @capability(Capability.STATISTICS)
    async def test_values_of_some_rows_are_not_told_as_all(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened, (sample.GENRE,))
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True, rows=1))
        for profile in (each for own in told.values() for each in own if each.name.lower() == "name"):
            assert profile.kind != "all" or set(profile.values) == {genre for _, genre in sample.GENRES}, (
                f"From one row of three, the values {profile.values} were reported as all values: "
                "pass `profile_columns(..., whole=...)` correctly."
            )

    @capability(Capability.STATISTICS)
    async def test_values_are_told_of_each_relation_that_was_asked_for(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened, (sample.GENRE, sample.TRACK))
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True))
        silent = {*tables} - {relation.name.lower() for relation in told}
        assert not (told and silent), (
            f"inspector.profiles() reported nothing about {sorted(silent)}: report every relation that it is given."
        )

    @capability(Capability.STATISTICS)
    async def test_no_more_rows_are_read_than_the_budget_has(
        self, opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tables = await inspect(opened, (sample.TRACK,))
        read = _count_rows(opened, monkeypatch)
        told = await opened.inspector.profiles(list(tables.values()), ProfileBudget(sample=True, rows=ROWS))
        sampled = [profile for profiles in told.values() for profile in profiles if profile.source == "sample"]
        looked = max((profile.rows or 0 for profile in sampled), default=0)
        assert not sampled or (looked <= ROWS and max(read, default=0) <= ROWS + 1), (
            f"ProfileBudget(rows={ROWS}), and {max([looked, *read])} rows of {sample.TRACK} were read: let the engine"
            " stop there."
        )

    @capability(Capability.STATISTICS)
    async def test_no_time_is_taken_that_the_budget_has_not(
        self, opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tables = await _few(opened)
        read = _count_rows(opened, monkeypatch)
        await opened.inspector.profiles(tables, ProfileBudget(sample=True, seconds=0.0))
        assert len(read) < len(tables) - 2, (
            f"ProfileBudget(seconds=0), and {len(read)} queries of {len(tables)} relations were sent: stop when the"
            " time is over."
        )

    @capability(Capability.STATISTICS)
    async def test_no_more_values_are_told_than_asked_for(self, opened: OpenDatabase) -> None:
        tables = await _few(opened)
        told = await opened.inspector.profiles(tables, ProfileBudget(sample=True, values=1))
        long = [p.name for profiles in told.values() for p in profiles if len(p.values) > 1]
        assert not long, f"ProfileBudget(values=1), and {long} have more; respect ProfileBudget.values."
