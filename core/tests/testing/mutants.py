"""Plugins with one deliberate fault each, made of the real SQLite plugin. The kit must catch every one.

A mutant is an entry point of its own; its name is the dialect's, unless that is the fault.
"""

import asyncio
import contextlib
import dataclasses
import html
import json
import re
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from dragoman import (
    Capability,
    Column,
    ColumnProfile,
    ConnectionFailed,
    Database,
    DialectPlugin,
    DragomanError,
    Encoded,
    Executor,
    Expression,
    Finding,
    Inspection,
    Inspector,
    InvalidSql,
    Kind,
    Plan,
    QueryError,
    Relation,
    Request,
    RowStream,
    Schema,
    Scope,
    Statement,
    TableNotFound,
    encode,
    hookimpl,
    profile_columns,
)
from dragoman_sqlite.plugin import plugin as sqlite

PLUGINS: dict[str, "Mutant"] = {}
CATCHES: dict[str, tuple[str, str]] = {}
"""The case of the kit that must fail for each mutant, and words of its message that name the cause."""


def file_of(database: Database) -> Path:
    """The file that a sample is in."""
    assert database.database is not None
    return database.folder / database.database


class Wrapped(Executor):
    """The real executor, behind one fault."""

    def __init__(self, inner: Executor, database: Database) -> None:
        self.inner = inner
        self.database = database

    def open(self, request):
        return self.inner.open(request)

    async def describe(self, request):
        return await self.inner.describe(request)

    async def explain(self, request, options):
        return await self.inner.explain(request, options)

    async def aclose(self):
        await self.inner.aclose()


class Told(Inspector):
    """The real inspector; `change` is the fault."""

    def __init__(self, inner: Inspector, executor: Executor) -> None:
        self.inner = inner
        self.executor = executor

    def change(self, table):
        return table

    async def version(self):
        return await self.inner.version()

    async def schemas(self):
        return await self.inner.schemas()

    async def tables(self, scope):
        inspection = await self.inner.tables(scope)
        return dataclasses.replace(inspection, tables=tuple(self.change(table) for table in inspection.tables))


class Mutant(DialectPlugin):
    """Owns a dialect made of SQLite's; a fault replaces its executor or its inspector."""

    executor_fault: type[Wrapped] | None = None
    inspector_fault: type[Told] | None = None

    def __init__(self, mutant: str, /, **changes) -> None:
        self.dialect = dataclasses.replace(sqlite.dialect, **{"name": mutant, **changes})

    @hookimpl
    def executor(self, database: Database) -> Executor:
        executor = sqlite.executor(database)
        return self.executor_fault(executor, database) if self.executor_fault else executor

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        inspector = sqlite.inspector(database, executor)
        return self.inspector_fault(inspector, executor) if self.inspector_fault else inspector


def mutant(case: str, *, says: str):
    """Register a plugin whose executor, inspector or own class has a fault, under the fault's name."""

    def register(fault: type) -> type:
        name = fault.__name__
        plugin = fault(name) if issubclass(fault, Mutant) else Mutant(name)
        if issubclass(fault, Wrapped):
            plugin.executor_fault = fault
        elif issubclass(fault, Told):
            plugin.inspector_fault = fault
        PLUGINS[name], CATCHES[name] = plugin, (case, says)
        return fault

    return register


def described(mutant: str, case: str, /, *, says: str, **changes) -> None:
    """Register a plugin that works and describes itself wrongly."""
    PLUGINS[mutant], CATCHES[mutant] = Mutant(mutant, **changes), (case, says)


class Rewritten(Wrapped):
    """Decodes the real rows and hands `rows` on in their place."""

    def columns(self, columns):
        return columns

    def rows(self, rows):
        return rows

    @asynccontextmanager
    async def open(self, request):
        async with self.inner.open(request) as stream:
            yield RowStream(self.columns(list(stream.columns)), self.batches(stream))

    async def batches(self, stream) -> AsyncIterator[Encoded]:
        async for batch in stream.batches:
            rows = [json.loads(row) for row in batch.rows] if isinstance(batch, Encoded) else batch
            yield encode(stream.columns, self.rows(rows))


class Bare(Wrapped):
    """Python's own sqlite3 in a thread, without any of the care."""

    def connect(self):
        return sqlite3.connect(file_of(self.database), check_same_thread=False)

    def execute(self, connection, request):
        return connection.execute(request.statement, tuple(request.parameters))

    def fetch(self, request):
        connection = self.connect()
        try:
            cursor = self.execute(connection, request)
            columns = [Column(entry[0], "any", Kind("any")) for entry in cursor.description or ()]
            rows = cursor.fetchmany(request.limits.max_rows + 1)
            connection.commit()
        except sqlite3.Error as error:
            raise self.translated(error) from None
        finally:
            connection.close()
        return columns, rows

    def translated(self, error):
        message = str(error)
        if message.startswith("no such table: "):
            return TableNotFound(message, identifier=message[15:])
        return QueryError(message) if "overflow" in message else InvalidSql(message)

    @asynccontextmanager
    async def open(self, request):
        columns, rows = await asyncio.to_thread(self.fetch, request)
        yield RowStream(columns, self.once(rows))

    async def once(self, rows):
        yield rows


# Errors


class Rewording(Wrapped):
    """Raises the dialect's errors in other words."""

    def reword(self, error):
        return error

    @asynccontextmanager
    async def open(self, request):
        try:
            async with self.inner.open(request) as stream:
                yield stream
        except DragomanError as error:
            raise self.reword(error) from None


@mutant("a_suggestion_is_in_words_of_its_own", says="repeats what the database said")
class SuggestsWhatTheDatabaseSaid(Rewording):
    def reword(self, error):
        return type(error)(error.message, suggestion=f"The database says: {error.message}")


@mutant("an_error_names_nothing_that_the_statement_does_not", says="leave out what the database proposes")
class ProposesWhatMayBeHidden(Rewording):
    def reword(self, error):
        return type(error)(f"{error.message}; maybe you meant kit_track or kit_genre")


# Rows and values


@mutant("a_result_of_one_row_more_is_truncated_and_says_so", says="at least limits.max_rows + 1 rows")
class StopsAtTheLimit(Rewritten):
    """Never tells of the row after the limit."""

    @asynccontextmanager
    async def open(self, request):
        async with super().open(request) as stream:
            yield RowStream(stream.columns, self.cut(stream, request.limits.max_rows))

    async def cut(self, stream, left):
        async for batch in stream.batches:
            yield Encoded.of(batch.rows[:left], batch.notices)
            left -= len(batch.rows[:left])


