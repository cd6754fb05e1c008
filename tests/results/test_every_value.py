"""Values of every type, random and odd ones, come out of each kind of file, and of a kept result, as a query answers.

Or a notice says which column differs, and how. Files are read with other programs than those that wrote them.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import asyncpg
import duckdb
import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, Results
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server
from drawing_values import DUCKDB, DUCKDB_SETUP, POSTGRES, POSTGRES_SETUP, Asked, ask_sqlite, ask_typed
from reading_files import (
    cell_names,
    is_text_of,
    is_typed,
    moment,
    names_of,
    plain,
    read_arrow,
    read_csv,
    read_jsonl,
    read_parquet,
    read_xlsx,
    same,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(600)]

COUNTS = (25, 3_000)
"""Statements of each engine, in CI and at night."""
CASES = [
    pytest.param(
        engine, number, id=f"{engine}-{number}", marks=[pytest.mark.nightly, pytest.mark.timeout(14_400)] * late
    )
    for engine in ("postgres", "sqlite", "duckdb")
    for late, number in enumerate(COUNTS)
]
MOST = 32_767
"""The most characters of a cell, in UTF-16."""
Answer = dict[str, Any]
Call = Callable[..., Coroutine[Any, Any, Answer]]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def postgres(anyio_backend) -> AsyncGenerator[Database]:
    server = Server.start()
    name = await server.create()
    await server.run(POSTGRES_SETUP, name)
    yield replace(server.configure(name), name="shop", max_bytes=4_000_000)
    server.stop()


@asynccontextmanager
async def served(database: Database, folder: Path) -> AsyncGenerator[Call]:
    """Yield a function that calls a tool of a gateway over one database."""
    configuration = Configuration(databases={"shop": database}, results=Results(dir=folder / "kept"))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")

        async def call(tool: str, **arguments: Any) -> Answer:
            return json.loads((await toolbox.call(tool, arguments)).text)

        yield call


def draw(engine: str, number: int) -> list[Asked]:
    """Return statements of an engine, always the same."""
    rng = random.Random(f"{engine} {number}")
    if engine == "sqlite":
        return [ask_sqlite(rng, each) for each in range(number)]
    return [ask_typed(rng, each, POSTGRES if engine == "postgres" else DUCKDB) for each in range(number)]


async def make(database: Database, statements: Sequence[str]) -> None:
    """Run statements where a test may write."""
    if database.dialect == "sqlite":
        with closing(sqlite3.connect(str(database.database))) as connection, connection:
            for statement in statements:
                connection.execute(statement)
    elif database.dialect == "duckdb":
        with duckdb.connect(str(database.database)) as connection:
            for statement in (DUCKDB_SETUP, *statements):
                connection.execute(statement)
    else:
        connection = await asyncpg.connect(
            host=database.host, port=database.port, user=database.user, database=database.database
        )
        for statement in statements:
            await connection.execute(statement)
        await connection.close()


@pytest.mark.parametrize(("engine", "number"), CASES)
async def test_every_value_is_that_of_the_query(engine, number, tmp_path, postgres):
    database = Database(name="shop", dialect=engine, database=str(tmp_path / "shop.db"), max_bytes=4_000_000)
    database = postgres if engine == "postgres" else database
    statements = draw(engine, number)
    await make(database, [statement for each in statements for statement in each.setup])
    async with served(database, tmp_path) as call:
        for each in statements:
            answer = await call("execute_query", database="shop", sql=each.sql)
            assert "error" not in answer, (answer, each)
            try:
                await check_kept(call, answer, each.sql)
                await check_files(call, answer)
                await check_table_of_results(call, answer)
            except AssertionError as error:
                raise AssertionError(f"{each.sql}\n{each.setup}") from error


async def test_rows_without_a_column_are_no_file_and_close_nothing(tmp_path, postgres):
    async with served(postgres, tmp_path) as call:
        kept = await call("execute_query", database="shop", sql="SELECT FROM generate_series(1, 2)", keep="nothing")
        assert (kept["columns"], kept["rows"]) == ([], [[], []])
        for form in FORMS:
            assert (await call("export_result", result="nothing", format=form))["error"]["code"] == "UNSUPPORTED"
        await call("execute_query", database="shop", sql="SELECT 7 AS n", keep="kept")
        assert "kept" in json.dumps(await call("list_tables", database="results"))
        assert (await call("execute_query", database="results", sql="SELECT * FROM kept"))["rows"] == [[7]]


async def check_kept(call: Call, answer: Answer, sql: str) -> None:
    """Keep the answer of the query, and compare it with a page of what is kept."""
    kept = await call("execute_query", database="shop", sql=sql, keep="kept")
    assert "error" not in kept, kept
    page = await call("get_result", result="kept", limit=1000)
    for key in ("columns", "types", "rows"):
        assert same(page[key], answer[key]), (page[key], answer[key])


async def check_files(call: Call, answer: Answer) -> None:
    for form, check in FORMS.items():
        exported = await call("export_result", result="kept", format=form)
        assert "error" not in exported, exported
        told = [each for each in exported.get("notices", ()) if each not in answer.get("notices", ())]
        check(Path(exported["file"]), answer, " ".join(told))


def check_csv(path: Path, answer: Answer, told: str) -> None:
    names, *lines = read_csv(path)
    assert len(lines) == len(answer["rows"])
    for cell, name in zip(names, answer["columns"], strict=True):
        is_escaped = cell == f"'{name}" and f"The name {name!r} begins like a formula" in told
        assert cell == name or is_escaped, (cell, name, told)
    for line, row in zip(lines, answer["rows"], strict=True):
        for cell, value, name in zip(line, row, answer["columns"], strict=True):
            assert is_csv(cell, value, told=f"column {name!r} begin like a formula" in told, alone=len(row) == 1), (
                f"{cell!r} stands for {value!r}; {told}"
            )


def is_csv(cell: str | None, value: Any, *, told: bool, alone: bool) -> bool:
    """Return whether a cell is a value. `told`: a `'` may stand before it. `alone`: it is its line."""
    if cell is None or value is None:
        return cell is value or (alone and cell == "" and value is None)
    return is_text_of(cell, value) or (told and isinstance(value, str) and cell == f"'{value}")


def check_jsonl(path: Path, answer: Answer, told: str) -> None:
    lines = [plain(each) for each in read_jsonl(path)]
    names = names_of(answer["columns"])
    assert all(same(list(line), names) for line in lines), names
    assert same([list(line.values()) for line in lines], answer["rows"]), lines
    assert bool(told) is (names != answer["columns"]), told


def check_table(table: Any, answer: Answer, told: str) -> None:
    assert table.column_names == names_of(answer["columns"])
    assert table.num_rows == len(answer["rows"])
    for place, (name, declared) in enumerate(zip(answer["columns"], answer["types"], strict=True)):
        field = table.schema.field(place)
        assert field.metadata[b"dragoman:type"].decode() == declared
        values = [row[place] for row in answer["rows"]]
        for stored, value in zip(table.column(place).to_pylist(), values, strict=True):
            assert is_typed(stored, field.type, value), f"{stored!r} ({field.type}) stands for {value!r} ({declared})"
        if str(field.type) == "string" and not all(isinstance(value, str | None) for value in values):
            assert f"{name} ({declared})" in told, (name, declared, told)


def check_parquet(path: Path, answer: Answer, told: str) -> None:
    check_table(read_parquet(path), answer, told)


def check_arrow(path: Path, answer: Answer, told: str) -> None:
    check_table(read_arrow(path), answer, told)


def check_xlsx(path: Path, answer: Answer, told: str) -> None:
    names, *lines = read_xlsx(path)
    assert cell_names(names, len(answer["columns"])) == answer["columns"]
    lines += [{}] * (len(answer["rows"]) - len(lines))  # a row of NULL alone is not written
    for line, row in zip(lines, answer["rows"], strict=True):
        for place, value in enumerate(row):
            assert is_cell(line.get(place), value, told=told), f"{line.get(place)!r} stands for {value!r}; {told}"


def is_cell(cell: Any, value: Any, *, told: str) -> bool:
    """Return whether a cell of a sheet is a value. A sheet has no empty text."""
    match cell:
        case None:
            return value in (None, "")
        case bool():
            return cell is value
        case [number]:
            held = isinstance(value, float) or (type(value) is int and abs(value) < 10**15)
            return held and float(number) == value
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    is_cut = "cut" in told and len(cell.encode("utf-16-le")) // 2 in (MOST, MOST - 1)
    return is_text_of(cell, value) or (is_cut and whole.startswith(cell))


FORMS = {
    "csv": check_csv,
    "jsonl": check_jsonl,
    "parquet": check_parquet,
    "arrow": check_arrow,
    "xlsx": check_xlsx,
}


async def check_table_of_results(call: Call, answer: Answer) -> None:
    """Compare the table of the database `results` with the answer, by the place of each column."""
    read = await call("execute_query", database="results", sql="SELECT * FROM kept")
    assert "error" not in read, read
    assert len({name.lower() for name in read["columns"]}) == len(answer["columns"])
    # Long texts: `max_bytes` of the database `results` is its default.
    is_cut = read.get("truncated", {}).get("reason") == "bytes"
    for row, wanted in zip(
        read["rows"], answer["rows"][: len(read["rows"])] if is_cut else answer["rows"], strict=True
    ):
        for cell, value, declared in zip(row, wanted, read["types"], strict=True):
            assert is_in_table(cell, value, declared), f"{cell!r} ({declared}) stands for {value!r}"


def is_in_table(cell: Any, value: Any, declared: str) -> bool:
    """Return whether a value of DuckDB's is an answer's value, as its type spells it."""
    if same(cell, value) or is_text_of(cell, value):
        return True
    if cell is None or value is None:
        return False
    if isinstance(cell, list):
        return (
            isinstance(value, list)
            and len(cell) == len(value)
            and all(
                is_in_table(each, item, declared.removesuffix("[]")) for each, item in zip(cell, value, strict=True)
            )
        )
    if declared.startswith("timestamp"):
        return moment(cell) == moment(value)
    return declared.startswith(("decimal", "double")) and Decimal(cell) == Decimal(value)
