"""Files of a test's own, and what reads them."""

import json
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import apsw
import pytest
from dragoman import Database, DragomanError, Encoded, Inspection, Limits, Request, Scope, Table
from dragoman_sqlite.executor import SQLiteExecutor
from dragoman_sqlite.inspector import SQLiteInspector


class Answer(NamedTuple):
    columns: list[str]
    types: list[str]
    rows: list[list]
    notices: list[str]


class Bench:
    """Makes databases in `folder` and asks them, past every check of the core."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._executors: dict[str, SQLiteExecutor] = {}

    def make(self, script: str = "", name: str = "test.db", **settings) -> Database:
        with closing(apsw.Connection(str(self.folder / name))) as connection:
            connection.execute(script).fetchall()
        return self.configure(name, **settings)

    def configure(self, name: str, **settings) -> Database:
        return Database(name="shop", dialect="sqlite", database=name, folder=self.folder, **settings)

    def executor(self, database: Database) -> SQLiteExecutor:
        key = f"{database} {dict(database.options)}"
        if key not in self._executors:
            self._executors[key] = SQLiteExecutor(database)
        return self._executors[key]

    async def ask(self, database: Database, sql: str, *parameters, **limits) -> Answer:
        request = Request(statement=sql, parameters=parameters, limits=Limits(**limits))
        rows: list[bytes] = []
        notices: list[str] = []
        async with self.executor(database).open(request) as stream:
            async for batch in stream.batches:
                assert isinstance(batch, Encoded)
                rows += batch.rows
                notices += batch.notices
            columns = [column.name for column in stream.columns]
            types = [column.type for column in stream.columns]
        return Answer(columns, types, [json.loads(row) for row in rows], notices)

    async def fails(self, database: Database, sql: str, *parameters, **limits) -> DragomanError:
        with pytest.raises(DragomanError) as raised:
            await self.ask(database, sql, *parameters, **limits)
        return raised.value

    async def inspect(self, database: Database) -> Inspection:
        return await SQLiteInspector(database, self.executor(database)).tables(Scope())

    async def table(self, database: Database, name: str) -> Table:
        inspection = await self.inspect(database)
        return next(table for table in inspection.tables if table.relation.name == name)

    async def aclose(self) -> None:
        for executor in self._executors.values():
            await executor.aclose()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncGenerator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    await bench.aclose()


@pytest.fixture(scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[Bench]:
    """One for all tests of a module, which only read: starting a process for each would take most of the time."""
    bench = Bench(tmp_path_factory.mktemp("shared"))
    yield bench
    await bench.aclose()