@mutant("nothing_is_lost_or_repeated_between_batches", says="between batches")
class LosesRowsBetweenBatches(Rewritten):
    def rows(self, rows):
        return rows[:-1] if len(rows) > 100 else rows


@mutant("a_row_limit_keeps_the_order", says="the order")
class LosesTheOrder(Rewritten):
    def rows(self, rows):
        return sorted(rows, key=str)


@mutant("two_columns_of_one_name_both_survive", says="never as mappings by name")
class MergesColumnsOfOneName(Rewritten):
    @asynccontextmanager
    async def open(self, request):
        async with self.inner.open(request) as stream:
            names = [column.name for column in stream.columns]
            kept = [at for at, name in enumerate(names) if name not in names[:at]]
            yield RowStream([stream.columns[at] for at in kept], self.merged(stream, kept))

    async def merged(self, stream, kept):
        async for batch in stream.batches:
            rows = [json.loads(row) for row in batch.rows]
            yield [[row[at] for at in kept] for row in rows]


@mutant("a_wide_result_has_each_value_in_its_column", says="each value in its own column")
class SortsWideRows(Rewritten):
    """Hands on wide rows as mappings that are sorted by name."""

    def rows(self, rows):
        return [row if len(row) < 20 else sorted(row, key=str) for row in rows]


@mutant("what_is_there_now_is_answered", says="keep no answers")
class KeepsAnswers(Wrapped):
    """Answers a statement that it knows from memory."""

    kept: ClassVar[dict] = {}

    @asynccontextmanager
    async def open(self, request):
        key = (file_of(self.database), request.statement, tuple(map(repr, request.parameters)))
        if key not in self.kept:
            async with self.inner.open(request) as stream:
                self.kept[key] = list(stream.columns), [batch async for batch in stream.batches]
        columns, batches = self.kept[key]
        yield RowStream(columns, self.again(batches))

    async def again(self, batches):
        for batch in batches:
            yield batch


@mutant("an_empty_result_has_its_columns", says="not from its first row")
class ForgetsTheColumnsOfAnEmptyResult(Bare):
    def fetch(self, request):
        columns, rows = super().fetch(request)
        return (columns if rows else []), rows


@mutant("a_value_is_exact[integer_beyond_2_53]", says="as text where it rounds")
class RoundsLargeIntegers(Rewritten):
    def rows(self, rows):
        return [[float(v) if isinstance(v, str) and v.lstrip("-").isdigit() else v for v in row] for row in rows]


@mutant("null_and_empty_text_differ", says="return None for NULL")
class MakesNullAnEmptyText(Rewritten):
    def rows(self, rows):
        return [["" if value is None else value for value in row] for row in rows]


@mutant("a_value_is_exact[unicode]", says="exact values")
class StripsTexts(Rewritten):
    def rows(self, rows):
        return [[v.encode("ascii", "ignore").decode() if isinstance(v, str) else v for v in row] for row in rows]


# Errors


@mutant("the_executor_s_own_errors_are_ours[table]", says="Translate the driver's exceptions")
class LetsTheDriversErrorsOut(Bare):
    def translated(self, error):
        return error


@mutant("the_executor_s_own_errors_are_ours[run_time]", says="must be QUERY_ERROR")
class CallsEveryErrorInvalidSql(Bare):
    def translated(self, error):
        return InvalidSql(str(error))


@mutant("an_unknown_table_is_named_and_the_near_one_suggested", says="set the error's `identifier`")
class DoesNotNameWhatIsUnknown(Bare):
    def translated(self, error):
        return TableNotFound("no such table") if "no such table" in str(error) else super().translated(error)


@mutant("no_error_shows_what_must_not_be_shown", says="leave out addresses and secrets")
class ShowsThePath(Bare):
    def translated(self, error):
        error = super().translated(error)
        error.message += f" in {self.database.folder.absolute()}"
        return error


@mutant("a_database_that_cannot_be_reached_is_named_and_its_address_is_not", says="leave out addresses and secrets")
class ShowsThePassword(Rewording):
    def reword(self, error):
        password = self.database.password.reveal() if self.database.password else ""
        error.message = f"{error.message} as user:{password}"
        return error


@mutant("a_failed_statement_spoils_nothing", says="roll back, or close the connection")
class DiesOfOneFailure(Wrapped):
    failed = False

    @asynccontextmanager
    async def open(self, request):
        if self.failed:
            raise QueryError("current transaction is aborted", suggestion="Roll back.")
        try:
            async with self.inner.open(request) as stream:
                yield stream
        except Exception:
            type(self).failed = True
            raise


# Work


@mutant("a_cancelled_query_is_ended_in_the_database", says="interrupt or cancel")
class WorksOnWhenCancelled(Bare):
    """Cancelling only stops waiting for the thread; the statement runs on until the test ends it."""

    running: ClassVar = []

    def connect(self):
        connection = super().connect()
        self.running.append(connection)
        return connection

    async def aclose(self):
        for connection in self.running:
            with contextlib.suppress(sqlite3.ProgrammingError):  # it is closed already
                connection.interrupt()
        self.running.clear()


@mutant("the_executor_keeps_the_deadline_by_itself", says="ignored limits.timeout")
class IgnoresItsDeadline(Wrapped):
    def open(self, request):
        return self.inner.open(dataclasses.replace(request, limits=dataclasses.replace(request.limits, timeout=60)))


@mutant("a_slow_query_does_not_hold_up_others", says="await the driver, or call it in a thread")
class BlocksTheEventLoop(Bare):
    @asynccontextmanager
    async def open(self, request):
        if "t15" in request.statement:
            time.sleep(6)  # as a driver does that is not asynchronous
            raise QueryError("It ended.")
        columns, rows = self.fetch(request)
        yield RowStream(columns, self.once(rows))


@mutant("queries_at_once_get_each_its_own_answer", says="store nothing of a request")
class AnswersQueriesWithEachOthersRows(Wrapped):
    latest: ClassVar[Request]

    @asynccontextmanager
    async def open(self, request):
        type(self).latest = request
        await asyncio.sleep(0.05)
        async with self.inner.open(self.latest) as stream:
            yield stream


# Safety


@mutant("writes_are_refused_by_the_engine_itself", says="Open sessions read-only")
class LetsWritesThrough(Bare):
    """A connection that may write, committed at the end."""


