"""A repeated query takes a short way: few functions, in few files, from the tool call to the driver and back.

What is told of a call once it is over, in the audit, in counters and in traces, is not on its way.
"""

import sqlite3
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import dragoman
from dragoman import Database, Gateway
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

FILES = 16
FUNCTIONS = 53
ROOT = Path(dragoman.__file__).parents[3]
QUERY = {"sql": "SELECT 1 AS one"}
Place = tuple[str, str]
TELLING = "Recorder.record"


def place(code: CodeType) -> Place | None:
    """Return the file and the function of ours that some code is in; a comprehension is in its function."""
    path = Path(code.co_filename)
    if not path.is_relative_to(ROOT) or "site-packages" in path.parts or "src" not in path.parts:
        return None
    return str(path.relative_to(ROOT)), code.co_qualname.partition(".<locals>.<")[0]


async def traced(work: Callable[[], Awaitable[Any]]) -> set[Place]:
    """Return the functions of ours that run while `work` does."""
    seen: set[CodeType] = set()
    told: list[FrameType] = []

    def note(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code.co_qualname == TELLING:
            told.append(frame)
        elif event == "return" and frame in told:
            told.remove(frame)
        elif event == "call" and not told:
            seen.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        await work()
    finally:
        sys.setprofile(before)
    return {found for code in seen if (found := place(code))} - {place(traced.__code__)}


async def shortest(database: Database) -> set[Place]:
    """Return the functions that a repeated query takes, of some tries the fewest: now and then one looks after more."""
    async with Gateway.open([database]) as gateway:
        toolbox = Toolbox(gateway)

        async def call() -> None:
            answer = await toolbox.call("execute_query", QUERY)
            assert not answer.is_error, answer.text

        for _ in range(3):
            await call()
        tries = [await traced(call) for _ in range(10)]
    return min(tries, key=len)


def check(taken: set[Place]) -> None:
    listed = "\n".join(f"{file}: {function}" for file, function in sorted(taken))
    files = {file for file, _ in taken}
    assert any("executor" in file for file in files), listed
    assert len(files) <= FILES, f"{len(files)} files\n{listed}"
    assert len(taken) <= FUNCTIONS, f"{len(taken)} functions\n{listed}"


async def test_on_sqlite(tmp_path: Path):
    path = tmp_path / "shop.db"
    sqlite3.connect(path).close()
    check(await shortest(Database(name="shop", dialect="sqlite", database=str(path))))


async def test_on_postgres():
    server = Server.start()
    try:
        check(await shortest(server.configure("postgres")))
    finally:
        server.stop()
