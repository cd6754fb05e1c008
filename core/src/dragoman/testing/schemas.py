"""The schemas of a database, where unqualified names are looked up, and the contents of each schema."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError, NotFound
from dragoman.gateway import Gateway
from dragoman.model import Database, Relation, Schema, Scope, Table
from dragoman.sql import Statement
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite, run
from dragoman.testing.catalog import inspect, opened_again
from dragoman.testing.tiers import recommended, required

ASIDE: Final = "kit_aside"
"""A second schema, beside the sample's."""
FAR: Final = "kit_far"
NAMESAKES: Final = (sample.GENRE, sample.TRACK, sample.LISTING)
"""Relations of the sample, of which the second schema has others with the same names."""
PLACES: Final = (
    "SELECT * FROM {name}",
    f"SELECT * FROM {{name}} AS {ASIDE}",
    f"SELECT * FROM (SELECT * FROM {{name}}) AS {sample.TRACK}",
    f"WITH {FAR} AS (SELECT 1 AS x), kit_all AS (SELECT * FROM {{name}}) SELECT * FROM kit_all",
    f"WITH kit_all AS (WITH {sample.TRACK} AS (SELECT 1 AS x) SELECT * FROM {sample.TRACK}) SELECT * FROM {{name}}",
)
"""Where the name of a relation stands."""
INSPECTING: Final = ("desc", "describe", "explain", "pragma", "show", "summarize")
"""Words of statements that show what there is. Some engines read such a statement in parentheses as a relation."""