@mutant("a_second_statement_is_refused_by_the_driver_itself", says="prepared or extended protocol")
class RunsSeveralStatements(Bare):
    def execute(self, connection, request):
        statements = request.statement.split(";")
        return [connection.execute(statement, tuple(request.parameters)) for statement in statements][-1]


@mutant("a_hostile_parameter_is_only_a_value[0]", says="bind parameters, never paste them")
class PastesParameters(Bare):
    def execute(self, connection, request):
        statement = request.statement
        for value in request.parameters:
            statement = statement.replace("?", f"'{value}'", 1)
        return connection.execute(statement)


# The catalog


@mutant("nullable_columns_and_no_others_are_told_as_nullable", says="It may be inverted")
class InvertsNullable(Told):
    def change(self, table):
        columns = tuple(dataclasses.replace(column, nullable=not column.nullable) for column in table.columns)
        return dataclasses.replace(table, columns=columns)


@mutant("primary_keys_are_told_as_declared", says="in key order")
class SortsCompositeKeys(Told):
    def change(self, table):
        constraints = tuple(
            dataclasses.replace(constraint, columns=tuple(sorted(constraint.columns, reverse=True)))
            for constraint in table.constraints
        )
        return dataclasses.replace(table, constraints=constraints)


@mutant("foreign_keys_are_told_as_declared", says="FOREIGN_KEYS is declared")
class ForgetsForeignKeys(Told):
    def change(self, table):
        return dataclasses.replace(table, foreign_keys=())


@mutant("every_relation_is_told", says="must report tables and views")
class TellsNoViews(Told):
    async def tables(self, scope):
        inspection = await super().tables(scope)
        return dataclasses.replace(inspection, tables=tuple(t for t in inspection.tables if t.type != "view"))


@mutant("a_scope_of_names_restricts", says="respect Scope.names")
class IgnoresTheScope(Told):
    async def tables(self, scope):
        return await super().tables(type(scope)())


@mutant("columns_are_told_in_their_order", says="in the order of the table")
class TellsColumnsOutOfOrder(Told):
    def change(self, table):
        return dataclasses.replace(table, columns=table.columns[::-1])


# Life


@mutant("closing_leaves_no_process_and_no_thread_behind", says="the threads ['left behind']")
class LeavesAThreadBehind(Wrapped):
    def __init__(self, inner, database):
        super().__init__(inner, database)
        self.end = threading.Event()

    def open(self, request):
        threading.Thread(target=self.end.wait, daemon=True, name="left behind", args=(20,)).start()
        return super().open(request)


@mutant("closing_leaves_no_process_and_no_thread_behind", says="left 1 processes")
class LeavesItsProcessesBehind(Wrapped):
    left: ClassVar = []

    async def aclose(self):
        self.left.append(self.inner)


@mutant("opening_a_database_connects_to_nothing", says="connect at the first statement")
class ConnectsWhenMade(Wrapped):
    def __init__(self, inner, database):
        super().__init__(inner, database)
        threading.Thread(target=threading.Event().wait, daemon=True, name="eager", args=(5,)).start()


# What a plugin says of itself

CAN = sqlite.dialect.capabilities
described(
    "DoesNotDeclareForeignKeys",
    "foreign_keys_are_told_as_declared",
    says="Declare it",
    capabilities=CAN - {Capability.FOREIGN_KEYS},
)
described(
    "DoesNotDeclareDescribe",
    "columns_can_be_had_without_running_as_declared",
    says="DESCRIBE is not declared and works",
    capabilities=CAN - {Capability.DESCRIBE},
)
described(
    "DeclaresComments",
    "comments_are_told_as_declared",
    says="COMMENTS is declared",
    capabilities=CAN | {Capability.COMMENTS},
)
described(
    "DeclaresCatalogs",
    "catalogs_are_told_as_declared",
    says="CATALOGS is declared",
    capabilities=CAN | {Capability.CATALOGS},
)
described(
    "DeclaresArrays",
    "an_array_is_exact[array]",
    says="override literals['array']",
    capabilities=CAN | {Capability.ARRAYS},
)
described(
    "DeclaresAGrammarThatItLacks",
    "an_own_grammar_reads_as_declared",
    says="Dialect.read is not set",
    capabilities=CAN | {Capability.GRAMMAR},
    read=None,
)
described(
    "CallsItselfSomethingElse",
    "the_dialect_answers_to_its_name",
    says="a name that it does not register",
    name="SomethingElse",
)
described("IsOfAnotherContract", "the_dialect_answers_to_its_name", says="contract version 99", contract=99)
described(
    "ForgetsAReservedWord",
    "words_that_need_quotes_are_declared",
    says="The engine does not take ['and'] as names of columns",
    reserved=sqlite.dialect.reserved - {"and"},
)
described(
    "TakesAValueForTheNameOfAColumn",
    "words_that_need_quotes_are_declared",
    says="The engine does not take ['current_date'] as names of columns",
    reserved=sqlite.dialect.reserved - {"current_date"},
)
described(
    "KnowsNoReservedWords",
    "names_that_need_quotes_are_told_as_stored_and_can_be_queried",
    says="check quote_marks and reserved",
    reserved=frozenset(),
)


@mutant("a_plan_can_be_had_without_running_the_query", says="it must only plan it")
class ExplainsByRunning(Wrapped):
    async def explain(self, request, options):
        async with self.inner.open(request) as stream:
            async for _ in stream.batches:
                pass
        return Plan(plan="SCAN", actual_time_ms=1.0)


@mutant("the_dialect_answers_to_its_name", says="did you mean validators")
class MisspelledHook(Mutant):
    """pluggy would never call it."""

    @hookimpl
    def validator(self, database: Database):
        return ()


@mutant("the_dialect_answers_to_its_name", says="it may take database, executor")
class MisspelledArgument(Mutant):
    @hookimpl
    def inspector(self, db: Database, executor: Executor):  # pyright: ignore[reportIncompatibleMethodOverride]
        return sqlite.inspector(db, executor)


@mutant("the_doctor_tells_findings_and_changes_nothing", says="how to prevent it")
class DoctorWithoutRemedy(Wrapped):
    async def doctor(self):
        return [Finding(severity="danger", subject="writable", message="Something could be written.", remedy="")]


