"""How long calls of tools keep the event loop from others, and which of them are answered as a bug."""

import asyncio
import gc
import json
import sqlite3
import time
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

from dragoman import Database
from dragoman.tools import Toolbox

BUGS = {"INTERNAL_ERROR", "DIALECT_ERROR"}
MOST = 20
"""Pauses are counted in units of about a millisecond; 10 ms are the aim, this guards against what grows with a text."""
MEASUREMENTS = 4
"""Of a call that seems to hold the loop, at most: what else a machine does only adds, so the shortest pause counts."""


def sqlite_file(folder: Path, name: str, script: str) -> Database:
    with sqlite3.connect(folder / f"{name}.db") as connection:
        connection.executescript(f"BEGIN; {script} COMMIT;")
    connection.close()
    return Database(name=name, dialect="sqlite", database=str(folder / f"{name}.db"))


def unit() -> float:
    """Seconds of processor time of a known piece of Python, about one where this was written."""

    def once() -> float:
        began = time.thread_time()
        sorted(str(number) for number in range(8_000))
        return time.thread_time() - began

    return min(once() for _ in range(5))


async def paused(work: Awaitable[Any]) -> tuple[Any, float]:
    """Return what the work answers and the longest time the event loop was kept by one callback.

    Collections of garbage wait: how long they take is a matter of everything in this process.
    """
    longest = 0.0
    done = asyncio.Event()

    async def waited(seconds: float) -> float:
        began = time.thread_time()
        await asyncio.sleep(seconds)
        return time.thread_time() - began

    async def beat() -> None:
        nonlocal longest
        while True:
            ended = done.is_set()
            # Each is one turn of the loop or two; together they would count three pieces of work as one.
            longest = max(longest, await waited(0))
            if ended:
                return
            longest = max(longest, await waited(0.0005))

    beating = asyncio.create_task(beat())
    await asyncio.sleep(0)
    gc.disable()
    try:
        answer = await work
    finally:
        done.set()
        await beating
        gc.enable()
    return answer, longest


async def failures(toolbox: Toolbox, calls: Iterator[tuple[str, dict[str, Any]]]) -> list[str]:
    """Return what of these calls was answered as a bug, or kept the loop for more than `MOST` units every time."""
    most = MOST * unit()
    wrong = []
    for tool, arguments in calls:
        answer, longest = await paused(toolbox.call(tool, arguments))
        for number in range(1, MEASUREMENTS):
            if longest > most:
                longest = min(longest, (await paused(toolbox.call(tool, anew(arguments, number))))[1])
        code = json.loads(answer.text)["error"]["code"] if answer.is_error else ""
        if code in BUGS or longest > most:
            wrong.append(f"{tool} {str(arguments)[:150]}: {code} {answer.text[:200]} ({longest * 1000:.0f} ms)")
    return wrong


def anew(arguments: Any, number: int) -> Any:
    """Return arguments that mean the same, with a statement whose verdict is not remembered."""
    sql = arguments.get("sql") if isinstance(arguments, dict) else None
    return {**arguments, "sql": sql + " " * number} if isinstance(sql, str) else arguments
