"""Errors: of our own types, of the right kind, with a remedy, and without anything that must not be shown."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Collection, Iterable

import pytest

from dragoman.errors import (
    ColumnNotFound,
    ConnectionFailed,
    DragomanError,
    InvalidSql,
    QueryError,
    SchemaNotFound,
    TableNotFound,
)
from dragoman.gateway import Gateway
from dragoman.model import Database
from dragoman.testing import sample
from dragoman.testing.base import PLANTED, OpenDatabase, Suite, advise_on, ask, direct_failure, failure
from dragoman.testing.tiers import recommended, required

SENTENCE = 3
"""A message with fewer words may be only a code of the driver, which an error need not repeat."""
UNKNOWN_TABLE = "SELECT * FROM kit_trak"
UNKNOWN_COLUMN = f"SELECT titel FROM {sample.TRACK}"
UNKNOWN_SCHEMA = f"SELECT * FROM kit_no_such_schema.{sample.TRACK}"
BROKEN = f"SELECT id FROM {sample.TRACK} WHERE ORDER BY"


class ErrorCases(Suite):
    """Cases through the gateway, then directly on the executor, whose errors nobody else translates."""

    @required
    async def test_an_unknown_table_is_named_and_the_near_one_suggested(self, gateway: Gateway) -> None:
        error = await failure(gateway, UNKNOWN_TABLE)
        assert_kind(error, TableNotFound)
        assert sample.TRACK in error.suggestion.lower(), (
            f"The suggestion {error.suggestion!r} does not name {sample.TRACK}: set the error's `identifier` to the"
            " name the database did not know."
        )

    @required
    async def test_an_unknown_column_is_named_and_the_near_one_suggested(self, gateway: Gateway) -> None:
        error = await failure(gateway, UNKNOWN_COLUMN)
        assert_kind(error, ColumnNotFound)
        assert "title" in error.suggestion.lower(), (
            f"The suggestion {error.suggestion!r} does not name title: set the error's `identifier` to the name the"
            " database did not know."
        )

    @required
    async def test_an_unknown_schema_is_not_found(self, gateway: Gateway) -> None:
        await gateway.database().catalog.snapshot()  # an error waits two seconds for it, which may be too few
        assert_kind(await failure(gateway, UNKNOWN_SCHEMA), SchemaNotFound)

    @required
    async def test_a_statement_that_does_not_parse_is_invalid(self, gateway: Gateway) -> None:
        assert_kind(await failure(gateway, BROKEN), InvalidSql)

    @required
    async def test_a_failure_at_run_time_is_a_query_error(self, gateway: Gateway) -> None:
        assert_kind(await failure(gateway, self.failing_query), QueryError)

    @required
    @pytest.mark.parametrize("case", ["table", "column", "syntax", "run_time"])
    async def test_the_executor_s_own_errors_are_ours(self, opened: OpenDatabase, case: str) -> None:
        statements = {
            "table": UNKNOWN_TABLE,
            "column": UNKNOWN_COLUMN,
            "syntax": BROKEN,
            "run_time": self.failing_query,
        }
        wanted = {"table": TableNotFound, "column": ColumnNotFound, "syntax": InvalidSql, "run_time": QueryError}
        assert_kind(await direct_failure(opened, statements[case]), wanted[case])

    @required
    async def test_an_error_says_what_the_database_said(self, opened: OpenDatabase) -> None:
        for statement in (BROKEN, self.failing_query):
            error = await direct_failure(opened, statement)
            said = _cause(error)
            assert len(_words(said)) < SENTENCE or _words(said) & _words(error.message), (
                f"The database's message for {statement!r} is {said!r}, and the error says "
                f"{error.message!r}, without a word of it: keep the first line of the driver's "
                "message, so that an agent can fix its query."
            )

    @required
    async def test_every_error_says_what_to_do(self, gateway: Gateway) -> None:
        for statement in (UNKNOWN_TABLE, UNKNOWN_COLUMN, BROKEN, self.failing_query):
            error = await failure(gateway, statement)
            assert error.suggestion, f"{error.code} for {statement!r} has no suggestion; say what an agent can do next."

    @required
    async def test_a_suggestion_is_in_words_of_its_own(self, opened: OpenDatabase) -> None:
        for statement in (UNKNOWN_TABLE, UNKNOWN_COLUMN, BROKEN, self.failing_query):
            error = await direct_failure(opened, statement)
            for said in (error.message, *_cause(error).splitlines()[:1]):
                assert len(_words(said)) < SENTENCE or said.strip() not in error.suggestion, (
                    f"The suggestion {error.suggestion!r} repeats what the database said. It may be an instruction that"
                    " somebody wrote into a value: keep it in `message`, and say in `suggestion` what to do."
                )

    @required
    async def test_no_error_shows_what_must_not_be_shown(
        self, gateway: Gateway, opened: OpenDatabase, database: Database
    ) -> None:
        catalogs = {schema.catalog or "" for schema in await opened.inspector.schemas()}
        for statement in (UNKNOWN_TABLE, UNKNOWN_COLUMN, UNKNOWN_SCHEMA, BROKEN, self.failing_query):
            assert_discreet(await failure(gateway, statement), database, listed=catalogs)
            assert_discreet(await direct_failure(opened, statement), database, listed=catalogs)

    @required
    async def test_an_error_names_nothing_that_the_statement_does_not(self, opened: OpenDatabase) -> None:
        there = (sample.TRACK, sample.GENRE, sample.RATING, sample.LISTING, sample.APPEAL, "title", "genre_id")
        for statement in (UNKNOWN_TABLE, UNKNOWN_COLUMN, UNKNOWN_SCHEMA, BROKEN):
            error = await direct_failure(opened, statement)
            named = [name for name in there if name in error.message and name not in statement]
            assert not named, (
                f"The message {error.message!r} names {', '.join(named)}, which the statement does not. A role may hide"
                " it: leave out what the database proposes. The gateway proposes what a caller may see."
            )

    @recommended
    async def test_a_failed_statement_spoils_nothing(self, gateway: Gateway) -> None:
        for _ in range(gateway.database().config.pool_size + 1):
            await failure(gateway, UNKNOWN_TABLE)
            await failure(gateway, self.failing_query)
        try:
            result = await ask(gateway, f"SELECT id FROM {sample.GENRE} ORDER BY id")
        except DragomanError as error:
            raise AssertionError(
                f"After failed statements a query gave {error.code} ({error.message}): roll back, "
                "or close the connection."
            ) from error
        assert result.rows == [[1], [2], [3]], f"After failed statements a query was answered {result.rows}."

    @required
    async def test_a_database_that_cannot_be_reached_is_named_and_its_address_is_not(self, database: Database) -> None:
        gone = self.unreachable(database)
        async with Gateway.open([gone]) as gateway:
            error = await failure(gateway, "SELECT 1 AS a")
            assert_kind(error, ConnectionFailed)
            assert gone.name in error.message, (
                f"The message {error.message!r} does not name the database {gone.name!r}."
            )
            assert_discreet(error, gone)
            status = await gateway.database().status(5.0)
        assert status.state == "unreachable", f"The status of a missing database is {status.state}."
        assert PLANTED not in status.error, f"The status shows an address or a password: {status.error}"

    @required
    async def test_the_inspector_s_own_errors_are_ours(self, database: Database) -> None:
        async with Gateway.open([self.unreachable(database)]) as gateway:
            try:
                version = await gateway.database().inspector.version()
            except DragomanError as error:
                assert_kind(error, ConnectionFailed)
            except Exception as error:
                raise AssertionError(advise_on(error)) from error
            else:
                raise AssertionError(f"The inspector returned {version!r} for a missing database.")


def assert_kind(error: DragomanError, *kinds: type[DragomanError]) -> None:
    """Check that the error is of one of these kinds."""
    wanted = " or ".join(kind.code for kind in kinds)
    assert isinstance(error, kinds), (
        f"The error is {error.code} ({error.message}) and must be {wanted}. Map the driver's error code or message to"
        " it."
    )


def assert_discreet(error: DragomanError, database: Database, *, listed: Collection[str] = ()) -> None:
    """Check that nothing in an error shows where the database is or how to sign in.

    `listed`: names that callers may see.
    """
    shown = " ".join((str(error), repr(error), json.dumps(error.as_dict(), default=str), repr(error.__cause__)))
    for what in {*_secrets(database)} - {*listed}:
        assert what not in shown, f"The error shows {what!r}; leave out addresses and secrets: {shown}"
    for trace in ("Traceback", ".py", sys.prefix):
        assert trace not in shown, f"The error shows a trace of the program, {trace!r}: {shown}"


def _cause(error: BaseException) -> str:
    """Return the message of the driver's exception behind one of ours; empty if it came from another process."""
    inner = error.__cause__ or error.__context__
    if isinstance(inner, DragomanError):
        return _cause(inner)
    return str(inner) if inner else ""


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w{4,}", text.lower()))


def _secrets(database: Database) -> Iterable[str]:
    secrets = [secret.reveal() for secret in (database.password, database.url) if secret]
    path = str(database.database or "")
    places = [str(database.folder.absolute()), path] if "/" in path or database.host is None else []
    return [secret for secret in (*secrets, *places, PLANTED) if len(secret) > 3]