@mutant("the_doctor_tells_findings_and_changes_nothing", says="it must only read")
class DoctorThatWrites(Wrapped):
    async def doctor(self):
        with contextlib.closing(sqlite3.connect(file_of(self.database))) as connection:
            connection.execute("INSERT INTO kit_genre (id, name) VALUES (99, 'Noise')")
            connection.commit()
        return ()


@mutant("the_doctor_of_an_unreachable_database_fails_without_secrets", says="shows the password or the path")
class DoctorThatTellsThePath(Wrapped):
    async def doctor(self):
        raise ConnectionFailed(f"There is no {self.database.database}.")


class Profiled(Told):
    """The real inspector with its profiles; `profile` is the fault."""

    def profile(self, profile):
        return profile

    async def profiles(self, tables, budget) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        told = await self.inner.profiles(tables, budget)
        return {relation: tuple(map(self.profile, own)) for relation, own in told.items()}


@mutant("values_that_are_told_stand_in_the_rows", says="never held ['FOLK'")
class FoldsValues(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, values=tuple(value.upper() for value in profile.values))


@mutant("values_that_are_told_stand_in_the_rows", says="kind 'all', and")
class CallsSomeValuesAll(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, values=profile.values[:1], fractions=profile.fractions[:1])


@mutant("values_that_are_told_stand_in_the_rows", says="Every kit_track.note is NULL; reported: 0")
class CountsNoNulls(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, null_fraction=0.0)


@mutant("values_are_told_as_declared", says=": not from 0 to 1")
class TellsPercent(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, null_fraction=100.0)


@mutant("values_are_told_as_declared", says="does not have")
class TellsOfOtherColumns(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, name=f"{profile.name}_2")


@mutant("no_more_values_are_told_than_asked_for", says="respect ProfileBudget.values")
class ForgetsTheBudget(Profiled):
    async def profiles(self, tables, budget):
        return await self.inner.profiles(tables, dataclasses.replace(budget, values=50))


@mutant("the_fingerprint_stays_while_nothing_changes", says="changes by itself")
class TellsTheTime(Told):
    async def fingerprint(self):
        return str(time.monotonic_ns())


@mutant("the_fingerprint_changes_with_the_schema", says="after CREATE TABLE")
class NeverChanges(Told):
    async def fingerprint(self):
        return await self.inner.version()


@mutant("the_fingerprint_changes_with_the_schema", says="after CREATE TABLE")
class RemembersItsFingerprint(Told):
    told = None

    async def fingerprint(self):
        self.told = self.told or await self.inner.fingerprint()
        return self.told


@mutant("the_fingerprint_changes_with_the_schema", says="after ALTER TABLE")
class CountsTables(Told):
    async def fingerprint(self):
        tables = (await self.tables(Scope())).tables
        return str([len(tables), *sorted(table.definition for table in tables if table.definition)])


@mutant("the_fingerprint_changes_with_the_schema", says="after CREATE VIEW")
class CountsColumns(Told):
    async def fingerprint(self):
        tables = (await self.tables(Scope())).tables
        return str(sorted((str(table.relation), *map(str, table.columns)) for table in tables))


# What careless authors did whose variants of the DuckDB example passed an earlier kit


@mutant("an_order_is_kept_across_batches", says="pass batches on in their order")
class HandsOnTheFirstBatchLast(Rewritten):
    async def batches(self, stream):
        first, *others = [batch async for batch in super().batches(stream)] or [Encoded.of([])]
        for batch in (*others, first):
            yield batch


@mutant("rows_come_in_batches", says="in one batch")
class FetchesAllAtOnce(Rewritten):
    async def batches(self, stream):
        rows = [row async for batch in super().batches(stream) for row in batch.rows]
        yield Encoded.of(rows, ())


@mutant("a_column_has_the_name_the_query_gives_it", says="return names unchanged")
class CutsColumnNames(Rewritten):
    def columns(self, columns):
        return [dataclasses.replace(column, name=column.name[:30]) for column in columns]


@mutant("what_a_query_made_goes_with_it", says="pieces of memory behind")
class KeepsWhatItOpened(Wrapped):
    kept: ClassVar[list[list[object]]] = []

    def open(self, request):
        self.kept.append([request])
        return self.inner.open(request)


@mutant("a_database_never_used_closes_quietly", says="close what was opened, once")
class ClosesWhatItNeverOpened(Wrapped):
    opened = None

    async def aclose(self):
        await self.inner.aclose()
        self.opened.close()  # pyright: ignore[reportAttributeAccessIssue]


@mutant("the_event_loop_goes_on_while_a_statement_begins", says="was blocked")
class ConnectsOnTheLoop(Wrapped):
    def open(self, request):
        time.sleep(0.3)  # as a driver does that is not asynchronous
        return self.inner.open(request)


@mutant("a_parameter_keeps_its_type_and_all_of_its_value[text that ends with blanks]", says="Bind a text that ends")
class StripsParameters(Wrapped):
    def open(self, request):
        stripped = [value.rstrip() if isinstance(value, str) else value for value in request.parameters]
        return self.inner.open(dataclasses.replace(request, parameters=stripped))


@mutant("each_of_many_parameters_has_its_place", says="those at the places [10, 11, 12]")
class TakesTenForOne(Wrapped):
    """Puts the first value for `$1` in place of the beginning of `$10`."""

    def open(self, request):
        values = list(request.parameters)
        return self.inner.open(dataclasses.replace(request, parameters=[*values[:9], *values[:1] * len(values[9:])]))


@mutant("each_of_many_parameters_has_its_place", says="those at the places [1, 2]")
class BindsInReverse(Wrapped):
    def open(self, request):
        return self.inner.open(dataclasses.replace(request, parameters=request.parameters[::-1]))


@mutant("a_parameter_keeps_its_type_and_all_of_its_value[long text]", says="Bind a long text")
class CutsLongParameters(Wrapped):
    def open(self, request):
        cut = [value[:8000] if isinstance(value, str) else value for value in request.parameters]
        return self.inner.open(dataclasses.replace(request, parameters=cut))


@mutant("foreign_keys_are_told_as_declared", says="nothing of ON UPDATE and ON DELETE")
class TellsThatAllCascade(Told):
    def change(self, table):
        keys = tuple(dataclasses.replace(key, on_delete="CASCADE") for key in table.foreign_keys)
        return dataclasses.replace(table, foreign_keys=keys)


@mutant("a_value_is_exact[percents_in_text]", says="exact values")
class HalvesPercents(Wrapped):
    """Formats each statement as drivers with `%s` do."""

    def open(self, request):
        return self.inner.open(dataclasses.replace(request, statement=request.statement.replace("%%", "%")))


