"""Read-only: refused by the gateway, and by the engine without the gateway's checks. Values are bound."""

from __future__ import annotations

import contextlib
import dataclasses
import re
from typing import Any, Final

import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.errors import (
    ConfigurationError,
    DragomanError,
    ParameterError,
    Refused,
    UnsafeSql,
    Unsupported,
    WriteDenied,
)
from dragoman.gateway import Gateway
from dragoman.model import Database, Request
from dragoman.testing import sample
from dragoman.testing.base import PLANTED, OpenDatabase, Suite, advise_on, ask, direct_failure, failure, run
from dragoman.testing.tiers import capability, recommended, required

HOSTILE = ("'; DROP TABLE kit_rating; --", '" OR 1=1 --', "?", "$1", ":x", "%s", "\\'", "  Naima", "")
UNSEEN: Final = {
    "byte order mark": "\ufeffa",
    "blank of another kind": "\u00a0a\u3000",
    "mark of direction": "a\u200f",
    "control character": "a\x01",
    "separator of lines": "a\u2028b",
    "letter beside its mark": "e\u0301",
}
LONG: Final = "0123456789" * 3000
TYPED: Final[dict[str, tuple[str, tuple[Any, ...]]]] = {
    "integer": ("id + 0 = ?", (2,)),
    "zero": ("id - 2 = ?", (0,)),
    "large integer": ("id + 9007199254740991 = ?", (9007199254740993,)),
    "float": ("id = 2 AND ? > 0.12345678901234 AND ? < 0.12345678901235", (0.1234567890123456,) * 2),
    "boolean": ("(id = 2) = ?", (True,)),
    "false boolean": ("(id <> 2) = ?", (False,)),
    "text that ends with blanks": ("id = 2 AND ? LIKE 'Naima  '", ("Naima  ",)),
    "long text": (f"id = 2 AND ? = '{LONG}'", (LONG,)),
    "text of a date": ("id = 2 AND ? LIKE '2024-02-2_'", ("2024-02-29",)),
    "text of a number": ("id = 2 AND ? LIKE '00_'", ("007",)),
    "null": ("COALESCE(?, title) = title AND id = 2", (None,)),
}
"""How the kit notices that a driver changed a parameter: only the second track matches."""
ALONE: Final[dict[str, tuple[Any, str]]] = {
    "boolean": (True, "TRUE"),
    "integer": (7, "7"),
    "float without a fraction": (2.0, "CAST(2.0 AS DOUBLE PRECISION)"),
    "float beyond 2^53": (1e16, "CAST(1e16 AS DOUBLE PRECISION)"),
    "text": ("Naima", "'Naima'"),
    "text of a date": ("2024-02-29", "'2024-02-29'"),
    "text of a number": ("007", "'007'"),
    "text of a boolean": ("true", "'true'"),
}
"""Parameters without a type in the statement, and how the same value is written."""


