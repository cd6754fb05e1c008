"""What is declared works; what is not declared is refused with a clear error. Cases that need no tables are here."""

from __future__ import annotations

import pickle
from collections.abc import Awaitable
from typing import Any, Literal

import anyio
import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError, TableNotFound, Unsupported
from dragoman.gateway import Gateway
from dragoman.model import ExplainOptions, Request
from dragoman.plugins import Plugins
from dragoman.sql import Statement
from dragoman.testing import sample
from dragoman.testing.base import PROMPT, OpenDatabase, Suite, advise_on, run
from dragoman.testing.base import read as read_stream
from dragoman.testing.safety import placeholder
from dragoman.testing.tiers import capability, required
from dragoman.validators import read

QUERY = f"SELECT t.id, t.title FROM {sample.TRACK} t JOIN {sample.GENRE} g ON g.id = t.genre_id"


class CapabilityCases(Suite):
    """Plans, descriptions, and the dialect's own description of itself."""

    @capability(Capability.EXPLAIN)
    async def test_plans_are_told_as_declared(self, gateway: Gateway, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.EXPLAIN in dialect.capabilities:
            plan = await gateway.explain(None, QUERY)
            assert plan.plan, f"Capability.EXPLAIN is declared and the plan is {plan.plan!r}."
            return
        await refuses(gateway.explain(None, QUERY), "EXPLAIN")
        await refuses(opened.executor.explain(Request(statement=QUERY), ExplainOptions()), "EXPLAIN")

    @capability(Capability.EXPLAIN)
    async def test_a_plan_can_be_had_without_running_the_query(self, gateway: Gateway, dialect: Dialect) -> None:
        if Capability.EXPLAIN not in dialect.capabilities:
            return
        with anyio.move_on_after(2 * PROMPT) as scope:
            await gateway.explain(None, self.slow_query)
        assert not scope.cancelled_caught, "explain ran the slow query: without `analyze` it must only plan it."

    @capability(Capability.EXPLAIN)
    async def test_a_plan_is_that_of_the_query(self, gateway: Gateway, dialect: Dialect) -> None:
        if Capability.EXPLAIN not in dialect.capabilities:
            return
        one, other = [(await gateway.explain(None, sql)).plan for sql in (QUERY, f"SELECT name FROM {sample.GENRE}")]
        assert str(one) != str(other), (
            f"Queries of two tables have the same plan, {str(one)[:200]!r}: explain the statement of the request."
        )

    @capability(Capability.EXPLAIN)
    @pytest.mark.parametrize("form", ["text", "json"])
    async def test_a_plan_has_the_form_that_was_asked_for(
        self, gateway: Gateway, dialect: Dialect, form: Literal["text", "json"]
    ) -> None:
        if Capability.EXPLAIN not in dialect.capabilities:
            return
        try:
            plan = await gateway.explain(None, QUERY, options=ExplainOptions(format=form))
        except Unsupported:
            return
        assert (plan.format, isinstance(plan.plan, str)) == (form, form == "text"), (
            f"A plan was requested as {form}, and returned as Plan(format={plan.format!r}) of a "
            f"{type(plan.plan).__name__}: respect ExplainOptions.format, or raise Unsupported for "
            "a format that does not exist."
        )

    @capability(Capability.ANALYZE)
    async def test_measured_plans_are_told_as_declared(
        self, gateway: Gateway, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        options = ExplainOptions(analyze=True)
        if Capability.ANALYZE in dialect.capabilities:
            plan = await gateway.explain(None, QUERY, options=options)
            assert plan.actual_time_ms is not None, "Capability.ANALYZE is declared and actual_time_ms is None."
            return
        await refuses(gateway.explain(None, QUERY, options=options), "ANALYZE")
        await refuses(opened.executor.explain(Request(statement=QUERY), options), "ANALYZE")

    @capability(Capability.DESCRIBE)
    async def test_columns_can_be_had_without_running_as_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if Capability.DESCRIBE not in dialect.capabilities:
            await refuses(opened.executor.describe(Request(statement=QUERY)), "DESCRIBE")
            return
        columns = await opened.executor.describe(Request(statement=QUERY))
        assert [column.name.lower() for column in columns] == ["id", "title"], f"describe told {columns}."
        async with opened.executor.open(Request(statement=QUERY)) as stream:
            rows = await read_stream(stream)
        assert rows, (
            "After describe, a query had no rows: what describe sets in its session, such as a limit of no rows, must"
            " not outlive it."
        )
        shown = [(column.name, column.type) for column in stream.columns]
        assert shown == [(column.name, column.type) for column in columns], (
            f"describe returned {columns}, and running the query returned {shown}: return the same types in both."
        )
        with anyio.move_on_after(2 * PROMPT) as scope:
            await opened.executor.describe(Request(statement=self.slow_query))
        assert not scope.cancelled_caught, "describe ran the slow query; it must only prepare it."
        try:
            await opened.executor.describe(Request(statement="SELECT * FROM kit_trak"))
        except TableNotFound:
            return
        raise AssertionError(
            "describe of a query over an unknown table must raise TABLE_NOT_FOUND, as running it does."
        )

    @capability(Capability.DESCRIBE)
    async def test_columns_are_described_with_their_parameters(self, opened: OpenDatabase, dialect: Dialect) -> None:
        if not {Capability.DESCRIBE, Capability.PARAMETERS} <= dialect.capabilities:
            return
        request = Request(statement=f"SELECT {placeholder(dialect)} AS v FROM {sample.TRACK}", parameters=("Naima",))
        try:
            columns, _ = await run(opened, request.statement, *request.parameters)
        except DragomanError:
            return  # an engine that must be told the type of a parameter
        ran, described = (told[0].type for told in (columns, await opened.executor.describe(request)))
        assert described in (ran, "any", "unknown"), (
            f"A text parameter was described as {described}, and running the query returned {ran}: describe"
            " with the request's parameters."
        )

    @capability(Capability.GRAMMAR)
    def test_an_own_grammar_reads_as_declared(self, dialect: Dialect) -> None:
        if Capability.GRAMMAR not in dialect.capabilities:
            assert dialect.read is None, "Dialect.read is set and Capability.GRAMMAR is not declared."
            return
        assert dialect.read, "Capability.GRAMMAR is declared, and Dialect.read is not set, so sqlglot parses."
        query = f"SELECT t.id, abs(t.id) FROM {sample.TRACK} AS t WHERE 1 = 2 OR t.id IN (SELECT 1)"
        parsed = read(dialect, Statement.parse(query, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
        assert pickle.loads(pickle.dumps(parsed)) == parsed, "A parsed statement must survive pickling."
        assert pickle.loads(pickle.dumps(dialect.read)) is dialect.read, (
            "Dialect.read must be a function of a module: another process may have to run it."
        )
        assert [(each.relation.name.lower(), each.offset) for each in parsed.relations] == [
            (sample.TRACK, query.index(sample.TRACK))
        ], f"The query reads {sample.TRACK} alone; Dialect.read returned {parsed.relations}."
        assert [(call.name, call.offset) for call in parsed.calls if call.kind in {"call", "function"}] == [
            ("abs", query.index("abs"))
        ], f"The query calls abs alone; Dialect.read returned {parsed.calls}."
        wrong = read(dialect, Statement.parse("SELECT FROM WHERE", sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
        assert wrong.refusal, (
            "Dialect.read must refuse text that is not a query, and it did not refuse SELECT FROM WHERE."
        )

    @required
    def test_the_dialect_answers_to_its_name(self, gateway: Gateway, dialect: Dialect) -> None:
        plugins: Plugins = gateway.plugins
        try:
            named = plugins.load(dialect.name)
        except DragomanError as error:
            raise AssertionError(
                f"The dialect is named {dialect.name!r}, and no entry point of that name is installed: {error}"
            ) from error
        assert named.dialect is dialect, (
            f"The entry point {dialect.name!r} gives another plugin than the one under test."
        )

    @required
    def test_the_dialect_s_sql_is_known(self, dialect: Dialect) -> None:
        statement = Statement.parse("SELECT 1 AS a", sqlglot=dialect.sqlglot, lexicon=dialect.lexicon)
        assert statement.tree is not None, (
            f"sqlglot does not know {dialect.sqlglot!r}; set Dialect.sqlglot to its name."
        )

    @required
    def test_quoted_names_come_back_as_they_were(self, dialect: Dialect) -> None:
        quoted = dialect.quote('a "b" c')
        assert quoted != 'a "b" c', "Dialect.quote did not quote an unusual name."
        assert quoted.startswith(dialect.quote_marks[0]), f"Dialect.quote wrote {quoted!r}; check quote_marks."
        assert quoted.endswith(dialect.quote_marks[1]), f"Dialect.quote wrote {quoted!r}; check quote_marks."


async def refuses(work: Awaitable[Any], capability: str) -> None:
    """Check that what is not declared raises `Unsupported` and nothing else."""
    try:
        answer = await work
    except Unsupported:
        return
    except DragomanError as error:
        raise AssertionError(
            f"Capability.{capability} is not declared; using it raised {error.code} and must raise UNSUPPORTED."
        ) from error
    except Exception as error:
        raise AssertionError(advise_on(error)) from error
    raise AssertionError(f"Capability.{capability} is not declared and works ({answer!r:.100}). Declare it.")