@mutant("a_text_beside_parameters_is_what_is_written", says="only what is outside of quotes")
class HalvesPercentsBesideParameters(HalvesPercents):
    def open(self, request):
        return super().open(request) if request.parameters else self.inner.open(request)


@mutant("the_same_statement_has_the_limits_of_each_request", says="together with its limits")
class KeepsLimits(Wrapped):
    first: ClassVar[dict] = {}

    def open(self, request):
        limits = self.first.setdefault(request.statement, request.limits)
        return self.inner.open(dataclasses.replace(request, limits=limits))


@mutant("the_catalog_names_columns_as_results_do", says="report names as they are stored")
class TellsColumnsInLowerCase(Told):
    def change(self, table):
        columns = (dataclasses.replace(column, name=column.name.lower()) for column in table.columns)
        return dataclasses.replace(table, columns=tuple(columns))


@mutant("the_definition_of_a_view_is_whole", says="return all of it")
class CutsDefinitions(Told):
    def change(self, table):
        return dataclasses.replace(table, definition=table.definition and table.definition[:40])


@mutant("a_composite_foreign_key_pairs_its_columns", says="rater points to judge")
class SortsBothSidesOfAKey(Told):
    def change(self, table):
        keys = (
            dataclasses.replace(
                key, columns=tuple(sorted(key.columns)), referenced_columns=tuple(sorted(key.referenced_columns))
            )
            for key in table.foreign_keys
        )
        return dataclasses.replace(table, foreign_keys=tuple(keys))


@mutant("values_of_some_rows_are_not_told_as_all", says="From one row of three")
class CallsTheReadValuesAll(Profiled):
    def profile(self, profile):
        return dataclasses.replace(profile, kind="all")


@mutant("values_are_told_of_each_relation_that_was_asked_for", says="reported nothing about")
class TellsOfTheFirstRelation(Told):
    async def profiles(self, tables, budget):
        return await self.inner.profiles(tables[:1], budget)


@mutant("the_fingerprint_changes_with_the_schema", says="after CREATE TABLE kit_later (id VARCHAR")
class CountsNames(Told):
    async def fingerprint(self):
        tables = (await self.tables(Scope())).tables
        names = ((str(table.relation), *(column.name for column in table.columns)) for table in tables)
        return str([sorted(names), *sorted(table.definition for table in tables if table.definition)])


@mutant("the_fingerprint_changes_with_the_schema", says="after CREATE TABLE kit_later (note VARCHAR")
class CountsColumnsInNoOrder(Told):
    async def fingerprint(self):
        tables = (await self.tables(Scope())).tables
        return str([dataclasses.replace(table, columns=tuple(sorted(table.columns, key=str))) for table in tables])


@mutant("a_schema_of_many_relations_is_told_whole", says="were left out")
class LimitsTheCatalog(Told):
    async def tables(self, scope):
        inspection = await super().tables(scope)
        return dataclasses.replace(
            inspection, tables=tuple(t for t in inspection.tables if t.relation.name != "kit_many_5")
        )


@mutant("a_name_with_a_dot_is_one_name", says="split none of them")
class TakesNamesApart(Told):
    def change(self, table):
        last = table.relation.name.split(".")[-1]
        return dataclasses.replace(table, relation=dataclasses.replace(table.relation, name=last))


@mutant("a_type_is_told_with_its_length", says="precision, scale and length")
class TellsBareTypes(Told):
    def change(self, table):
        columns = (dataclasses.replace(column, type=column.type.split("(")[0]) for column in table.columns)
        return dataclasses.replace(table, columns=tuple(columns))


@mutant("the_definition_of_a_view_is_whole", says="set Table.definition")
class TellsNoDefinitions(Told):
    def change(self, table):
        return dataclasses.replace(table, definition=None)


@mutant("an_expression_of_an_index_is_told_in_its_place", says="an expression is a part")
class TellsPartsThatAreColumns(Told):
    def change(self, table):
        indexes = (
            dataclasses.replace(index, parts=tuple(part for part in index.parts if "(" not in part))
            for index in table.indexes
        )
        return dataclasses.replace(table, indexes=tuple(indexes))

    async def fingerprint(self):
        return await self.inner.fingerprint()


@mutant("closing_waits_for_the_clean_up_of_queries", says="wait for it in aclose")
class CleansUpInTheBackground(Wrapped):
    cleaning: ClassVar[set[asyncio.Task]] = set()

    @asynccontextmanager
    async def open(self, request):
        try:
            async with self.inner.open(request) as stream:
                yield stream
        finally:
            task = asyncio.create_task(asyncio.sleep(1))  # as the way to a server and back takes
            self.cleaning.add(task)
            task.add_done_callback(self.cleaning.discard)


@mutant("an_error_says_what_the_database_said", says="keep the first line of the driver's message")
class SaysThatItFailed(Bare):
    def translated(self, error):
        return QueryError("failed")


@mutant("a_plan_is_that_of_the_query", says="explain the statement of the request")
class ExplainsWhatItExplainedFirst(Wrapped):
    first: ClassVar[dict] = {}

    async def explain(self, request, options):
        return await self.inner.explain(self.first.setdefault(file_of(self.database), request), options)


@mutant("a_plan_has_the_form_that_was_asked_for[json]", says="respect ExplainOptions.format")
class PlansAsTextOnly(Wrapped):
    async def explain(self, request, options):
        return await self.inner.explain(request, dataclasses.replace(options, format="text"))


class BindsOtherwise(Wrapped):
    """Changes each parameter on its way to the driver."""

    def bind(self, value):
        return value

    def open(self, request):
        parameters = tuple(self.bind(value) for value in request.parameters)
        return self.inner.open(dataclasses.replace(request, parameters=parameters))


@mutant("a_parameter_alone_is_what_the_same_value_is_when_written[float without a fraction]", says="with its own type")
class BindsWholeFloatsAsIntegers(BindsOtherwise):
    def bind(self, value):
        return int(value) if isinstance(value, float) and value.is_integer() else value


@mutant("a_parameter_keeps_its_type_and_all_of_its_value[text of a date]", says="no number or boolean as text")
class BindsTextsAsNumbers(BindsOtherwise):
    def bind(self, value):
        return int(value[:4]) if isinstance(value, str) and value[:4].isdigit() else value