class SchemaCases(Suite):
    """Schemas: the engine's own, and a second one of users."""

    @required
    async def test_every_relation_s_schema_is_among_the_schemas(self, opened: OpenDatabase) -> None:
        schemas = {schema.name for schema in await opened.inspector.schemas()}
        told = {table.relation.schema for table in (await opened.inspector.tables(Scope())).tables} - {None}
        assert told <= schemas, (
            f"Relations are in {sorted(map(str, told))}, and inspector.schemas() returns "
            f"{sorted(schemas)}: return the engine's own too, marked as system."
        )

    @recommended
    async def test_every_schema_that_is_told_is_there(self, opened: OpenDatabase) -> None:
        if not self._alters:
            return
        missing = [schema for schema in await _empty_schemas(opened) if not await self._takes_a_table(opened, schema)]
        still = [schema.name for schema in await opened.inspector.schemas() if schema in missing]
        assert not still, (
            f"inspector.schemas() returns {still}, where no relation is and none can be created: return only the"
            " schemas of this database, and mark those of the engine itself as system."
        )

    async def _takes_a_table(self, opened: OpenDatabase, schema: Schema) -> bool:
        table = opened.dialect.qualify(Relation(FAR, schema.name, schema.catalog))
        try:
            made = await self._change(opened.config, f"CREATE TABLE {table} (id {self._types()['integer']})")
        except Exception:
            return False
        await self._change(made, f"DROP TABLE {table}")
        return True

    @required
    async def test_what_stands_in_an_engine_s_own_schema_is_the_engine_s(self, opened: OpenDatabase) -> None:
        system = {schema.name for schema in await opened.inspector.schemas() if schema.system}
        tables = (await opened.inspector.tables(Scope())).tables
        shown = sorted(str(table.relation) for table in tables if table.relation.schema in system and not table.system)
        assert not shown, (
            f"{shown[:3]} are in schemas of the engine itself, and are reported as users' tables: "
            "set Table.system, or agents see them in every list."
        )

    @required
    async def test_schemas_are_searched_in_an_order(self, opened: OpenDatabase) -> None:
        searched = [(each.search_order, each.name) for each in await opened.inspector.schemas()]
        orders = [order for order, _ in searched if order is not None]
        assert len(set(orders)) == len(orders), (
            f"Schema.search_order is {sorted(searched, key=str)}: each place belongs to one "
            "schema; use None for schemas where unqualified names are not looked up."
        )

    @required
    async def test_the_default_schema_is_where_names_alone_lead(self, opened: OpenDatabase, dialect: Dialect) -> None:
        config: Database = opened.config
        if dialect.default_schema is None or config.schema is not None:
            return
        await run(opened, f"SELECT id FROM {sample.TRACK}")
        schema = (await inspect(opened))[sample.TRACK].relation.schema
        assert schema == dialect.default_schema, (
            f"{sample.TRACK} alone is found in {schema!r}, and Dialect.default_schema is {dialect.default_schema!r}."
        )

    @recommended
    async def test_a_function_may_be_written_with_the_schema_that_names_alone_mean(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        homes = [each.name for each in await opened.inspector.schemas() if each.search_order is not None]
        if dialect.default_schema is not None or len(homes) != 1:
            return
        sql = f"SELECT {dialect.quote(homes[0])}.abs(id) AS v FROM {sample.TRACK} WHERE id = 1"
        try:
            await run(opened, sql)
        except DragomanError:
            return  # functions are elsewhere
        raise AssertionError(f"The engine answers {sql}: set Dialect.default_schema, or that function is refused.")

    @required
    async def test_the_only_schema_is_the_only_one(self, opened: OpenDatabase, dialect: Dialect) -> None:
        schemas = {schema.name for schema in await opened.inspector.schemas()}
        assert not dialect.only_schema or schemas <= {dialect.default_schema}, (
            f"Dialect.only_schema says that there is no schema but {dialect.default_schema!r}, "
            f"and inspector.schemas() returns {sorted(schemas)}: relations outside `schemas` "
            "would be visible."
        )

    @required
    async def test_the_sample_s_schema_is_not_the_engine_s_own(self, opened: OpenDatabase) -> None:
        track = (await inspect(opened))[sample.TRACK]
        system = {schema.name for schema in await opened.inspector.schemas() if schema.system}
        assert track.relation.schema not in system, (
            f"The schema {track.relation.schema!r} is reported as the engine's own: agents see it only on request."
        )

    @recommended
    async def test_a_second_schema_is_told_with_what_stands_in_it(self, opened: OpenDatabase, dialect: Dialect) -> None:
        async with self._aside(opened, Capability.COMMENTS in dialect.capabilities) as (where, comment):
            if where is None:
                return
            async with opened_again(opened, where) as changed:
                schemas = {schema.name: schema for schema in await changed.inspector.schemas()}
                tables = await inspect(changed, [FAR])
        assert not dialect.only_schema, (
            f"Dialect.only_schema says that there is no schema but {dialect.default_schema!r}, and {ASIDE} was created:"
            " relations outside `schemas` would be visible."
        )
        assert ASIDE in schemas, f"The schema {ASIDE} was created, and inspector.schemas() returns {sorted(schemas)}."
        told = tables.get(FAR)
        assert told, f"{ASIDE}.{FAR} was created, and inspector.tables() does not report it: read every schema."
        assert told.relation.schema == ASIDE, f"{ASIDE}.{FAR} is reported as {told.relation}."
        assert schemas[ASIDE].comment == comment, (
            f"The schema {ASIDE} has the comment {comment!r}, and Schema.comment is {schemas[ASIDE].comment!r}."
        )

    @required
    async def test_relations_of_one_name_in_two_schemas_are_two(self, opened: OpenDatabase) -> None:
        before = await _facts(opened)
        async with self._aside(opened) as (where, _):
            if where is None:
                return
            integer = self._types()["integer"]
            for name in NAMESAKES:
                where = await self._change(where, f"CREATE TABLE {ASIDE}.{name} (kit_open {integer})")
            try:
                async with opened_again(opened, where) as changed:
                    after = await _facts(changed)
            finally:
                for name in NAMESAKES:
                    where = await self._change(where, f"DROP TABLE {ASIDE}.{name}")
        mixed = [name for name in NAMESAKES if after.get((ASIDE, name)) != ("table", ["kit_open"], (), (), None, None)]
        mixed += [name for schema, name in before if after.get((schema, name)) != before[schema, name]]
        assert not mixed, (
            f"{mixed} are in two schemas, and the columns, keys, comments or definitions of one are reported for the"
            " other: go by schema and name, in every query and every dictionary."
        )

    @required
    async def test_a_name_alone_means_nothing_outside_the_open_schemas(self, opened: OpenDatabase) -> None:
        async with self._aside(opened) as (where, _):
            if where is None:
                return
            made = await self._change(
                where, f"CREATE TABLE {ASIDE}.{sample.TRACK} (kit_open {self._types()['integer']})"
            )
            try:
                async with Gateway.open([replace(made, schemas=(ASIDE,))]) as gateway:
                    full = await _columns(gateway, f"{ASIDE}.{sample.TRACK}")
                    alone = await _columns(gateway, sample.TRACK)
            finally:
                await self._change(made, f"DROP TABLE {ASIDE}.{sample.TRACK}")
        assert full == ["kit_open"], (
            f"With schemas = [{ASIDE!r}], {ASIDE}.{sample.TRACK} has the columns {full}: is it looked up elsewhere?"
        )
        assert alone in (None, ["kit_open"]), (
            f"With schemas = [{ASIDE!r}], {sample.TRACK} alone means the table of another schema: report as"
            " Schema.search_order where the engine looks up names without a schema."
        )

    @required
    async def test_each_form_of_a_name_means_what_was_judged(self, opened: OpenDatabase, dialect: Dialect) -> None:
        async with self._aside(opened) as (where, _):
            if where is None:
                return
            home = (await inspect(opened))[sample.TRACK].relation.schema or ASIDE
            made = await self._change(
                where, f"CREATE TABLE {ASIDE}.{sample.TRACK} (kit_open {self._types()['integer']})"
            )
            wrong: list[str] = []
            try:
                for turn, schemas in enumerate(((), (ASIDE,), (ASIDE, home))):
                    async with Gateway.open([replace(made, schemas=schemas)]) as gateway:
                        told = [await _judged_otherwise(gateway, sql) for sql in _queries(dialect, home, turn)]
                        wrong += [f"{each}, with schemas = {list(schemas)}" for each in told if each]
            finally:
                await self._change(made, f"DROP TABLE {ASIDE}.{sample.TRACK}")
        assert not wrong, f"The engine reads another table than the one that was judged: {wrong[:3]}"

    @required
    async def test_no_statement_in_parentheses_shows_what_is_outside_the_open_schemas(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        async with self._aside(opened) as (where, _):
            if where is None:
                return
            async with Gateway.open([replace(where, schemas=(ASIDE,))]) as gateway:
                told = [sql for sql in _inspections(dialect) if await _shows(gateway, sql)]
        assert not told, f"{told[0]} shows more than schemas = [{ASIDE!r}] opens: list the word in Dialect.reserved."

    @asynccontextmanager
    async def _aside(
        self, opened: OpenDatabase, comments: bool = False
    ) -> AsyncGenerator[tuple[Database | None, str | None]]:
        """Create a second schema for a while, with a comment.

        Yields None for an engine that has none, and where the schema cannot be changed.
        """
        if await opened.inspector.fingerprint() is None:
            yield None, None
            return
        try:
            made = await self._change(opened.config, f"CREATE SCHEMA {ASIDE}")
        except Exception:
            yield None, None
            return
        try:
            made = await self._change(made, f"CREATE TABLE {ASIDE}.{FAR} (id {self._types()['integer']})")
            comment = None
            if comments:
                try:
                    made = await self._change(made, f"COMMENT ON SCHEMA {ASIDE} IS '{sample.TRACK_COMMENT}'")
                    comment = sample.TRACK_COMMENT
                except Exception:
                    comment = None  # an engine whose schemas have no comments
            yield made, comment
        finally:
            made = await self._change(made, f"DROP TABLE {ASIDE}.{FAR}")
            await self._change(made, f"DROP SCHEMA {ASIDE}")


async def _empty_schemas(opened: OpenDatabase) -> list[Schema]:
    """Return the schemas of users in which no relation is."""
    taken = {table.relation.schema for table in (await opened.inspector.tables(Scope())).tables}
    return [schema for schema in await opened.inspector.schemas() if not schema.system and schema.name not in taken]


async def _facts(opened: OpenDatabase) -> dict[tuple[str | None, str], Any]:
    """Return what is reported of each relation with the name of another, by schema and name."""
    stored = {sample.stored_name(opened.dialect, name): name for name in NAMESAKES}
    tables = (await opened.inspector.tables(Scope(names=frozenset(stored)))).tables
    return {(each.relation.schema, stored[each.relation.name]): _tell(each) for each in tables if not each.system}


def _tell(table: Table) -> tuple[Any, ...]:
    columns = [column.name.lower() for column in table.columns]
    return table.type, columns, table.constraints, table.foreign_keys, table.comment, table.definition


async def _columns(gateway: Gateway, name: str) -> list[str] | None:
    """Return the columns of a relation as a query names them, in lower case. None: there is no such relation."""
    try:
        result = await gateway.query(None, f"SELECT * FROM {name}")
    except NotFound:
        return None
    return [column.name.lower() for column in result.columns]


def _forms(dialect: Dialect, home: str) -> Iterator[str]:
    """Yield ways to write the name that two schemas have in common, with or without a schema."""
    name, quote = sample.TRACK, dialect.quote_marks
    alone = (
        name,
        name.upper(),
        name.title(),
        f"{quote[0]}{name}{quote[1]}",
        f"{quote[0]}{name.upper()}{quote[1]}",
        f"'{name}'",
    )
    yield from alone
    for schema in (home, ASIDE):
        yield from (f"{schema}.{each}" for each in alone)
        yield from (f"{quote[0]}{schema}{quote[1]}.{name}", f"{schema.upper()}.{name}", f"{schema} . {name}")
        yield from (f"{quote[0]}{schema}.{name}{quote[1]}", f"'{schema}.{name}'", f"{schema}.{schema}.{name}")


def _queries(dialect: Dialect, home: str, turn: int) -> Iterator[str]:
    """Yield a query for each form of the name, with each turn in another place.

    The columns of the answer show which of the two tables was read.
    """
    for number, name in enumerate(_forms(dialect, home)):
        yield PLACES[(number + turn) % len(PLACES)].format(name=name)


async def _judged_otherwise(gateway: Gateway, sql: str) -> str | None:
    """Return a query whose answer comes from another table than the gate has judged."""
    try:
        result = await gateway.query(None, sql)
    except DragomanError:
        return None
    database = gateway.database()
    statement = Statement.parse(sql, sqlglot=database.dialect.sqlglot, lexicon=database.dialect.lexicon)
    judged = {relation.schema for relation in await database.judge.relations(statement)}
    read = {ASIDE} if "kit_open" in {column.name.lower() for column in result.columns} else judged - {ASIDE}
    return None if judged == read and judged else f"{sql}: judged {sorted(map(str, judged))}"


def _inspections(dialect: Dialect) -> Iterator[str]:
    """Yield queries of tables that words of statements seem to name."""
    for word in INSPECTING:
        for rest in (sample.TRACK, "tables", "databases", "ALL tables", ""):
            yield f"WITH {dialect.quote(word)} AS (SELECT 1 AS x) SELECT * FROM ({word} {rest})"


async def _shows(gateway: Gateway, sql: str) -> bool:
    """Return whether a query is answered with anything but the row of its own."""
    try:
        result = await gateway.query(None, sql)
    except DragomanError:
        return False
    return [list(row) for row in result.rows] != [[1]]