class SafetyCases(Suite):
    """Writes, second statements, parameters."""

    @required
    async def test_writes_are_refused_by_the_gateway(self, gateway: Gateway) -> None:
        for statement in self.writes:
            error = await failure(gateway, statement)
            assert isinstance(error, WriteDenied), f"{statement!r} gave {error.code} and must be {WriteDenied.code}."

    @required
    async def test_writes_are_refused_by_the_engine_itself(
        self, gateway: Gateway, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        before = await self._state(gateway)
        for statement in self.writes:
            refused = await _is_refused(opened, statement)
            assert await self._state(gateway) == before, (
                f"{statement!r} changed the database. Open sessions read-only, and roll every transaction back."
            )
            assert refused or Capability.READ_ONLY_SESSION not in dialect.capabilities, (
                f"The engine ran {statement!r} without our own checks. Open it read-only (a read-only"
                " transaction, mode or role), or do not declare Capability.READ_ONLY_SESSION."
            )

    @required
    async def test_writes_are_refused_after_failures_and_on_every_connection(
        self, gateway: Gateway, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        before = await self._state(gateway)
        await direct_failure(opened, self.failing_query)
        done = [statement for statement in self.writes[:1] if not await _is_refused(opened, statement)]
        if opened.config.pool_size > 1:
            async with opened.executor.open(Request(statement=self.many_rows)) as stream:
                async for _ in stream.batches:
                    break  # keeps a connection, so that the next statements get another
                done += [statement for statement in self.writes[:1] if not await _is_refused(opened, statement)]
        assert await self._state(gateway) == before, f"After a failure, or on a second connection, {done} changed rows."
        assert not done or Capability.READ_ONLY_SESSION not in dialect.capabilities, (
            f"After a failure, or on a second connection, the engine ran {done}: open every connection read-only, also"
            " the later ones."
        )

    @capability(Capability.READ_ONLY_SESSION)
    async def test_a_database_without_read_only_sessions_opens_only_when_accepted(
        self, database: Database, dialect: Dialect
    ) -> None:
        declared = Capability.READ_ONLY_SESSION in dialect.capabilities
        try:
            async with Gateway.open([dataclasses.replace(database, accept_unenforced=False)]) as gateway:
                gateway.database()
                opens = True
        except ConfigurationError:
            opens = False
        assert opens == declared, f"READ_ONLY_SESSION declared: {declared}; opens without accept_unenforced: {opens}."

    @required
    async def test_a_second_statement_is_refused_by_the_gateway(self, gateway: Gateway) -> None:
        error = await failure(gateway, "SELECT 1 AS a; SELECT 2 AS a")
        assert isinstance(error, UnsafeSql), f"Two statements gave {error.code} and must be {UnsafeSql.code}."

    @required
    async def test_a_second_statement_is_refused_by_the_driver_itself(self, opened: OpenDatabase) -> None:
        if not await _is_refused(opened, "SELECT 1 AS a; SELECT 2 AS a"):
            raise AssertionError(
                "The driver ran two statements sent as one. Use its prepared or extended "
                "protocol, which accepts one statement."
            )

    @required
    async def test_an_unknown_function_is_refused(self, gateway: Gateway) -> None:
        error = await failure(gateway, "SELECT kit_no_such_function(1) AS a")
        assert isinstance(error, Refused), (
            f"An unknown function raised {error.code}: Rules.functions must list only functions known to be harmless."
        )

    @recommended(Capability.PARAMETERS)
    async def test_parameters_are_bound_or_refused(self, gateway: Gateway, dialect: Dialect) -> None:
        statement = f"SELECT id FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        if Capability.PARAMETERS not in dialect.capabilities:
            error = await failure(gateway, statement, "Naima")
            assert isinstance(error, Unsupported), f"PARAMETERS is not declared; one gave {error.code}."
            return
        for value, wanted in (("Naima", [[2]]), (sample.HOSTILE_TITLE, [[3]])):
            result = await ask(gateway, statement, value)
            assert result.rows == wanted, f"The parameter {value!r} found {result.rows} and must find {wanted}."

    @recommended(Capability.PARAMETERS)
    async def test_each_of_many_parameters_has_its_place(self, gateway: Gateway, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        for count in (2, 12):
            numbers = range(1, count + 1)
            places = " OR ".join(f"(n = {number} AND n = {placeholder(dialect, number)})" for number in numbers)
            result = await ask(gateway, f"SELECT n FROM ({sample.numbers(count)}) AS t WHERE {places}", *numbers)
            lost = [number for number in numbers if [number] not in result.rows]
            assert not lost, (
                f"Of {count} parameters those at the places {lost} had other values: $1 is not the start of $10, and"
                " each `?` takes the next value."
            )

    @recommended(Capability.PARAMETERS)
    async def test_a_text_beside_parameters_is_what_is_written(self, gateway: Gateway, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        written = "100% %% %s ? $1 :x"
        sql = f"SELECT '{written}' AS v FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        result = await ask(gateway, sql, "Naima")
        assert result.rows == [[written]], (
            f"The text {written!r} in a statement with a parameter came as {result.rows}: only what is outside of"
            " quotes is a placeholder. If the driver reads % there, double it in texts too, and only beside parameters."
        )

    @recommended(Capability.PARAMETERS)
    @pytest.mark.parametrize("value", range(len(HOSTILE)))
    async def test_a_hostile_parameter_is_only_a_value(
        self, opened: OpenDatabase, dialect: Dialect, value: int
    ) -> None:
        _needs_parameters(dialect)
        statement = f"SELECT id FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        try:
            _, rows = await run(opened, statement, HOSTILE[value])
        except Exception as error:
            raise AssertionError(
                f"The parameter {HOSTILE[value]!r} made the statement fail ({error}): bind parameters, never"
                " paste them."
            ) from error
        wanted = [[4]] if HOSTILE[value] == "" else []
        assert rows == wanted, f"The parameter {HOSTILE[value]!r} found {rows}: bind parameters, never paste them."

    @required
    async def test_a_view_runs_no_function_of_users_that_reads(self, database: Database) -> None:
        where = await self._with_a_function(database) if self._alters else None
        if where is None:
            return
        where = await self._change(where, f"CREATE VIEW {sample.COUNTED} AS SELECT {sample.COUNT}() AS n")
        try:
            async with Gateway.open([where]) as gateway:
                await _expect_no_call(gateway)
        finally:
            where = await self._change(where, f"DROP VIEW {sample.COUNTED}")
            await self._change(where, f"DROP FUNCTION {sample.COUNT}")

    async def _with_a_function(self, database: Database) -> Database | None:
        """Define a function as the engine writes it; return None if none of the ways is the engine's."""
        for statement in sample.FUNCTIONS:
            with contextlib.suppress(Exception):  # the driver's own, of any class
                return await self._change(database, statement)
        return None

    @required(Capability.PARAMETERS)
    async def test_no_error_shows_the_values_of_parameters(self, opened: OpenDatabase, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        failing = f"SELECT q.*, CAST({placeholder(dialect)} AS VARCHAR(40)) AS planted FROM ({self.failing_query}) q"
        missing = f"SELECT titel FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        for statement in (failing, missing):
            error = await direct_failure(opened, statement, PLANTED)
            shown = f"{error!r} {error} {error.as_dict()}"
            assert PLANTED not in shown, (
                f"An error shows the value of a parameter: {shown}. What roles bind is no business of agents. Keep the"
                " database's message, without what the driver adds."
            )

    @recommended(Capability.PARAMETERS)
    async def test_a_long_text_is_bound_whole(self, opened: OpenDatabase, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        value = LONG * 3
        try:
            _, rows = await run(opened, f"SELECT CAST({placeholder(dialect)} AS VARCHAR(100000)) AS v", value)
        except DragomanError:
            return  # an engine whose texts are shorter, or that writes its casts differently
        came = str(rows[0][0])
        assert came == value, f"A parameter of {len(value)} characters came back with {len(came)}."

    @recommended(Capability.PARAMETERS)
    async def test_a_text_with_a_null_character_is_kept_whole_or_refused(
        self, opened: OpenDatabase, dialect: Dialect
    ) -> None:
        _needs_parameters(dialect)
        found = f"SELECT id FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        for statement, value, wanted in (
            (found, "Naima\0", []),
            (f"SELECT CAST({placeholder(dialect)} AS VARCHAR(10)) AS v", "a\0b", [["a\0b"]]),
        ):
            try:
                _, rows = await run(opened, statement, value)
            except DragomanError:
                continue
            assert rows == wanted, f"The parameter {value!r} returned {rows}: a null character must not end a text."

    @recommended(Capability.PARAMETERS)
    @pytest.mark.parametrize("text", UNSEEN.values(), ids=UNSEEN)
    async def test_a_text_of_characters_that_are_not_seen_is_kept(
        self, opened: OpenDatabase, dialect: Dialect, text: str
    ) -> None:
        _needs_parameters(dialect)
        try:
            _, rows = await run(opened, f"SELECT CAST({placeholder(dialect)} AS VARCHAR(10)) AS v", text)
        except DragomanError:
            return  # an engine that writes its casts differently
        assert rows == [[text]], f"The parameter {text!r} came back as {rows}: pass every character on, visible or not."

    @recommended(Capability.PARAMETERS)
    async def test_placeholders_in_texts_are_left_alone(self, gateway: Gateway, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        text = "? $1 :x %s 100%"
        statement = f"SELECT '{text}' AS t, title FROM {sample.TRACK} WHERE id = {placeholder(dialect)}"
        result = await ask(gateway, statement, 2)
        assert result.rows == [[text, "Naima"]], f"A text of placeholders came as {result.rows}."

    @recommended(Capability.PARAMETERS)
    async def test_parameters_keep_their_order(self, gateway: Gateway, dialect: Dialect) -> None:
        _needs_parameters(dialect)
        first, second = placeholder(dialect), placeholder(dialect, 2)
        statement = f"SELECT id FROM {sample.TRACK} WHERE title = {first} AND genre_id = {second}"
        result = await ask(gateway, statement, "Naima", 1)
        assert result.rows == [[2]], f"Two parameters found {result.rows} and must find [[2]]."

    @recommended(Capability.PARAMETERS)
    @pytest.mark.parametrize("given", ["too_few", "too_many"])
    async def test_parameters_that_do_not_fit_are_parameter_errors(
        self, gateway: Gateway, dialect: Dialect, given: str
    ) -> None:
        _needs_parameters(dialect)
        statement = f"SELECT id FROM {sample.TRACK} WHERE title = {placeholder(dialect)}"
        error = await failure(gateway, statement, *(() if given == "too_few" else ("Naima", "Zombie")))
        assert isinstance(error, ParameterError), f"Parameters that do not match raised {error.code}: {error.message}"

    @recommended(Capability.PARAMETERS)
    @pytest.mark.parametrize("kind", list(TYPED))
    async def test_a_parameter_keeps_its_type_and_all_of_its_value(
        self, gateway: Gateway, dialect: Dialect, kind: str
    ) -> None:
        _needs_parameters(dialect)
        condition, values = TYPED[kind]
        for number in range(1, len(values) + 1):
            condition = condition.replace("?", placeholder(dialect, number).replace("?", "\0"), 1)
        statement = f"SELECT id FROM {sample.TRACK} WHERE {condition}".replace("\0", "?")
        remedy = f"Bind a {kind} exactly and with its own type: no number or boolean as text."
        asked = f"{statement[:200]} with {str(values)[:60]}"
        try:
            result = await ask(gateway, statement, *values)
        except DragomanError as error:
            raise AssertionError(f"{asked} gave {error.code} ({error.message}). {remedy}") from error
        assert result.rows == [[2]], f"{asked} found {result.rows} and must find [[2]]. {remedy}"

    @recommended(Capability.PARAMETERS)
    @pytest.mark.parametrize("kind", list(ALONE))
    async def test_a_parameter_alone_is_what_the_same_value_is_when_written(
        self, opened: OpenDatabase, dialect: Dialect, kind: str
    ) -> None:
        _needs_parameters(dialect)
        value, written = ALONE[kind]
        try:
            wanted = await run(opened, f"SELECT {written} AS v")
            text = await run(opened, f"SELECT {ALONE['text'][1]} AS v")
            told = await run(opened, f"SELECT {placeholder(dialect)} AS v", value)
            (as_text,), (told_as_text,) = [
                (await run(opened, f"SELECT CAST({each} AS VARCHAR(20)) AS v", *given))[1]
                for each, given in ((written, ()), (placeholder(dialect), (value,)))
            ]
        except DragomanError:
            return  # an engine that must be told the type of a parameter
        (wanted_type, wanted_value), (type_, came) = (
            (_word(columns[0].type), rows[0][0]) for columns, rows in (wanted, told)
        )
        if not isinstance(value, str) and type_ == _word(text[0][0].type):
            return  # an engine that treats a value without a type as text
        pair, wanted_pair = (came, *told_as_text), (wanted_value, *as_text)
        assert repr(pair) == repr(wanted_pair), (
            f"The parameter {value!r}, alone and cast to text, came back as {pair}, and {written} as {wanted_pair}:"
            f" bind a {kind} with its own type."
        )
        assert type_ == wanted_type or not isinstance(value, str), (
            f"The parameter {value!r} came back as {type_ or 'nothing'}, and {written} as {wanted_type}: bind texts as"
            " texts, and describe with the request's parameters."
        )

    async def _state(self, gateway: Gateway) -> object:
        counts = [
            (await ask(gateway, f"SELECT * FROM {table}")).rows for table in (sample.GENRE, sample.TRACK, sample.RATING)
        ]
        return [sorted(map(str, rows)) for rows in counts]


async def _is_refused(opened: OpenDatabase, statement: str) -> bool:
    try:
        await run(opened, statement)
    except DragomanError:
        return True
    except Exception as error:
        raise AssertionError(advise_on(error)) from error
    return False


def _word(type_: str) -> str:
    """Return the first word of a type, without its length, regardless of case."""
    found = re.match(r"\w*", type_.lower())
    return found[0] if found else ""


def _needs_parameters(dialect: Dialect) -> None:
    if Capability.PARAMETERS not in dialect.capabilities:
        pytest.skip("PARAMETERS is not declared; another case checks that they are refused.")


def placeholder(dialect: Dialect, number: int = 1) -> str:
    """Return a placeholder as agents of the dialect write it."""
    return "?" if dialect.placeholder == "?" else f"${number}"


async def _expect_no_call(gateway: Gateway) -> None:
    """Check that the view that calls the function is refused, and not for another reason."""
    try:
        result = await ask(gateway, f"SELECT n FROM {sample.COUNTED}")
    except Refused:
        return
    raise AssertionError(
        f"A view that calls a function of a user's was answered: {result.rows}. The function read a table, and could do"
        " more: set Dialect.stored_functions."
    )
