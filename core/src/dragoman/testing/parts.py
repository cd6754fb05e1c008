"""Parts of relations: rows that a role leaves out, and columns that it masks or hides, in every form of a query."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

import pytest

from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.dialect import Capability, Dialect
from dragoman.errors import ColumnNotFound, ConfigurationError, DragomanError, InvalidSql, QueryError, Unsupported
from dragoman.gateway import Gateway
from dragoman.model import Claims, Database, Principal, Relation
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite
from dragoman.testing.catalog import inspect
from dragoman.testing.tiers import capability

CALLER: Final = Principal("kit", claims=Claims({"genre": 1}))
TITLES: Final = tuple(title for _, genre, title in sample.TRACKS if genre == 1)
LEFT: Final = {id for id, genre, _ in sample.TRACKS if genre == 1}
WAYS: Final = {
    "alone": "SELECT id FROM {t}",
    "alias": "SELECT k.id FROM {t} AS k",
    "star": "SELECT id FROM (SELECT * FROM {t}) k",
    "condition": "SELECT id FROM {t} WHERE id > 0 ORDER BY id",
    "joined": "SELECT k.id FROM {g} g JOIN {t} k ON k.id >= g.id",
    "twice": "SELECT b.id FROM {t} a JOIN {t} b ON a.id <= b.id",
    "beside": "SELECT b.id FROM {t} a, {t} b",
    "subquery": "SELECT id FROM {t} WHERE id IN (SELECT id FROM {t})",
    "correlated": "SELECT a.id FROM {t} a WHERE EXISTS (SELECT 1 FROM {t} b WHERE b.id = a.id)",
    "value": "SELECT (SELECT MAX(id) FROM {t}) AS id",
    "within": "SELECT g.id FROM {g} g WHERE g.id IN (SELECT a.id FROM {t} a WHERE a.id < 3)",
    "member": "WITH k AS (SELECT * FROM {t}) SELECT id FROM k",
    "member_beside_it": "WITH k AS (SELECT * FROM {t}) SELECT b.id FROM k a, {t} b",
    "union": "SELECT id FROM {t} WHERE id = 1 UNION ALL SELECT id FROM {t} WHERE id > 1",
    "counted": "SELECT COUNT(*) AS id FROM {t}",
}
"""Queries of ids that are those of the rows left, in whatever way a query names a relation. `t` is filtered."""
FAILING: Final = {
    "cast": "CAST(CASE WHEN k.id > 2 THEN 'x' ELSE '1' END AS INTEGER) = 1",
    "division": "1 / (k.id - 3) < 1",
    "overflow": "ABS(CASE WHEN k.id > 2 THEN -9223372036854775807 - 1 ELSE 1 END) = 1",
}
"""Conditions that hold for the rows left, and fail in some engines on rows that the filter leaves out."""


Parted = tuple[Gateway, Relation, Relation]
"""A gateway whose caller has a part of the first relation and all of the second."""


class PartCases(Suite):
    """Cases for `Dialect.confine` and `Dialect.masks`, by a role that has a part of one table."""

    @pytest.fixture(scope="class")
    @classmethod
    async def parted(cls, gateway: Gateway) -> AsyncGenerator[Parted | None]:
        """The sample with a filter and a hidden column; None if the dialect has no `confine`. Opening it takes long."""
        if gateway.database().dialect.confine is None:
            yield None
            return
        async with _open_confined(gateway.database()) as parted:
            yield parted

    @capability
    async def test_roles_may_filter_and_mask_only_where_a_dialect_can(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        if dialect.confine is not None:
            return
        with pytest.raises(ConfigurationError):
            async with _open_confined(opened):
                raise AssertionError("The dialect has no `confine`, and a role with a filter was accepted.")

    @capability
    @pytest.mark.parametrize("way", WAYS)
    async def test_rows_that_a_filter_leaves_out_are_read_in_no_way(
        self, parted: Parted | None, dialect: Dialect, way: str
    ) -> None:
        if parted is None:
            return
        gateway, track, genre = parted
        for t, g in zip(_forms(dialect, track), _forms(dialect, genre), strict=True):
            sql = WAYS[way].format(t=t, g=g)
            found = await _ids(gateway, sql, must=way in {"alone", "alias"})
            assert found is None or (found and found <= LEFT), (
                f"Of {sql} came the ids {sorted(found or ())}, and the filter of the role leaves {sorted(LEFT)}:"
                " Dialect.confine must replace every place of `named` whose part is not None, each by its offset."
            )

    @capability
    @pytest.mark.parametrize("condition", FAILING)
    async def test_no_condition_is_tried_on_rows_that_a_filter_leaves_out(
        self, gateway: Gateway, parted: Parted | None, dialect: Dialect, condition: str
    ) -> None:
        if parted is None:
            return
        confined, track, _ = parted
        sql = f"SELECT k.id FROM {next(_forms(dialect, track))} AS k WHERE {FAILING[condition]}"
        if not await _fails(gateway, sql):
            return  # the engine does not fail on such values
        assert not await _fails(confined, sql), (
            f"{sql} failed on a row that the filter leaves out, so errors tell what it holds: let Dialect.confine put"
            " a LIMIT larger than any table, or OFFSET 0, behind the filter, inside the subquery, or whatever else"
            " the engine evaluates no outer condition below."
        )

    @capability
    async def test_a_masked_column_shows_its_mask_alone(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if dialect.confine is None:
            return
        for mask, shown in _show_titles(dialect).items():
            async with _open_confined(opened, {"title": mask}) as (gateway, track, _):
                name = next(_forms(dialect, track))
                rows = await _rows(gateway, f"SELECT k.title, k.id FROM {name} AS k ORDER BY k.id")
                assert [title for title, _ in rows] == shown, (
                    f"The mask {mask!r} shows {[title for title, _ in rows]} of {list(TITLES)} and must show {shown}:"
                    " write ConfinedRelation's columns with `write_columns`, and correct Dialect.masks."
                )
                stored = f"SELECT k.id FROM {name} AS k WHERE k.title = {sample.literal(TITLES[0])}"
                assert await _rows(gateway, stored) == [], (
                    f"With the mask {mask!r} a condition on the stored value found its row: conditions must meet what"
                    " is shown."
                )

    @capability
    async def test_a_filter_may_read_a_masked_column_and_a_hidden_one_is_unknown(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        if dialect.confine is None:
            return
        masks = {"genre_id": "null"} if "null" in dialect.masks else {}
        async with _open_confined(opened, masks) as (gateway, track, _):
            name = next(_forms(dialect, track))
            rows = await _rows(gateway, f"SELECT * FROM {name}")
            wanted = {(id, None if masks else genre, title) for id, genre, title in sample.TRACKS if genre == 1}
            assert {tuple(row) for row in rows} == wanted, (
                f"SELECT * of a table with a filter, a mask and a hidden column gave {rows}: a filter is over stored"
                " values, and the columns are those of ConfinedRelation.columns."
            )
            try:
                rows = await _rows(gateway, f"SELECT k.note FROM {name} AS k")
            except ColumnNotFound:
                return
        raise AssertionError(f"A hidden column was read: {rows}.")

    @capability(Capability.PARAMETERS)
    async def test_values_of_a_filter_stand_between_those_of_the_caller(
        self, parted: Parted | None, dialect: Dialect
    ) -> None:
        if parted is None or Capability.PARAMETERS not in dialect.capabilities:
            return
        gateway, track, _ = parted
        places = [dialect.placeholder.replace("1", str(number)) for number in (1, 2, 3)]
        name = next(_forms(dialect, track))
        sql = "SELECT b.id FROM {n} a JOIN {n} b ON a.id = b.id AND a.id <> {0} WHERE b.id <> {1} AND b.id < {2}"
        rows = await _rows(gateway, sql.format(*places, n=name), 1, 70, 90)
        assert rows == [[2]], (
            f"{sql.format(*places, n=name)} gave {rows} with the values 1, 70 and 90, and must give [[2]]: bind the"
            " caller's values and those of the filter in the order of Confined.parameters."
        )


@asynccontextmanager
async def _open_confined(opened: OpenDatabase, masks: dict[str, str] | None = None) -> AsyncGenerator[Parted]:
    """Open the database for a caller who has some rows of one table, without one column, and all of another."""
    config: Database = opened.config
    tables = await inspect(opened)
    track, genre = tables[sample.TRACK].relation, tables[sample.GENRE].relation
    stored = {column.name.lower(): column.name for column in tables[sample.TRACK].columns}
    part = Grant(
        database=config.name,
        tables=(_pattern(_find_stored(opened.dialect, track)),),
        deny_columns=(stored["note"],),
        filter="genre_id = $claim.genre",
        masks={stored[name]: mask for name, mask in (masks or {}).items()},
        key="roles.kit.grants.0",
    )
    whole = Grant(
        database=config.name, tables=(_pattern(_find_stored(opened.dialect, genre)),), key="roles.kit.grants.1"
    )
    role = Role(name="kit", principals=frozenset({"*"}), grants=(part, whole))
    async with Gateway.open(Configuration(databases={config.name: config}, roles={"kit": role})) as gateway:
        yield gateway, track, genre


def _find_stored(dialect: Dialect, relation: Relation) -> Relation:
    """Return a relation of the sample with its name as the database stores it."""
    return replace(relation, name=sample.stored_name(dialect, relation.name))


def _pattern(relation: Relation) -> str:
    return ".".join(relation.parts)


def _forms(dialect: Dialect, relation: Relation) -> Iterator[str]:
    """Yield the name with all that the database has above it, alone, and in quotes."""
    opening, closing = dialect.quote_marks[0], dialect.quote_marks[1]
    stored = _find_stored(dialect, relation)
    yield str(relation)
    yield relation.name
    yield ".".join(f"{opening}{part}{closing}" for part in stored.parts)


def _show_titles(dialect: Dialect) -> dict[str, list[Any]]:
    """Return what the dialect's masks must show of the titles."""
    shown: dict[str, list[Any]] = {
        "null": [None for _ in TITLES],
        "partial": [f"{title[:1]}***" for title in TITLES],
        "hash": [hashlib.sha256(title.encode()).hexdigest() for title in TITLES],
    }
    return {mask: values for mask, values in shown.items() if mask in dialect.masks}


async def _rows(gateway: Gateway, sql: str, *parameters: Any) -> list[Any]:
    return (await gateway.query(None, sql, parameters, principal=CALLER)).rows


async def _fails(gateway: Gateway, sql: str) -> bool:
    """Return whether a query fails on a value."""
    try:
        await _rows(gateway, sql)
    except QueryError:
        return True
    except (InvalidSql, Unsupported):
        pass  # an engine that writes it in another way
    return False


async def _ids(gateway: Gateway, sql: str, *, must: bool) -> set[int] | None:
    """Return the ids in an answer. None: the dialect says that it cannot confine such a query, unless it must."""
    try:
        return {row[0] for row in await _rows(gateway, sql)}
    except Unsupported as error:
        if not must:
            return None
        raise AssertionError(f"{sql} was refused: {error.message}") from error
    except DragomanError as error:
        raise AssertionError(
            f"{sql} gave {error.code} ({error.message}). What Dialect.confine returns for it must run, and be judged"
            " like any query; what it cannot confine it refuses with Unsupported."
        ) from error
