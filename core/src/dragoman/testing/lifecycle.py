"""Opening does no work, and closing leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import gc
import os
import shutil
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any, Final

import anyio

from dragoman.dialect import Capability
from dragoman.errors import ConnectionFailed, DragomanError
from dragoman.gateway import Gateway
from dragoman.gateway.breaker import FAILURES
from dragoman.model import Database
from dragoman.testing import sample
from dragoman.testing.base import PROMPT, OpenDatabase, Suite, advise_on, ask, failure, run
from dragoman.testing.idleness import children
from dragoman.testing.tiers import recommended, required

MANY: Final = 30
HURRY: Final = 0.001
"""Seconds in which no connection to a server is opened."""
ROUNDS: Final = 5
"""asyncio removes cancelled timers once there are over a hundred.

Queries with one timer each reach that in four rounds.
"""
Leftovers = tuple[set[int], set[str]]


class LifecycleCases(Suite):
    """Cases on gateways of their own: a shared one may start a thread in the background while another is closed."""

    @required
    async def test_opening_a_database_connects_to_nothing(self, database: Database) -> None:
        before = count_held()
        async with Gateway.open([self.unreachable(database)]) as gateway:
            gateway.database()
            started = list_newer(before)
        assert started == (set(), set()), (
            f"Creating executor and inspector started {_words(started)}: connect at the first statement, not before."
        )

    @required
    async def test_closing_leaves_no_process_and_no_thread_behind(self, database: Database) -> None:
        before, files = count_held(), open_files(database)
        async with Gateway.open([database]) as gateway:
            for _ in range(3):
                await ask(gateway, "SELECT 1 AS a")
            await gateway.database().inspector.version()
        left = await _list_left(before)
        assert left == (set(), set()), f"aclose left {_words(left)}: end and wait for all that the plugin started."
        still = open_files(database) - files
        assert not still, f"aclose left {still.total()} files of the database open: close every connection and cursor."

    @recommended
    async def test_an_executor_used_after_it_was_closed_answers_or_fails_clearly(self, database: Database) -> None:
        async with Gateway.open([database]) as gateway:
            opened = gateway.database()
            await ask(gateway, "SELECT 1 AS a")
        try:
            _, rows = await run(opened, "SELECT 1 AS a")
            assert rows == [[1]], f"After aclose the executor answered {rows}."
        except DragomanError:
            pass
        except Exception as error:
            raise AssertionError(advise_on(error)) from error
        finally:
            await opened.executor.aclose()

    @required
    async def test_a_database_never_used_closes_quietly(self, database: Database) -> None:
        async with Gateway.open([database]) as gateway:
            executor = gateway.database().executor
            for count in ("", " a second time"):
                try:
                    await executor.aclose()
                except Exception as error:
                    raise AssertionError(
                        f"Closing an executor that ran nothing{count} raised {error!r}: close what was opened, once."
                    ) from error

    @recommended
    async def test_many_queries_leave_nothing_behind_them(self, database: Database) -> None:
        async def count_after(count: int) -> Counter[str]:
            for _ in range(count):
                await ask(gateway, f"SELECT id FROM {sample.TRACK} ORDER BY id")
            return holdings()

        async with Gateway.open([database]) as gateway:
            before = await count_after(2 * gateway.database().config.pool_size)
            after = await count_after(MANY)
        grown = {what: count for what, count in (after - before).items() if count >= MANY // 2}
        assert not grown, (
            f"{MANY} queries, one after the other, left behind {grown}: close or give back what a query opens, in a"
            " `finally`."
        )

    @recommended
    async def test_what_a_query_made_goes_with_it(self, database: Database) -> None:
        async def grow(opened: OpenDatabase) -> int:
            before = count_blocks()
            for _ in range(MANY):
                await run(opened, f"SELECT id FROM {sample.TRACK} ORDER BY id")
            return count_blocks() - before

        async with Gateway.open([database]) as gateway:
            # Memory that is kept once, or dropped later, grows in some rounds: on a busy machine in more than ten, each
            # time by less. Memory that is never dropped grows in each.
            grown, rounds = MANY, 4 * ROUNDS
            while grown >= MANY and rounds:
                grown, rounds = await grow(gateway.database()), rounds - 1
        assert grown < MANY, (
            f"{MANY} queries, one after the other, left {grown} pieces of memory behind, however often they were run:"
            " close each connection or cursor, and keep no list of them."
        )

    @recommended(Capability.CANCEL)
    async def test_closing_waits_for_the_clean_up_of_queries(self, database: Database) -> None:
        before, tasks = count_held(), asyncio.all_tasks()
        async with Gateway.open([database]) as gateway:
            query = asyncio.ensure_future(run(gateway.database(), self.slow_query))
            await asyncio.wait({query}, timeout=PROMPT / 10)
            query.cancel()
            await asyncio.wait({query}, timeout=PROMPT)
        left = sorted(_name(task) for task in asyncio.all_tasks() - tasks if not task.done())
        assert not left, (
            f"After the database of a cancelled query was closed, {left} went on: await the clean-up of a query (with"
            " dragoman.finish), or wait for it in aclose."
        )
        held = await _list_left(before)
        assert held == (set(), set()), f"aclose left {_words(held)} of a cancelled query."

    @required
    async def test_failures_to_connect_cost_no_place_in_the_pool(self, database: Database) -> None:
        async with Gateway.open([self.unreachable(database)]) as gateway:
            for count in range(1, gateway.database().config.pool_size + 2):
                with anyio.move_on_after(2 * PROMPT) as scope:
                    error = await failure(gateway, "SELECT 1 AS a")
                    assert isinstance(error, ConnectionFailed), f"Failure {count} to connect gave {error.code}."
                assert not scope.cancelled_caught, (
                    f"Failure {count} to connect did not end: release the slot of the pool when opening fails."
                )

    @required
    async def test_callers_in_a_hurry_do_not_close_the_database_for_others(self, database: Database) -> None:
        async with Gateway.open([dataclasses.replace(database, pool_size=2 * FAILURES)]) as gateway:
            await ask(gateway, "SELECT 1 AS a")
            hurried = (ask(gateway, f"SELECT {number} AS a", timeout=HURRY) for number in range(3 * FAILURES))
            told = await asyncio.gather(*hurried, return_exceptions=True)
            failed = [error for error in told if isinstance(error, ConnectionFailed)]
            assert not failed, (
                f"{len(failed)} queries with {HURRY:g} seconds gave CONNECTION_ERROR ({failed[0].message}): limit the"
                " time for connecting by the configuration, not by what one caller waits. After a few such errors no"
                " caller is let through."
            )
            await ask(gateway, "SELECT 1 AS a")

    @required
    async def test_a_second_database_is_not_taken_for_the_first(self, database: Database) -> None:
        gone = self.unreachable(database)
        for order in ((database, gone), (gone, database)):
            async with Gateway.open(order) as gateway:
                for each in (*order, *order):
                    with anyio.fail_after(self.deadline):
                        told = await _ask(gateway, each, "SELECT 1 AS a")
                    assert (told == "answered") == (each is database), (
                        f"Of two databases one does not exist. A query of {'the other' if each is database else 'it'}"
                        f" {told}: make an executor and an inspector for each database, and share nothing among them."
                    )

    @required
    async def test_a_copy_of_a_file_is_another_database(self, database: Database, tmp_path: Path) -> None:
        file = database.folder / (database.database or "")
        if database.host is not None or not file.is_file() or not self._alters:
            return
        shutil.copy(file, tmp_path / file.name)
        copy = dataclasses.replace(database, name="copy", folder=tmp_path)
        view = f"CREATE VIEW {sample.LATER_VIEW} AS SELECT id FROM {sample.GENRE}"
        copy = dataclasses.replace(await self._change(copy, view), name="copy")
        async with Gateway.open([database, copy]) as gateway:
            for each in (database, copy, database):
                told = await _ask(gateway, each, f"SELECT id FROM {sample.LATER_VIEW}")
                assert (told == "answered") == (each is copy), (
                    f"Two files have one name, and only the second has a view. A query of it {told} in the"
                    f" {'second' if each is copy else 'first'}: share nothing among databases, and go by whole paths."
                )

    @required
    async def test_a_file_that_comes_later_is_opened_and_a_missing_one_not_made(
        self, database: Database, tmp_path: Path
    ) -> None:
        file = database.folder / (database.database or "")
        if database.host is not None or not file.is_file():
            return
        later = dataclasses.replace(database, folder=tmp_path)
        async with Gateway.open([later]) as gateway:
            error = await failure(gateway, "SELECT 1 AS a")
            assert isinstance(error, ConnectionFailed), f"A missing file raised {error.code}."
            assert not list(tmp_path.iterdir()), "Opening a missing file created it: open only existing files."
            shutil.copy(file, tmp_path / file.name)
            result = await ask(gateway, f"SELECT id FROM {sample.GENRE} ORDER BY id")
        assert result.rows == [[1], [2], [3]], f"After a failed opening a query was answered {result.rows}."

    @required
    async def test_a_gateway_opens_again(self, database: Database) -> None:
        for _ in range(2):
            async with Gateway.open([database]) as gateway:
                result = await ask(gateway, "SELECT 1 AS a")
                assert result.rows == [[1]], f"A gateway opened again answered {result.rows}."


async def _ask(gateway: Gateway, database: Database, sql: str) -> str:
    try:
        await gateway.query(database.name, sql)
    except DragomanError as error:
        return f"failed ({error.code}: {error.message})"
    return "answered"


def _name(task: asyncio.Task[Any]) -> str:
    return getattr(task.get_coro(), "__qualname__", task.get_name())


def holdings() -> Counter[str]:
    """Return how many files, threads and processes this process holds."""
    files = Path("/proc/self/fd")
    return Counter(
        files=len(list(files.iterdir())) if files.is_dir() else 0,
        threads=threading.active_count(),
        processes=len(children()),
    )


def count_blocks() -> int:
    """Return the number of memory blocks that Python has allocated, for its own objects and those of drivers."""
    gc.collect()
    return sys.getallocatedblocks()


def open_files(database: Database) -> Counter[str]:
    """Return the files below a database's folder that this process has open, if the system reports them."""
    held: Counter[str] = Counter()
    for each in Path("/proc/self/fd").glob("*"):
        with contextlib.suppress(OSError):
            held[os.readlink(each)] += 1
    folder = str(database.folder.absolute())
    return Counter({name: count for name, count in held.items() if database.host is None and name.startswith(folder)})


def count_held() -> Leftovers:
    """Return what this process holds, without the event loop's own threads.

    The core uses those threads too, and they end with the loop.
    """
    return children(), {each.name for each in threading.enumerate() if not each.name.startswith("asyncio_")}


def list_newer(before: Leftovers) -> Leftovers:
    """Return what is held now and was not held before."""
    processes, threads = count_held()
    return processes - before[0], threads - before[1]


async def _list_left(before: Leftovers) -> Leftovers:
    """Return what is held now and was not held before.

    Waits a moment: asyncio's threads briefly outlive their process.
    """
    with anyio.move_on_after(PROMPT):
        while list_newer(before) != (set(), set()):
            await anyio.sleep(0.02)
    return list_newer(before)


def _words(leftovers: Leftovers) -> str:
    return f"{len(leftovers[0])} processes and the threads {sorted(leftovers[1])}"
