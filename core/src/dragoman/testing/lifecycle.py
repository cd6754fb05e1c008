"""Opening costs nothing, closing leaves nothing."""

from __future__ import annotations

import threading

import anyio

from dragoman.errors import DragomanError
from dragoman.gateway import Gateway
from dragoman.model import Database
from dragoman.testing.base import PROMPT, Suite, ask, run, unexpected
from dragoman.testing.idleness import children
from dragoman.testing.tiers import recommended, required

Leftovers = tuple[set[int], set[str]]


class LifecycleCases(Suite):
    """On gateways of their own."""

    @required
    async def test_opening_a_database_connects_to_nothing(self, database: Database) -> None:
        before = _count_held()
        async with Gateway.open([self.unreachable(database)]) as gateway:
            gateway.database()
            started = _newer(before)
        assert started == (set(), set()), (
            f"Making executor and inspector started {_words(started)}: connect at the first statement, not before."
        )

    @required
    async def test_closing_leaves_no_process_and_no_thread_behind(self, database: Database) -> None:
        before = _count_held()
        async with Gateway.open([database]) as gateway:
            await ask(gateway, "SELECT 1 AS a")
            await gateway.database().inspector.version()
        with anyio.move_on_after(PROMPT):
            while _newer(before) != (set(), set()):
                await anyio.sleep(0.02)
        left = _newer(before)
        assert left == (set(), set()), f"aclose left {_words(left)}: end and wait for all that the plugin started."

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
            raise AssertionError(unexpected(error)) from error
        finally:
            await opened.executor.aclose()

    @required
    async def test_a_database_never_used_closes_quietly(self, database: Database) -> None:
        async with Gateway.open([database]) as gateway:
            gateway.database()

    @required
    async def test_a_gateway_opens_again(self, database: Database) -> None:
        for _ in range(2):
            async with Gateway.open([database]) as gateway:
                result = await ask(gateway, "SELECT 1 AS a")
                assert result.rows == [[1]], f"A gateway opened again answered {result.rows}."


def _count_held() -> Leftovers:
    return children(), {thread.name for thread in threading.enumerate()}


def _newer(before: Leftovers) -> Leftovers:
    processes, threads = _count_held()
    return processes - before[0], threads - before[1]


def _words(leftovers: Leftovers) -> str:
    return f"{len(leftovers[0])} processes and the threads {sorted(leftovers[1])}"