@mutant("a_column_s_name_may_end_with_a_blank", says="return names unchanged")
class StripsColumnNames(Rewritten):
    def columns(self, columns):
        return [dataclasses.replace(column, name=column.name.strip()) for column in columns]


@mutant("every_relation_s_schema_is_among_the_schemas", says="inspector.schemas() returns")
class TellsNoSchemas(Told):
    async def schemas(self):
        return []


@mutant("what_stands_in_an_engine_s_own_schema_is_the_engine_s", says="set Table.system")
class CallsItsSchemaTheEngines(Told):
    async def schemas(self):
        return [dataclasses.replace(schema, system=True) for schema in await self.inner.schemas()]


@mutant("schemas_are_searched_in_an_order", says="each place belongs to one schema")
class SearchesAllSchemasFirst(Told):
    async def schemas(self):
        return [Schema(name=name, search_order=0) for name in ("main", "temp")]


@mutant("the_only_schema_is_the_only_one", says="would be visible")
class TellsASecondSchema(Told):
    async def schemas(self):
        return [Schema(name=name) for name in ("main", "temp")]


@mutant("every_schema_that_is_told_is_there", says="inspector.schemas() returns ['ghost']")
class InventsASchema(Told):
    async def schemas(self):
        return [*await self.inner.schemas(), Schema(name="ghost")]


@mutant("a_table_created_later_is_told", says="ask the database at every call")
class KeepsItsCatalog(Told):
    kept: Inspection | None = None

    async def tables(self, scope):
        self.kept = self.kept or await self.inner.tables(Scope())
        tables = tuple(table for table in self.kept.tables if table.relation in scope)
        return dataclasses.replace(self.kept, tables=tables)


@mutant("a_table_with_quotes_in_its_name_is_told_and_can_be_queried", says="leave no table out because of its name")
class LeavesOutNamesWithQuotes(Told):
    async def tables(self, scope):
        told = await self.inner.tables(scope)
        return dataclasses.replace(told, tables=tuple(each for each in told.tables if '"' not in each.relation.name))


@mutant("a_table_of_many_columns_is_told_whole", says="Of a table of 101 columns 50 were reported")
class LimitsColumns(Told):
    def change(self, table):
        return dataclasses.replace(table, columns=table.columns[:50])


@mutant("a_table_of_many_columns_is_told_whole", says="as a number")
class SortsPlacesAsTexts(Told):
    def change(self, table):
        columns = dict(enumerate(table.columns, 1))
        return dataclasses.replace(table, columns=tuple(columns[place] for place in sorted(columns, key=str)))


class Sharing(Mutant):
    """Makes one executor, for each name that `name_of` returns."""

    made: ClassVar[dict] = {}

    def name_of(self, database):
        return ""

    @hookimpl
    def executor(self, database: Database) -> Executor:
        made = self.made.setdefault(type(self), {})
        return made.setdefault(self.name_of(database), Gone(sqlite.executor(database), database, made))


class Gone(Wrapped):
    """Is made anew for the next gateway."""

    def __init__(self, inner: Executor, database: Database, made: dict) -> None:
        super().__init__(inner, database)
        self.made = made

    async def aclose(self):
        self.made.clear()
        await super().aclose()


@mutant("a_second_database_is_not_taken_for_the_first", says="an executor and an inspector for each database")
class SharesOneExecutor(Sharing):
    pass


@mutant("callers_in_a_hurry_do_not_close_the_database_for_others", says="limit the time for connecting")
class ConnectsInTheTimeOfTheCaller(Wrapped):
    def open(self, request):
        if request.limits.timeout < 0.01:
            raise ConnectionFailed("It does not answer in time.")
        return super().open(request)


@mutant("a_copy_of_a_file_is_another_database", says="go by whole paths")
class SharesExecutorsByFileName(Sharing):
    def name_of(self, database):
        return database.database


@mutant("a_name_with_a_dot_is_one_name", says="split none of them")
class StripsNames(Told):
    def change(self, table):
        name = table.relation.name.strip()
        return dataclasses.replace(table, relation=dataclasses.replace(table.relation, name=name))


@mutant("no_more_rows_are_read_than_the_budget_has", says="let the engine stop there")
class ReadsAllRows(Profiled):
    async def profiles(self, tables, budget):
        return await self.read(tables, budget, limit="")

    def decode(self, batch):
        return batch.values if isinstance(batch, Encoded) else batch

    async def read(self, tables, budget, *, limit):
        found = {}
        for table in tables:
            names = [column.name for column in table.columns]
            statement = f'SELECT * FROM "{table.relation.name}"{limit}'
            async with self.executor.open(Request(statement=statement)) as stream:
                rows = [row async for batch in stream.batches for row in self.decode(batch)]
            found[table.relation] = profile_columns(names, rows[: budget.rows], budget, whole=False)
        return found


@mutant("no_time_is_taken_that_the_budget_has_not", says="stop when the time is over")
class TakesItsTime(ReadsAllRows):
    async def profiles(self, tables, budget):
        return await self.read(tables, budget, limit=" LIMIT 3")


def changing(mutant: str, case: str, /, *, says: str = "exact values"):
    """Register a plugin that changes each value on its way, by a function of values."""

    def register(change):
        def rows(self, rows):
            return [[change(value) for value in row] for row in rows]

        PLUGINS[mutant], CATCHES[mutant] = Mutant(mutant), (case, says)
        PLUGINS[mutant].executor_fault = type(mutant, (Rewritten,), {"rows": rows})
        return change

    return register


@changing("FlushesSmallFloats", "a_value_is_exact[smallest_float]")
def flush(value):
    return 0.0 if isinstance(value, float) and abs(value) < 1e-300 else value


@changing("RoundsFloats", "a_value_is_exact[float_of_17_digits]")
def round_to_16(value):
    return float(f"{value:.16g}") if isinstance(value, float) else value


@changing("RoundsToSixDigits", "a_value_is_exact[float_of_single_precision]")
def round_to_6(value):
    return float(f"{value:.6g}") if value == 16777216.0 else value


@changing("CutsBinaries", "a_value_is_exact[long_binary]")
def cut_binary(value):
    return value[:2000] if isinstance(value, str) and value.startswith("AP8Q") else value


@changing("WritesJsonAgain", "a_value_is_exact[text_that_looks_like_json]")
def sort_keys(value):
    return json.dumps(json.loads(value), sort_keys=True) if isinstance(value, str) and value[:1] == "{" else value


