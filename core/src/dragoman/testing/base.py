"""The base of every group of cases: the author's data, the gateway under test, and ways to query it."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

import anyio
import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError
from dragoman.gateway import Gateway
from dragoman.model import Column, Database, Encoded, Limits, Request, Result, RowStream, Secret
from dragoman.plugins import Plugins
from dragoman.results import encode
from dragoman.testing import sample
from dragoman.testing.gaps import Gap
from dragoman.testing.idleness import becomes_idle
from dragoman.testing.tiers import not_due, tier_of

PROMPT: Final = 5.0
"""Seconds within which an immediate effect must show, on a slow machine too."""
PATIENCE: Final = 60.0
PLANTED: Final = "planted-secret-4711"
SHOWN: Final = 100
"""The characters of a long text that a message shows."""
SIDE: Final = 20
WIDE: Final = "x" * 400
"""Side of a product with more rows than an engine buffers ahead of a reader."""


def product(side: int) -> str:
    """Return a query of `side` to the third rows, whose `n` counts from 1. It is portable and uses no function."""
    one = sample.numbers(side)
    return f"SELECT (a.n - 1) * {side * side} + (b.n - 1) * {side} + c.n AS n FROM ({one}) a, ({one}) b, ({one}) c"


CROSS_JOIN: Final = ", ".join(f"{sample.TRACK} t{n}" for n in range(16))
SUM_OF_IDS: Final = " + ".join(f"t{n}.id" for n in range(16))

OpenDatabase = Any


class Suite:
    """Data that a dialect's test class may override, each with a portable default.

    - `gaps`: cases that this dialect must fail, with the reason.
    - `literals`: how the dialect writes the value of a case of `a_value_is_exact`.
    - `types`: the types of the sample's columns.
    - `engine_lacks`: what the engine itself does not have. The sample leaves it out.
    - `generated`: the definition of a column that is `id + 1`; empty if the engine has no generated columns.
    - `hard_name`: a name of characters that need quotes. Override it if the engine takes fewer of them.
    - `capitals`: whether the engine keeps capitals in quoted names of tables.
    - `relations`: the number of tables that make the sample large. Lower it if creating one takes long.
    - `slow_query`: runs for at least a minute unless it is ended.
    - `rowless_query`: the same, and returns no row.
    - `failing_query`: passes every check and fails in the engine while it runs.
    - `failing_late_query`: fails after thousands of rows.
    - `many_rows`: a query with many rows. `last_row`: the largest value of its column `n`.
    - `first_two`: returns the two tracks with the lowest ids, with the engine's own syntax for a limit.
    - `writes`: statements that must not change the sample.
    - `deadline`: seconds until a hanging case is stopped.
    - `from_nothing`: what follows a SELECT without a table, such as FROM DUAL.
    """

    pytestmark = pytest.mark.anyio

    gaps: ClassVar[Mapping[str, Gap]] = {}
    literals: ClassVar[Mapping[str, str]] = {}
    types: ClassVar[Mapping[str, str]] = {}
    engine_lacks: ClassVar[frozenset[Capability]] = frozenset()
    slow_query: ClassVar[str] = f"SELECT SUM(t0.id + t15.id) AS total FROM {CROSS_JOIN}"
    failing_query: ClassVar[str] = f"SELECT CAST(title AS INTEGER) AS number FROM {sample.TRACK}"
    generated: ClassVar[str] = "GENERATED ALWAYS AS (id + 1)"
    hard_name: ClassVar[str] = sample.HARD
    capitals: ClassVar[bool] = True
    relations: ClassVar[int] = 101
    many_rows: ClassVar[str] = product(SIDE)
    last_row: ClassVar[int] = SIDE**3
    failing_late_query: ClassVar[str] = (
        f"SELECT CAST(CASE WHEN q.n = {last_row} THEN 'x' ELSE '1' END AS INTEGER) AS number, '{WIDE}' AS wide"
        f" FROM ({many_rows}) q"
    )
    # No square leaves 3 when divided by 7. Statistics do not tell an engine so, as they do what a sum can be at most.
    rowless_query: ClassVar[str] = f"SELECT t0.id FROM {CROSS_JOIN} WHERE ({SUM_OF_IDS}) * ({SUM_OF_IDS}) % 7 = 3"
    from_nothing: ClassVar[str] = ""
    deadline: ClassVar[float] = 90.0
    first_two: ClassVar[str] = f"SELECT id FROM {sample.TRACK} ORDER BY id LIMIT 2"
    writes: ClassVar[Sequence[str]] = (
        f"INSERT INTO {sample.GENRE} (id, name) VALUES (9, 'Noise')",
        f"UPDATE {sample.GENRE} SET name = 'Noise'",
        f"DELETE FROM {sample.RATING}",
        "CREATE TABLE kit_new (id INTEGER)",
        f"DROP TABLE {sample.RATING}",
    )

    # What the author writes or may override

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls) -> Database:
        """The database under test, with the sample in it. Every dialect's class overrides this."""
        raise NotImplementedError(
            f"{cls.__name__} needs a class-scoped classmethod fixture `database`: build the sample with cls.fill(...)"
            " and return the Database to test."
        )

    @classmethod
    def unreachable(cls, database: Database) -> Database:
        """Return a database of this dialect that does not exist, with a password that must not be shown."""
        gone = dataclasses.replace(database, name="gone", password=Secret(PLANTED), url=None)
        if database.host is None:
            return dataclasses.replace(gone, database=f"{PLANTED}/missing")
        return dataclasses.replace(gone, host="127.0.0.1", port=1)

    async def alter(self, database: Database, statement: str) -> Database:
        """Run one statement that changes the schema, without dragoman, and return the changed database or copy.

        Cases that need it are left out if it is not overridden. With a fingerprint of the inspector's it must be. A
        copy is for engines whose file nobody can change while it is open.
        """
        raise AssertionError(
            "inspector.fingerprint() returns a text: override `alter`, so that the kit can check "
            "that it changes with the schema."
        )

    async def _change(self, database: Database, statement: str) -> Database:
        """Call `alter`, and say so if it fails."""
        try:
            return await self.alter(database, statement)
        except AssertionError:
            raise
        except Exception as error:  # the driver's own, of any class
            raise AssertionError(
                f"`alter` could not run {statement!r} ({type(error).__name__}: {error}). Write it there as the engine"
                " does. If the engine has no such schemas or views, let `alter` raise for CREATE SCHEMA or CREATE VIEW."
            ) from error

    @classmethod
    def _types(cls) -> Mapping[str, str]:
        """Return the types of the sample's columns as this engine writes them."""
        return {**sample.TYPES, **cls.types}

    @property
    def _alters(self) -> bool:
        """Whether the author has overridden `alter`."""
        return type(self).alter is not Suite.alter

    async def is_idle(self, gateway: Gateway) -> bool:
        """Return whether the database has ended all work within a few seconds.

        The default measures the processor time of this process and its children, which is right for embedded engines. A
        dialect with a server should ask the server for running statements.
        """
        return await becomes_idle(PROMPT)

    # What the kit provides

    @classmethod
    def statements(cls, dialect: str) -> tuple[str, ...]:
        """Return the statements that build the sample in an empty database of this dialect."""
        known = Plugins.discover().load(dialect).dialect
        if both := sorted(each.name for each in cls.engine_lacks & known.capabilities):
            raise ValueError(
                f"{', '.join(both)}: {cls.__name__}.engine_lacks says that the engine has none, and the dialect"
                " declares the capability. Remove it from one of the two."
            )
        types = cls._types()
        return tuple(sample.statements(known, types, cls.engine_lacks, cls.relations, cls.generated, cls.hard_name))

    @classmethod
    def fill(cls, dialect: str, connection: Any) -> None:
        """Build the sample through any DB-API connection (PEP 249) that may write, and close the connection."""
        cursor = connection.cursor()
        for statement in cls.statements(dialect):
            cursor.execute(statement)
        connection.commit()
        connection.close()

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """The kit runs on asyncio, as drivers do."""
        return "asyncio"

    @pytest.fixture(scope="class")
    @classmethod
    def folder(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        """An empty folder for the dialects that need one."""
        return tmp_path_factory.mktemp("kit")

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def known_from_nothing(cls) -> None:
        """Set what a SELECT without a table needs here."""
        _asking.from_nothing = cls.from_nothing

    @pytest.fixture(autouse=True)
    def declared_gap(self, request: pytest.FixtureRequest) -> None:
        """Let a declared gap fail, strictly; and let a case that does not count yet fail."""
        name = request.node.name.removeprefix("test_")
        gap = self.gaps.get(name) or self.gaps.get(name.partition("[")[0])
        if gap is not None:
            request.node.add_marker(pytest.mark.xfail(reason=gap.reason, strict=True))
        elif release := not_due(tier_of(request.node)):
            request.node.add_marker(pytest.mark.xfail(reason=f"counts from dragoman {release} on", strict=False))

    @pytest.fixture(scope="class")
    @classmethod
    async def gateway(cls, database: Database, anyio_backend: str) -> AsyncGenerator[Gateway]:
        """The gateway under test, with the dialect's real entry point."""
        async with Gateway.open([database]) as gateway:
            yield gateway

    @pytest.fixture
    def opened(self, gateway: Gateway) -> OpenDatabase:
        """The database under test: its executor and inspector, without the gateway's checks."""
        return gateway.database()

    @pytest.fixture
    def dialect(self, gateway: Gateway) -> Dialect:
        """The dialect under test."""
        return gateway.database().dialect


class _Asking:
    """What the kit's statements need in the running class."""

    from_nothing = ""

    def add_from(self, sql: str) -> str:
        return sample.with_from(sql, self.from_nothing)


_asking = _Asking()


async def ask(gateway: Gateway, sql: str, *parameters: Any, **options: Any) -> Result:
    """Return the answer of the whole gateway."""
    with anyio.fail_after(PATIENCE):
        return await gateway.query(None, _asking.add_from(sql), parameters, **options)


async def expect_answer(gateway: Gateway, sql: str, remedy: str, **options: Any) -> Result:
    """Return the answer of a statement that must succeed; else fail with `remedy`."""
    try:
        return await ask(gateway, sql, **options)
    except DragomanError as error:
        raise AssertionError(f"{sql} gave {error.code} ({error.message}). {remedy}") from error


async def run(opened: OpenDatabase, sql: str, *parameters: Any, **limits: Any) -> tuple[list[Column], list[list[Any]]]:
    """Return columns and rows directly from the executor, without the gateway's checks."""
    request = Request(statement=_asking.add_from(sql), parameters=parameters, limits=Limits(**limits))
    with anyio.fail_after(PATIENCE):
        async with opened.executor.open(request) as stream:
            rows = await read(stream)
        return list(stream.columns), rows


async def read(stream: RowStream) -> list[list[Any]]:
    """Return all rows of a stream as JSON values."""
    rows: list[list[Any]] = []
    async for batch in stream.batches:
        encoded = batch if isinstance(batch, Encoded) else encode(stream.columns, batch)
        rows += encoded.values
    return rows


async def failure(gateway: Gateway, sql: str, *parameters: Any, **options: Any) -> DragomanError:
    """Return the error of a statement that must fail. Anything but a `DragomanError` fails the case."""
    try:
        result = await ask(gateway, sql, *parameters, **options)
    except DragomanError as error:
        return error
    except Exception as error:
        raise AssertionError(advise_on(error)) from error
    raise AssertionError(_blame_answer(sql, result.rows))


async def direct_failure(opened: OpenDatabase, sql: str, *parameters: Any) -> DragomanError:
    """Return the error of a statement that must fail, directly from the executor."""
    try:
        _, rows = await run(opened, sql, *parameters)
    except DragomanError as error:
        return error
    except Exception as error:
        raise AssertionError(advise_on(error)) from error
    raise AssertionError(_blame_answer(sql, rows))


def _blame_answer(sql: str, rows: Sequence[Any]) -> str:
    told = f"{shorten(repr(sql))} must fail and was answered: {shorten(repr(list(rows[:3])))}."
    if "AS INTEGER) AS number" not in sql:
        return told
    return f"{told} If the engine takes a word for a number, override failing_query and failing_late_query."


def shorten(text: str) -> str:
    """Return the part of a long text that a message shows, so that the rest of the message is still read."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"


def advise_on(error: Exception) -> str:
    """Return advice about an exception that is not ours."""
    return (
        f"The plugin raised {type(error).__module__}.{type(error).__name__}. Translate the driver's exceptions into"
        " DragomanErrors at one place, around every call of the driver."
    )
