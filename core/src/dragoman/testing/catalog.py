"""What the inspector reports about the sample, in bulk."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.gateway import Gateway
from dragoman.model import Database, Inspection, Names, Relation, Request, RowStream, Scope, Table
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite, ask, expect_answer, run
from dragoman.testing.tiers import capability, recommended, required

HANDFUL = 10
MANY_COLUMNS = 100_000
TABLES = {sample.GENRE, sample.TRACK, sample.RATING, sample.LISTING, sample.APPEAL, sample.ODD, sample.DOTTED}
MANY_NAMES = 1000
"""A list of tables that an agent asks for at once has no more."""


async def inspect(opened: OpenDatabase, names: Iterable[str] = (), **scope: frozenset[str]) -> dict[str, Table]:
    """Return what the inspector reports, by name, with all names as in the sample. `names` restricts it."""
    dialect: Dialect = opened.dialect
    stored = frozenset(sample.stored_name(dialect, name) for name in names)
    inspection: Inspection = await opened.inspector.tables(Scope(names=stored, **scope))
    told = (sample.as_written(dialect, table) for table in inspection.tables if not table.system)
    return {table.relation.name: table for table in told}


def _relation(name: str, group: Names) -> Relation:
    return Relation(name, group.schema, group.catalog)


def _actions(table: Table) -> set[str | None]:
    return {action for key in table.foreign_keys for action in (key.on_update, key.on_delete)}


def _facts(told: Names | Table) -> tuple[str, bool, str]:
    return told.type, told.system, str(told.partition_of)


@asynccontextmanager
async def opened_again(opened: OpenDatabase, where: Database) -> AsyncGenerator[OpenDatabase]:
    """The database in which a change was made: the same one, unless it is a copy."""
    if where == opened.config:
        yield opened
        return
    async with Gateway.open([where]) as gateway:
        yield gateway.database()


class CatalogCases(Suite):
    """Relations, columns and keys."""

    @required
    async def test_the_version_of_the_server_is_told(self, opened: OpenDatabase) -> None:
        version = await opened.inspector.version()
        assert any(letter.isdigit() for letter in version), (
            f"inspector.version() returned {version!r}; return the server's own version."
        )

    @required
    async def test_every_relation_is_told(self, opened: OpenDatabase) -> None:
        missing = TABLES - (await inspect(opened)).keys()
        assert not missing, f"inspector.tables(Scope()) left out {sorted(missing)}; it must report tables and views."

    @required
    async def test_names_alone_are_those_of_the_relations(self, opened: OpenDatabase) -> None:
        for scope in (Scope(), Scope(names=frozenset({sample.stored_name(opened.dialect, sample.TRACK)}))):
            groups = await opened.inspector.names(scope)
            if groups is None:
                return
            alone = {(str(_relation(name, group)), *_facts(group)) for group in groups for name in group.names}
            told = {(str(table.relation), *_facts(table)) for table in (await opened.inspector.tables(scope)).tables}
            assert alone == told, (
                f"inspector.names() and inspector.tables() differ in {sorted(map(str, alone ^ told))[:5]};"
                " both must report the same relations with the same type, system and partition_of."
            )

    @required
    async def test_a_schema_of_many_relations_is_told_whole(self, opened: OpenDatabase) -> None:
        told = {name for name, table in (await inspect(opened)).items() if table.columns}
        missing = {f"{sample.MANY}_{number}" for number in range(1, self.relations + 1)} - told
        assert not missing, (
            f"Of {self.relations} tables {len(missing)} were left out, or reported without "
            f"columns, such as {min(missing)}: the inspector's queries must have no LIMIT, and "
            "limits of their own."
        )

    @required
    async def test_a_table_of_many_columns_is_told_whole(self, opened: OpenDatabase) -> None:
        told = [column.name.lower() for column in (await self._hard_table(opened)).columns]
        assert len(told) == sample.WIDTH, (
            f"Of a table of {sample.WIDTH} columns {len(told)} were reported: the inspector's queries must have no"
            " LIMIT, and limits of their own."
        )
        assert told == [f"c{number}" for number in range(1, sample.WIDTH + 1)], (
            f"The columns c1 to c{sample.WIDTH} came in the order {', '.join(told[:4])}, ...: sort them by their"
            " position, as a number."
        )

    @required
    async def test_a_table_with_quotes_in_its_name_is_told_and_can_be_queried(
        self, gateway: Gateway, dialect: Dialect, opened: OpenDatabase
    ) -> None:
        await self._hard_table(opened)
        remedy = "Dialect.quote does not quote as the database reads: check quote_marks."
        await expect_answer(gateway, f"SELECT c1 FROM {dialect.quote(self.hard_name)}", remedy)

    async def _hard_table(self, opened: OpenDatabase) -> Table:
        inspection: Inspection = await opened.inspector.tables(Scope())
        found = [table for table in inspection.tables if table.relation.name == self.hard_name]
        assert len(found) < 2, (
            f"The sample stands in {sorted(str(table.relation.schema) for table in found)}: drop all but the one under"
            " test."
        )
        assert found, (
            f"The table {self.hard_name!r} was reported {len(found)} times: leave no table out because of its name, and"
            " report names as they are stored. If the engine takes no such name, override hard_name."
        )
        return found[0]

    @required
    async def test_a_table_created_later_is_told(self, opened: OpenDatabase) -> None:
        if not self._alters:
            return
        await inspect(opened)  # an inspector that keeps its catalog keeps it from here on
        integer = self._types()["integer"]
        where = await self._change(opened.config, f"CREATE TABLE {sample.LATER} (id {integer})")
        try:
            async with opened_again(opened, where) as changed:
                told = await inspect(changed)
        finally:
            await self._change(where, f"DROP TABLE {sample.LATER}")
        assert sample.LATER in told, (
            f"The table {sample.LATER} was created, and inspector.tables() did not report it: ask the database at every"
            " call. The core keeps catalogs, so the inspector need not."
        )

    @required
    async def test_what_is_there_now_is_answered(self, opened: OpenDatabase) -> None:
        if not self._alters:
            return
        query, where = f"SELECT id FROM {sample.LATER_VIEW} ORDER BY id", opened.config
        for condition, wanted in (("id = 1", [[1]]), ("id > 1", [[2], [3]])):
            view = f"CREATE VIEW {sample.LATER_VIEW} AS SELECT id FROM {sample.GENRE} WHERE {condition}"
            where = await self._change(where, view)
            try:
                async with opened_again(opened, where) as changed:
                    _, rows = await run(changed, query)
            finally:
                where = await self._change(where, f"DROP VIEW {sample.LATER_VIEW}")
            assert rows == wanted, (
                f"{rows} came where {wanted} is there now: keep no answers, and end every transaction, so that the next"
                " statement sees what is there."
            )

    @required
    async def test_a_name_with_a_dot_is_one_name(
        self, gateway: Gateway, dialect: Dialect, opened: OpenDatabase
    ) -> None:
        table = (await inspect(opened)).get(sample.DOTTED)
        told = table and [column.name for column in table.columns]
        assert told == [sample.PART], (
            f"{sample.DOTTED!r} with the one column {sample.PART!r} was reported as {told}: the "
            "parts of a name are separate, so split none of them, and quote each by itself."
        )
        found = await gateway.database().catalog.find(dialect.quote(sample.DOTTED))
        await expect_answer(gateway, f"SELECT * FROM {dialect.qualify(found.relation)}", "Quote each part by itself.")

    @required
    async def test_a_view_is_told_as_a_view(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened)
        kinds = {name: tables[name].type for name in (sample.TRACK, sample.LISTING)}
        assert kinds == {sample.TRACK: "table", sample.LISTING: "view"}, f"Table.type is {kinds}."

    @required
    async def test_columns_are_told_in_their_order(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened)
        names = {name: [column.name for column in tables[name].columns] for name in (sample.TRACK, sample.LISTING)}
        assert names == {sample.TRACK: ["id", "genre_id", "title", "note"], sample.LISTING: ["title", "name"]}, (
            f"The columns are reported as {names}; they must come in the order of the table, for views too."
        )

    @required
    async def test_every_column_has_a_type(self, opened: OpenDatabase) -> None:
        untyped = [
            f"{table.relation.name}.{column.name}"
            for table in (await inspect(opened)).values()
            for column in table.columns
            if not column.type and table.type == "table"
        ]
        assert not untyped, f"TableColumn.type is empty for {untyped}."

    @recommended
    async def test_a_type_is_told_with_its_length(self, opened: OpenDatabase) -> None:
        written = self._types()["decimal"]
        amount = next(each.type for each in (await inspect(opened))[sample.APPEAL].columns if each.name == "amount")
        lengths = re.findall(r"\d+", written)
        assert [number for number in re.findall(r"\d+", amount) if number in lengths] == lengths, (
            f"A column that was created as {written} was reported as {amount!r}: report "
            "precision, scale and length with the type. If the engine has none, override "
            "types['decimal']."
        )

    @required
    async def test_nullable_columns_and_no_others_are_told_as_nullable(self, opened: OpenDatabase) -> None:
        track = (await inspect(opened))[sample.TRACK]
        nullable = {column.name: column.nullable for column in track.columns}
        assert (nullable["note"], nullable["title"], nullable["genre_id"]) == (True, False, False), (
            f"TableColumn.nullable is {nullable}; note may be null, genre_id and title may not. It may be inverted."
        )

    @required
    async def test_a_scope_of_names_restricts(self, opened: OpenDatabase) -> None:
        wanted = frozenset({sample.TRACK, sample.ODD})
        found = set(await inspect(opened, names=wanted))
        assert found == wanted, f"tables(Scope(names={sorted(wanted)})) returned {sorted(found)}; respect Scope.names."

    @required
    async def test_a_scope_of_schemas_restricts(self, opened: OpenDatabase) -> None:
        track = (await inspect(opened))[sample.TRACK]
        schema = track.relation.schema
        if not await opened.inspector.schemas():
            assert schema is None, f"Relation.schema is {schema!r}, and inspector.schemas() returns no schema."
            return
        assert schema, "Relation.schema is None; set the schema of the relation, the default one too."
        assert TABLES <= (await inspect(opened, schemas=frozenset({schema}))).keys(), (
            f"tables(Scope(schemas={{{schema!r}}})) left out relations of that schema."
        )
        elsewhere = await inspect(opened, schemas=frozenset({"kit_no_such_schema"}))
        assert not elsewhere, "tables() returned relations of a missing schema; respect Scope.schemas."

    @required
    async def test_a_scope_of_many_names_is_answered_whole(self, opened: OpenDatabase) -> None:
        wanted = {f"{sample.MANY}_{number}" for number in range(1, self.relations + 1)}
        absent = {f"kit_absent_{number}" for number in range(MANY_NAMES - len(wanted))}
        missing = wanted - (await inspect(opened, wanted | absent)).keys()
        assert not missing, (
            f"Of {MANY_NAMES} names in Scope.names {len(wanted)} are tables, and {len(missing)} of these were left out:"
            " split lists that are too long for the engine, and cut none."
        )

    @required
    async def test_a_table_with_capitals_is_told_and_can_be_queried(
        self, gateway: Gateway, dialect: Dialect, opened: OpenDatabase
    ) -> None:
        inspection: Inspection = await opened.inspector.tables(Scope())
        found = [each for each in inspection.tables if each.relation.name.lower() == sample.CAPITAL.lower()]
        names = [table.relation.name for table in found]
        wanted = sample.CAPITAL if self.capitals else sample.CAPITAL.lower()
        assert names == [wanted], (
            f"The table {sample.CAPITAL!r} was reported as {names}: report names as they are stored. If the engine has"
            " no capitals in names, say so: capitals = False."
        )
        await expect_answer(gateway, f"SELECT id FROM {dialect.qualify(found[0].relation)}", "Keep the case of names.")

    @required
    async def test_a_name_that_is_not_there_is_no_error(self, opened: OpenDatabase) -> None:
        found = await inspect(opened, names=frozenset({"kit_no_such_table"}))
        assert not found, f"A scope of one unknown name returned {sorted(found)}; it must return nothing."

    @required
    async def test_a_name_with_quotes_in_a_scope_is_only_a_name(self, opened: OpenDatabase) -> None:
        found = await inspect(opened, names=frozenset({"x' OR '1'='1"}))
        assert not found, "A name with quotes changed the inspector's own SQL: bind names or quote them."

    @required
    async def test_names_that_need_quotes_are_told_as_stored_and_can_be_queried(
        self, gateway: Gateway, dialect: Dialect, opened: OpenDatabase
    ) -> None:
        columns = [column.name for column in (await inspect(opened))[sample.ODD].columns]
        assert columns[:1] == ["select"], f"The column select of {sample.ODD!r} is reported as {columns}."
        statement = f"SELECT {dialect.quote('select')} FROM {dialect.quote(sample.ODD)}"
        remedy = "Dialect.quote does not quote as the database reads: check quote_marks and reserved."
        result = await expect_answer(gateway, statement, remedy)
        assert result.rows == [[7]], f"{statement} gave {result.rows}. {remedy}"

    @required
    async def test_the_catalog_finds_a_table_by_its_plain_name(self, opened: OpenDatabase) -> None:
        table = await opened.catalog.find(sample.TRACK)
        assert table.relation.name == sample.stored_name(opened.dialect, sample.TRACK), (
            f"Catalog.find({sample.TRACK!r}) found {table.relation}; report names as they are "
            "stored, and check Dialect.folding."
        )

    @required
    async def test_a_relation_is_reached_by_its_whole_name(self, gateway: Gateway, dialect: Dialect) -> None:
        table = await gateway.database().catalog.find(sample.TRACK)
        whole = dialect.qualify(table.relation)
        remedy = "That is how the relation was reported: report catalog and schema as the database stores them."
        result = await expect_answer(gateway, f"SELECT id FROM {whole} WHERE id = 2", remedy)
        assert result.rows == [[2]], f"{whole} is not the relation that was reported: {result.rows}."

    @required
    async def test_a_sample_of_rows_can_be_taken_of_any_name(self, gateway: Gateway) -> None:
        result = await gateway.sample(None, sample.ODD)
        assert result.rows == [[7, None]], f"A sample of {sample.ODD!r} gave {result.rows}."

    @recommended(Capability.COMMENTS)
    async def test_comments_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        track = (await inspect(opened))[sample.TRACK]
        title = next(column for column in track.columns if column.name == "title")
        declared = Capability.COMMENTS in dialect.capabilities
        wanted = (sample.TRACK_COMMENT, sample.TITLE_COMMENT) if declared else (None, None)
        assert (track.comment, title.comment) == wanted, explain_difference("COMMENTS", declared, track.comment)
        others = {column.name: column.comment for column in track.columns if column.name != "title"}
        assert set(others.values()) == {None}, f"Columns without a comment have {others}: use None for no comment."

    @recommended(Capability.PRIMARY_KEYS)
    async def test_primary_keys_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        tables = await inspect(opened)
        keys = {name: tables[name].primary_key for name in (sample.TRACK, sample.RATING)}
        declared = Capability.PRIMARY_KEYS in dialect.capabilities
        wanted = {sample.TRACK: ("id",), sample.RATING: ("judge", "track_id")}
        assert keys == (wanted if declared else dict.fromkeys(wanted, ())), (
            explain_difference("PRIMARY_KEYS", declared, keys) + " A composite key's columns come in key order."
        )

    @recommended(Capability.FOREIGN_KEYS)
    async def test_foreign_keys_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        tables = await inspect(opened)
        keys = [
            (key.relation.name, key.columns, key.references.name, key.referenced_columns)
            for name in (sample.RATING, sample.TRACK)
            for key in tables[name].foreign_keys
        ]
        declared = Capability.FOREIGN_KEYS in dialect.capabilities
        wanted = [
            (sample.RATING, ("track_id",), sample.TRACK, ("id",)),
            (sample.TRACK, ("genre_id",), sample.GENRE, ("id",)),
        ]
        assert keys == (wanted if declared else []), explain_difference("FOREIGN_KEYS", declared, keys)
        told = {action for name in (sample.RATING, sample.TRACK) for action in _actions(tables[name])}
        assert told <= {None, "NO ACTION", "RESTRICT"}, (
            f"The foreign keys of the sample say nothing of ON UPDATE and ON DELETE, and {told} was reported."
        )

    @recommended(Capability.FOREIGN_KEYS)
    async def test_a_composite_foreign_key_pairs_its_columns(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.FOREIGN_KEYS not in dialect.capabilities or Capability.PRIMARY_KEYS in self.engine_lacks:
            return
        keys = (await inspect(opened))[sample.APPEAL].foreign_keys
        told = [{*zip(key.columns, key.referenced_columns, strict=False)} for key in keys]
        assert told == [{("rater", "judge"), ("rated", "track_id")}], (
            f"The foreign key of {sample.APPEAL} is reported as {told}: rater points to judge, rated to track_id."
            " Read both sides in the order of the key's columns."
        )

    @recommended(Capability.FOREIGN_KEYS)
    async def test_every_foreign_key_of_a_table_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.FOREIGN_KEYS not in dialect.capabilities or Capability.PRIMARY_KEYS in self.engine_lacks:
            return
        keys = (await inspect(opened))[sample.KIN].foreign_keys
        told = sorted((key.columns, key.references.name, key.referenced_columns) for key in keys)
        wanted = sorted(((column,), table, ("id",)) for column, table in sample.KIN_KEYS.items())
        assert told == wanted, (
            f"The foreign keys of {sample.KIN} are reported as {told}: two lead to one table, and one leads to the"
            " table itself. Tell keys apart by their own names, not by tables or columns."
        )

    @recommended(Capability.FOREIGN_KEYS)
    async def test_what_a_foreign_key_does_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.FOREIGN_KEYS not in dialect.capabilities or not self._alters:
            return
        integer, where = self._types()["integer"], opened.config
        key = f"FOREIGN KEY (id) REFERENCES {sample.GENRE} (id) ON DELETE CASCADE"
        try:
            where = await self._change(where, f"CREATE TABLE {sample.LATER} (id {integer}, {key})")
        except Exception:
            return  # an engine whose keys do nothing, or without keys
        try:
            async with opened_again(opened, where) as changed:
                keys = (await inspect(changed, [sample.LATER]))[sample.LATER].foreign_keys
        finally:
            await self._change(where, f"DROP TABLE {sample.LATER}")
        assert len(keys) == 1, f"A table with one foreign key is reported with {len(keys)}."
        told = keys[0]
        assert (told.on_delete, told.on_update) in {("CASCADE", each) for each in (None, "NO ACTION", "RESTRICT")}, (
            f"A foreign key ON DELETE CASCADE is reported with on_delete={told.on_delete!r} and"
            f" on_update={told.on_update!r}."
        )

    @recommended(Capability.PRIMARY_KEYS)
    async def test_every_unique_constraint_of_a_table_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.PRIMARY_KEYS not in dialect.capabilities:
            return
        kin = (await inspect(opened))[sample.KIN]
        told = {each.columns for each in kin.constraints if each.type == "UNIQUE"}
        told |= {index.parts for index in kin.indexes if index.unique}
        assert told >= {*sample.KIN_UNIQUE}, (
            f"{sample.KIN_UNIQUE} of {sample.KIN} are unique, and {sorted(told)} are reported: tell constraints apart"
            " by their names, not by their kinds or columns."
        )

    @recommended(Capability.PRIMARY_KEYS)
    async def test_a_unique_constraint_is_not_told_as_the_primary_key(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        if Capability.PRIMARY_KEYS not in dialect.capabilities:
            return
        appeal = (await inspect(opened))[sample.APPEAL]
        assert [each.columns for each in appeal.constraints if each.type == "PRIMARY KEY"] == [("id",)], (
            f"The constraints of {sample.APPEAL} are reported as {appeal.constraints}; its one primary key is id."
        )
        unique = [each.columns for each in appeal.constraints if each.type == "UNIQUE"]
        indexed = [index.parts for index in appeal.indexes if index.unique and not index.primary]
        assert ("rated", "code") in unique + indexed, (
            f"(rated, code) of {sample.APPEAL} is unique; reported are the constraints {unique} "
            f"and the indexes {indexed}."
        )

    @recommended(Capability.FOREIGN_KEYS)
    async def test_keys_and_constraints_have_their_names(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if not {Capability.FOREIGN_KEYS, Capability.PRIMARY_KEYS} <= dialect.capabilities:
            return
        appeal = (await inspect(opened))[sample.APPEAL]
        keys = {key.name is not None for key in appeal.foreign_keys}
        unique = {each.name is not None for each in appeal.constraints if each.type == "UNIQUE"}
        assert not unique or not keys or unique == keys, (
            f"The foreign keys of {sample.APPEAL} are reported with the names {keys}, the "
            f"constraints with {unique}. If the engine names them, report both names: errors "
            "mention them."
        )

    @recommended(Capability.PRIMARY_KEYS)
    async def test_a_column_s_default_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.PRIMARY_KEYS not in dialect.capabilities:
            return
        columns = {column.name: column.default for column in (await inspect(opened))[sample.APPEAL].columns}
        assert "3" in (columns["grade"] or ""), f"TableColumn.default of grade is {columns['grade']!r}; it is 3."
        assert columns["code"] is None, f"TableColumn.default of code is {columns['code']!r}; there is none."

    @recommended
    async def test_a_generated_column_is_told_with_what_it_is_made_of(self, opened: OpenDatabase) -> None:
        if not self.generated:
            return
        columns = {column.name.lower(): column for column in (await inspect(opened))[sample.MADE].columns}
        assert columns.keys() == {"id", "made"}, f"Of the columns id and made only {sorted(columns)} are reported."
        told = {name: column.generated for name, column in columns.items()}
        assert told["id"] is None, f"TableColumn.generated of id is {told['id']!r}, and it is not a generated column."
        assert re.search(r"\bid\b", told["made"] or "", re.IGNORECASE), (
            f"TableColumn.generated of made is {told['made']!r}; it is id + 1. The core hides a "
            "column that is computed from a hidden one, and it needs this expression to do so."
        )
        assert columns["made"].default is None, (
            f"TableColumn.default of made is {columns['made'].default!r}: it has none."
        )

    @recommended(Capability.PRIMARY_KEYS)
    async def test_a_check_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.PRIMARY_KEYS not in dialect.capabilities:
            return
        tables = await inspect(opened)
        told = [each.definition or "" for each in tables[sample.APPEAL].constraints if each.type == "CHECK"]
        assert any("grade" in definition.lower() for definition in told), (
            f"The checks of {sample.APPEAL} are reported as {told}; report CHECK (grade > 0), with its definition."
        )
        checks = [each.definition or "" for each in tables[sample.KIN].constraints if each.type == "CHECK"]
        missing = [each for each in sample.KIN_CHECKS if not any(each.split()[-1] in told for told in checks)]
        assert not missing, f"{sample.KIN} has two checks of one column, and of them {missing} were left out: {checks}."

    @required
    async def test_the_catalog_names_columns_as_results_do(
        self, gateway: Gateway, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        for table in (await inspect(opened, (sample.TRACK, sample.LISTING, sample.ODD))).values():
            name = dialect.quote(sample.stored_name(dialect, table.relation.name))
            result = await ask(gateway, f"SELECT * FROM {name}")
            stored = [sample.stored_name(dialect, column.name) for column in table.columns]
            assert [column.name for column in result.columns] == stored, (
                f"The inspector reports the columns {stored} of {name}, and SELECT * returns"
                f" {[column.name for column in result.columns]}: report names as they are stored."
            )

    @recommended
    async def test_the_definition_of_a_view_is_whole(self, opened: OpenDatabase) -> None:
        tables = await inspect(opened)
        definition = tables[sample.LISTING].definition
        assert definition, (
            f"inspector.tables() gave no definition of the view {sample.LISTING}. Agents read it "
            "to understand the view, and without it restricted roles may read no view: set "
            "Table.definition."
        )
        assert all(name in definition.lower() for name in (sample.GENRE, "genre_id")), (
            f"inspector.tables() gave {definition!r} as the definition of {sample.LISTING}: return all of it."
        )
        long = tables[sample.LONG_VIEW].definition or ""
        assert sample.LAST in long.lower(), (
            f"inspector.tables() gave {len(long)} characters of the definition of {sample.LONG_VIEW}, without its end:"
            " return all of it. Some catalogs cut a column and have another one for the whole text."
        )
        assert "'Kit A'" in long, f"The definition of {sample.LONG_VIEW} has no 'Kit A' any more: return it unchanged."

    @recommended
    async def test_the_catalog_is_read_in_bulk(self, opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[Request] = []
        executor = opened.executor
        answering: Callable[[Request], AbstractAsyncContextManager[RowStream]] = executor.open

        def open_and_note(request: Request) -> AbstractAsyncContextManager[RowStream]:
            asked.append(request)
            return answering(request)

        monkeypatch.setattr(executor, "open", open_and_note)
        counts: list[int] = []
        for names in ([sample.TRACK], []):
            asked.clear()
            await inspect(opened, names)
            counts.append(len(asked))
        assert counts[1] < min(counts[0] + len(TABLES) - 1, HANDFUL), (
            f"One relation took {counts[0]} queries, all of them {counts[1]}: read all relations "
            "at once, in a few queries."
        )
        least = min((request.limits.max_rows for request in asked), default=MANY_COLUMNS)
        assert least >= MANY_COLUMNS, (
            f"The catalog is read with limits.max_rows={least}, which is a caller's limit: a schema of a few hundred"
            " tables has more columns. Give the inspector's requests limits of their own."
        )

    @capability(Capability.INDEXES)
    async def test_the_parts_of_an_index_are_told_in_their_order(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.INDEXES not in dialect.capabilities or Capability.INDEXES in self.engine_lacks:
            return
        indexes = (await inspect(opened))[sample.APPEAL].indexes
        told = [(index.parts, index.unique, index.primary) for index in indexes if index.name == sample.APPEAL_INDEX]
        assert told == [(("rated", "id", "grade"), True, False)], (
            f"The unique index on rated, id and grade, in this order, is reported as {told}."
        )

    @capability(Capability.INDEXES)
    async def test_every_index_of_a_table_is_told(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.INDEXES not in dialect.capabilities or Capability.INDEXES in self.engine_lacks:
            return
        indexes = (await inspect(opened))[sample.KIN].indexes
        told = {index.name: index.parts for index in indexes if index.name in sample.KIN_INDEXES}
        assert told == sample.KIN_INDEXES, (
            f"The indexes of {sample.KIN} are {sample.KIN_INDEXES}, and {told} was reported: tell indexes apart by"
            " their names, not by their columns."
        )

    @capability(Capability.INDEXES)
    async def test_an_expression_of_an_index_is_told_in_its_place(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.INDEXES not in dialect.capabilities or await opened.inspector.fingerprint() is None:
            return  # without indexes, or without a way to change the schema
        types = self._types()
        where = await self._change(
            opened.config, f"CREATE TABLE {sample.LATER} (id {types['integer']}, note {types['text']})"
        )
        try:
            where = await self._change(where, f"CREATE INDEX {sample.LATER}_parts ON {sample.LATER} (LOWER(note), id)")
            async with opened_again(opened, where) as changed:
                indexes = (await inspect(changed, [sample.LATER]))[sample.LATER].indexes
        except Exception:
            return  # an engine whose indexes have no expressions
        finally:
            await self._change(where, f"DROP TABLE {sample.LATER}")
        told = [[part.lower() for part in index.parts] for index in indexes]
        assert any(len(parts) == 2 and "note" in parts[0] and parts[1] == "id" for parts in told), (
            f"The index on LOWER(note), id was reported as {told}: an expression is a part too, "
            "in its place and as text."
        )

    @capability(Capability.ROW_ESTIMATES)
    async def test_a_row_estimate_is_near_the_truth(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.ROW_ESTIMATES not in dialect.capabilities:
            return
        tables = await inspect(opened, [sample.GENRE, sample.TRACK, sample.LISTING])
        estimates = [tables[name].row_estimate for name in (sample.GENRE, sample.TRACK)]
        assert all(estimate is None or 0 < estimate < 100 for estimate in estimates), (
            f"Tables of 3 and of 5 rows are estimated to have {estimates}: use None for unknown, never 0 or -1."
        )
        view = tables[sample.LISTING].row_estimate
        assert view is None, f"The view {sample.LISTING} is estimated to have {view} rows: use None for unknown."

    @capability(Capability.INDEXES)
    async def test_indexes_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        indexes = (await inspect(opened))[sample.TRACK].indexes
        told = [(index.parts, index.unique) for index in indexes if index.name == sample.TITLE_INDEX]
        declared = Capability.INDEXES in dialect.capabilities
        assert (told == [(("title",), False)]) if declared else not indexes, explain_difference(
            "INDEXES", declared, indexes
        )

    @capability(Capability.ROW_ESTIMATES)
    async def test_row_estimates_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        estimate = (await inspect(opened, [sample.TRACK]))[sample.TRACK].row_estimate
        declared = Capability.ROW_ESTIMATES in dialect.capabilities
        assert (estimate is not None) == declared, explain_difference("ROW_ESTIMATES", declared, estimate)

    @capability(Capability.CATALOGS)
    async def test_catalogs_are_told_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        catalog = (await inspect(opened))[sample.TRACK].relation.catalog
        declared = Capability.CATALOGS in dialect.capabilities
        assert (catalog is not None) == declared, explain_difference("CATALOGS", declared, catalog)

    @recommended
    async def test_the_fingerprint_stays_while_nothing_changes(self, opened: OpenDatabase) -> None:
        first, second = [await opened.inspector.fingerprint() for _ in range(2)]
        assert first == second, "inspector.fingerprint() changes by itself: everything would be read again each time."

    @recommended
    async def test_the_fingerprint_changes_with_the_schema(self, opened: OpenDatabase) -> None:
        before, where = await opened.inspector.fingerprint(), opened.config
        if before is None:
            return
        types, created = self._types(), set[str | None]()
        for change in sample.changes(types["integer"], types["text"], self.engine_lacks):
            where = await self._change(where, change)
            async with opened_again(opened, where) as changed:
                after = await changed.inspector.fingerprint()
            creates = change.startswith("CREATE")
            assert after not in {before, *(created if creates else ())}, (
                f"inspector.fingerprint() is the same after {change}: an outdated catalog would "
                "be used after a restart, and for roles. It must cover relations, columns with their types and "
                "their order, what may be null, keys and the queries of views, and must ask the database each time."
            )
            created |= {after} if creates else set()
            before = after


def explain_difference(capability: str, declared: bool, told: object) -> str:
    """Return what is wrong about a capability, and what to do."""
    if declared:
        return (
            f"Capability.{capability} is declared, and the inspector reported {told!r}. Fix it, or do not declare it."
        )
    return (
        f"Capability.{capability} is not declared, and the inspector reported {told!r}. "
        "Declare it: the core relies on it."
    )