@changing("TakesTextsForBooleans", "a_value_is_exact[text_that_looks_like_a_boolean]")
def read_booleans(value):
    return True if value == "true" else value


@changing("ShortensYears", "a_value_is_exact[early_date]")
def shorten_year(value):
    return re.sub(r"^0+(\d+-\d\d-\d\d)$", r"\1", value) if isinstance(value, str) else value


@changing("ReadsTimestamps", "a_value_is_exact[text_that_looks_like_a_timestamp]")
def read_timestamp(value):
    return re.sub(r"^(\d+-\d\d-\d\d)T", r"\1 ", value) if isinstance(value, str) else value


@changing("ReadsCommas", "a_value_is_exact[text_that_looks_like_a_decimal]")
def read_comma(value):
    return re.sub(r"^(\d+),(\d+)$", r"\1.\2", value) if isinstance(value, str) else value


@changing("ReadsEntities", "a_value_is_exact[entities_in_text]")
def read_entities(value):
    return html.unescape(value) if isinstance(value, str) else value


@changing("CutsTheLastLineBreak", "a_value_is_exact[line_break_at_the_end]")
def cut_line_break(value):
    return value.removesuffix("\n") if isinstance(value, str) else value


@changing("Wraps", "a_value_is_exact[integer_beyond_2_31]")
def wrap(value):
    return value - 2**32 if type(value) is int and 2**31 <= value < 2**32 else value


@changing("MakesTheSmallestIntegerPositive", "a_value_is_exact[smallest_64_bit_integer]")
def negate(value):
    return value.removeprefix("-") if value == str(-(2**63)) else value


@mutant("keys_that_are_told_to_be_unique_are", says="came with a key twice")
class KeepsKeysTwice(Rewritten):
    @asynccontextmanager
    async def open(self, request):
        if "JSON" not in request.statement:
            async with super().open(request) as stream:
                yield stream
            return
        yield RowStream([Column("v", "json", Kind("json", unique_keys=True))], self.once())

    async def once(self):
        yield [['{"a": 1, "a": 2}']]


@changing("SumsInFloats", "the_sum_of_large_integers_is_exact", says="with more digits")
def sum_in_floats(value):
    return float(value) if isinstance(value, str) and value.startswith("46206") else value


@changing(
    "DropsWhatIsNotSeen",
    "a_text_of_characters_that_are_not_seen_is_kept[byte order mark]",
    says="pass every character on",
)
def drop_marks(value):
    return value.removeprefix("\ufeff") if isinstance(value, str) else value


@changing("WritesWholeFloatsAsIntegers", "a_value_is_exact[float_beyond_2_53]")
def write_whole(value):
    return int(value) if isinstance(value, float) and 1e15 <= abs(value) < 1e22 else value


@changing("TakesZeroForNull", "a_value_is_exact[zero_float]")
def take_zero(value):
    return None if isinstance(value, float) and repr(value) == "0.0" else value


@changing("CutsLongTexts", "a_value_is_exact[text_beyond_64_kb]")
def cut_text(value):
    return value[:65_535] if isinstance(value, str) else value


@changing("CutsVeryLongTexts", "a_text_of_many_characters_is_whole", says="cut no value")
def cut_long_text(value):
    return value[:100_000] if isinstance(value, str) else value


@changing("WritesFractionsWithoutZeros", "a_value_is_exact[timestamp_of_a_small_fraction]")
def shorten_fraction(value):
    return re.sub(r"(:\d\d)\.0+(\d+)$", r"\1.\2", value) if isinstance(value, str) else value


@changing("CutsFractionsBefore1970", "a_value_is_exact[timestamp_before_1970]")
def cut_fraction(value):
    return re.sub(r"^(19[0-6]\d-.*)\.\d+$", r"\1", value) if isinstance(value, str) else value


class FirstOfEach(Told):
    """Keeps what the catalog tells in dictionaries whose keys are not unique."""

    def keys(self, table):
        return table.foreign_keys

    def change(self, table):
        return dataclasses.replace(table, foreign_keys=tuple(self.keys(table)))


@mutant("every_foreign_key_of_a_table_is_told", says="Tell keys apart by their own names")
class KeepsOneKeyToEachTable(FirstOfEach):
    def keys(self, table):
        return {key.references: key for key in table.foreign_keys}.values()


@mutant("what_a_foreign_key_does_is_told", says="ON DELETE CASCADE is reported with")
class MixesWhatKeysDo(FirstOfEach):
    def keys(self, table):
        return [
            dataclasses.replace(key, on_update=key.on_delete, on_delete=key.on_update) for key in table.foreign_keys
        ]


@mutant("every_unique_constraint_of_a_table_is_told", says="tell constraints apart")
class KeepsOneConstraintOfAKind(Told):
    def change(self, table):
        constraints = {each.type: each for each in table.constraints}.values()
        return dataclasses.replace(table, constraints=tuple(constraints), indexes=())


@mutant("every_index_of_a_table_is_told", says="tell indexes apart")
class KeepsOneIndexOfAColumn(Told):
    def change(self, table):
        return dataclasses.replace(table, indexes=tuple({each.parts[:1]: each for each in table.indexes}.values()))


@mutant("the_definition_of_a_view_is_whole", says="without its end")
class CutsDefinitionsAt4000(Told):
    def change(self, table):
        return dataclasses.replace(table, definition=table.definition and table.definition[:4000])


@mutant("a_table_with_capitals_is_told_and_can_be_queried", says="report names as they are stored")
class LowersNamesOfTables(Told):
    def change(self, table):
        name = table.relation.name.lower()
        return dataclasses.replace(table, relation=dataclasses.replace(table.relation, name=name))


@mutant("a_scope_of_many_names_is_answered_whole", says="split lists that are too long")
class CutsListsOfNames(Told):
    async def tables(self, scope):
        return await super().tables(dataclasses.replace(scope, names=frozenset(sorted(scope.names)[:500])))


@mutant("no_error_shows_the_values_of_parameters", says="without what the driver adds")
class ShowsParameters(Bare):
    def execute(self, connection, request):
        try:
            return super().execute(connection, request)
        except sqlite3.Error as error:
            raise type(error)(f"{error} [parameters: {request.parameters}]") from None


@mutant("writes_are_refused_after_failures_and_on_every_connection", says="on a second connection")
class OpensLaterConnectionsForWriting(Bare):
    opened: ClassVar[set[Path]] = set()

    def connect(self):
        mode = "rwc" if file_of(self.database) in self.opened else "ro"
        self.opened.add(file_of(self.database))
        return sqlite3.connect(f"file:{file_of(self.database)}?mode={mode}", uri=True, check_same_thread=False)


described(
    "ComparesNamesExactly",
    "the_folding_is_the_engine_s[another case without quotes]",
    says="would be visible under another",
    folding="exact",
)


def _fold_further(statement):
    """What SQLite's own reading tells, of a text in which every letter is folded as Python folds it."""
    assert sqlite.dialect.read is not None
    folded = statement.text.lower()
    return sqlite.dialect.read(Statement(folded, folded, sqlglot=statement.sqlglot, lexicon=statement.lexicon))


described(
    "FoldsFurtherThanTheEngine",
    "a_relation_beside_a_with_name_is_read[with another letter]",
    says="see dragoman.words.lower_ascii",
    read=_fold_further,
)
described(
    "FoldsToLowerCase",
    "the_folding_is_the_engine_s[another case in quotes]",
    says="would be visible under another",
    folding="lower",
)
described(
    "FoldsEveryLetter",
    "the_letters_that_fold_are_the_engine_s",
    says="Set `ascii_folding`",
    ascii_folding=False,
)
described(
    "DoesNotNameRowid",
    "columns_that_no_table_lists_are_declared",
    says="Dialect.implicit_columns",
    implicit_columns=frozenset(),
)
described(
    "CallsIdImplicit",
    "columns_that_a_table_lists_are_not_declared_as_implicit",
    says="which are in Dialect.implicit_columns",
    implicit_columns=frozenset({"rowid", "id"}),
)
described(
    "EndsCommentsAtTheEnd",
    "the_lexicon_says_what_the_engine_does[unclosed_comment_ends]",
    says="Lexicon.unclosed_comment_ends is False",
    lexicon=dataclasses.replace(sqlite.dialect.lexicon, unclosed_comment_ends=False),
)
described(
    "WantsBlanksAfterDashes",
    "the_lexicon_says_what_the_engine_does[spaced_comments]",
    says="Lexicon.spaced_comments is True",
    lexicon=dataclasses.replace(sqlite.dialect.lexicon, spaced_comments=True),
)
described("WritesDollars", "placeholders_are_what_the_lexer_reads", says="expects", placeholder="$1")
described(
    "LeadsElsewhere",
    "the_default_schema_is_where_names_alone_lead",
    says="Dialect.default_schema is 'public'",
    default_schema="public",
)
described(
    "CallsSettingHarmless",
    "statements_that_are_no_queries_are_refused_before_the_engine",
    says="SET kit = 1",
    rules=dataclasses.replace(sqlite.dialect.loaded_rules, statements=(re.compile("(SHOW|SET) .*"),)),
)


def __getattr__(name: str) -> DialectPlugin:
    """Entry points name `mutants:PLUGINS_<mutant>`."""
    try:
        return PLUGINS[name.removeprefix("PLUGINS_")]
    except KeyError:
        raise AttributeError(name) from None


@changing("CutsManyBytes", "a_binary_of_many_bytes_is_whole", says="cut no value")
def cut_many_bytes(value):
    return value[:87_380] if isinstance(value, str) and value.startswith("AP8Q") else value


@mutant("a_long_name_of_a_column_is_whole", says="return names unchanged")
class CutsLongColumnNames(Rewritten):
    def columns(self, columns):
        return [dataclasses.replace(column, name=column.name[:63]) for column in columns]


@mutant("columns_can_be_had_without_running_as_declared", says="must not outlive it")
class LeavesALimitBehind(Rewritten):
    """A connection goes back to the pool with the limit of no rows that describe set."""

    limited = False

    async def describe(self, request):
        columns = await super().describe(request)
        type(self).limited = True
        return columns

    def rows(self, rows):
        limited, type(self).limited = self.limited, False
        return [] if limited else rows


described(
    "ListsLocks",
    "functions_that_reach_beyond_the_database_are_refused",
    says="get_lock",
    read=None,
    confine=None,
    masks={},
    capabilities=sqlite.dialect.capabilities - {Capability.GRAMMAR},
    rules=dataclasses.replace(
        sqlite.dialect.loaded_rules, functions=sqlite.dialect.loaded_rules.functions | {"get_lock"}
    ),
)


@mutant("no_condition_is_tried_on_rows_that_a_filter_leaves_out[overflow]", says="OFFSET 0")
class TriesConditionsOnEveryRow(Wrapped):
    @asynccontextmanager
    async def open(self, request):
        if request.confinement is not None:
            text = request.statement.replace("temp.", "main.")
            async with self.inner.open(dataclasses.replace(request, statement=text, confinement=None)) as stream:
                async for _ in stream.batches:
                    pass
        async with self.inner.open(request) as stream:
            yield stream


class Unconfined(Wrapped):
    """Sends what confines a caller on in part."""

    def leave(self, part):
        return part

    def open(self, request):
        if request.confinement is None:
            return self.inner.open(request)
        parts = tuple(map(self.leave, request.confinement.relations))
        confinement = dataclasses.replace(request.confinement, relations=parts)
        return self.inner.open(dataclasses.replace(request, confinement=confinement))


@mutant(
    "a_masked_column_shows_its_mask_alone",
    says="nothing checks the filter without `Executor.describe`",
)
class CannotDescribe(Wrapped):
    describe = Executor.describe
    prepare = Executor.prepare


@mutant("rows_that_a_filter_leaves_out_are_read_in_no_way[alone]", says="replace every place")
class ForgetsFilters(Unconfined):
    def leave(self, part):
        return dataclasses.replace(part, filter=None)


@mutant("a_masked_column_shows_its_mask_alone", says="write_columns")
class ForgetsMasks(Unconfined):
    def leave(self, part):
        columns = tuple(dataclasses.replace(column, expression=None) for column in part.columns)
        return dataclasses.replace(part, columns=columns)


@mutant("a_filter_may_read_a_masked_column_and_a_hidden_one_is_unknown", says="ConfinedRelation.columns")
class FiltersWhatIsShown(Unconfined):
    def leave(self, part):
        return dataclasses.replace(part, filter=Expression(("0 = 1",)) if part.columns[1].expression else part.filter)


@mutant("values_of_a_filter_stand_between_those_of_the_caller", says="Confined.parameters")
class BindsInAnotherOrder(Wrapped):
    def open(self, request):
        return self.inner.open(dataclasses.replace(request, parameters=tuple(request.parameters)[::-1]))
