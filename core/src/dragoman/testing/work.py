"""Work ends when nobody waits for it any more: cancelled, timed out, or left early. Many callers may work at once."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator
from typing import Any

import anyio
import pytest

from dragoman.dialect import Capability
from dragoman.errors import QueryTimeout
from dragoman.gateway import Gateway
from dragoman.model import Database, Limits, Request
from dragoman.testing.base import CROSS_JOIN, PROMPT, Suite, ask, failure, run
from dragoman.testing.tiers import recommended, required

MOMENT = 0.5
AT_ONCE = 10
PAUSE = 0.2
"""Seconds for which a statement must not block the event loop."""
DELAYS = (0.0, 0.0005, 0.001, 0.002, 0.005, 0.01)
"""Seconds after which a query is cancelled that may not have reached the database yet."""


class WorkCases(Suite):
    """Cases on a database with a single connection, so that a connection that stays busy is noticed at once."""

    @pytest.fixture(scope="class")
    @classmethod
    async def narrow(cls, database: Database, anyio_backend: str) -> AsyncGenerator[Gateway]:
        """The database under test with a single connection."""
        async with Gateway.open([dataclasses.replace(database, pool_size=1)]) as gateway:
            await ask(gateway, "SELECT 1 AS a")
            yield gateway

    @recommended(Capability.CANCEL)
    async def test_a_cancelled_query_is_ended_in_the_database(self, narrow: Gateway) -> None:
        for _ in range(2):
            query = asyncio.ensure_future(narrow.query(None, self.slow_query))
            await self._has_begun(query)
            query.cancel()
            await _ends(query, "A cancelled query")
        await self._assert_ended(narrow, "A cancelled query")

    @recommended(Capability.CANCEL)
    async def test_a_query_cancelled_again_and_again_is_ended_in_the_database(self, narrow: Gateway) -> None:
        request = Request(statement=self.slow_query)
        for _ in range(2):
            query = asyncio.ensure_future(_drain(narrow.database().executor, request))
            await self._has_begun(query)
            for _ in range(5):
                query.cancel()
                await asyncio.sleep(0.005)
            await _ends(query, "A query cancelled several times")
        await self._assert_ended(narrow, "A query cancelled several times, during its clean-up too,")

    @recommended(Capability.CANCEL)
    async def test_a_query_cancelled_as_it_begins_is_ended_in_the_database(self, narrow: Gateway) -> None:
        request = Request(statement=self.slow_query)
        for delay in DELAYS:
            query = asyncio.ensure_future(_drain(narrow.database().executor, request))
            await asyncio.sleep(delay)
            query.cancel()
            await _ends(query, f"A query cancelled {delay * 1000:g} milliseconds after it began")
            await self._assert_answers(narrow, "A query cancelled before its statement had begun")
        await self._assert_ended(narrow, "A query cancelled as it began")

    @recommended(Capability.CANCEL)
    async def test_a_query_cancelled_by_a_scope_is_ended_in_the_database(self, narrow: Gateway) -> None:
        began = time.monotonic()
        with anyio.move_on_after(MOMENT):
            await narrow.query(None, self.slow_query)
        assert time.monotonic() - began < MOMENT + PROMPT, (
            "A query cancelled by an anyio scope did not end promptly: such a scope cancels every await, so clean up in"
            " a shielded scope or in a task of its own."
        )
        await self._assert_ended(narrow, "A query cancelled by a scope")

    @required
    async def test_a_query_that_takes_too_long_is_ended_in_the_database(self, narrow: Gateway) -> None:
        began = time.monotonic()
        error = await failure(narrow, self.slow_query, timeout=MOMENT)
        assert isinstance(error, QueryTimeout), f"A query beyond its timeout gave {error.code}: {error.message}"
        assert time.monotonic() - began < MOMENT + PROMPT, "A query ran long after its timeout."
        await self._assert_ended(narrow, "A query beyond its timeout")

    @required
    async def test_the_executor_keeps_the_deadline_by_itself(self, narrow: Gateway) -> None:
        request = Request(statement=self.slow_query, limits=Limits(timeout=MOMENT))
        try:
            with anyio.fail_after(MOMENT + PROMPT):
                async with narrow.database().executor.open(request) as stream:
                    async for _ in stream.batches:
                        break
        except QueryTimeout:
            return
        except TimeoutError:
            raise AssertionError(
                "The executor ignored limits.timeout: enforce it in the engine, or around it."
            ) from None
        raise AssertionError("The slow query ended within its timeout: override slow_query with a slower one.")

    @required
    async def test_a_deadline_while_rows_come_is_not_their_end(self, narrow: Gateway) -> None:
        limits = Limits(timeout=MOMENT, max_rows=10**9, max_bytes=10**12)
        request = Request(statement=f"SELECT t0.id FROM {CROSS_JOIN}", limits=limits)
        try:
            with anyio.fail_after(MOMENT + 2 * PROMPT):
                await _drain(narrow.database().executor, request)
        except QueryTimeout:
            return
        except TimeoutError:
            raise AssertionError(
                "Rows kept coming beyond limits.timeout: check the deadline for every batch."
            ) from None
        raise AssertionError(
            "The deadline passed while rows were coming, and the stream just ended: raise QueryTimeout."
        )

    @recommended(Capability.CANCEL)
    async def test_a_stream_left_early_is_ended_in_the_database(self, narrow: Gateway) -> None:
        with anyio.fail_after(PROMPT * 4):
            for _ in range(2):
                async with narrow.database().executor.open(
                    Request(statement=f"SELECT t0.id FROM {CROSS_JOIN}")
                ) as stream:
                    async for _ in stream.batches:
                        break
        await self._assert_ended(narrow, "A stream left early")

    @recommended
    async def test_queries_at_once_get_each_its_own_answer(self, gateway: Gateway) -> None:
        with anyio.fail_after(PROMPT * 4):
            results = await asyncio.gather(*(ask(gateway, f"SELECT {n} AS n") for n in range(AT_ONCE)))
        answers = [result.rows[0][0] for result in results]
        assert answers == list(range(AT_ONCE)), (
            f"{AT_ONCE} concurrent queries returned {answers}: store nothing of a request in the executor."
        )

    @recommended
    async def test_more_queries_than_connections_wait_their_turn(self, narrow: Gateway) -> None:
        with anyio.fail_after(PROMPT * 4):
            results = await asyncio.gather(*(ask(narrow, f"SELECT {n} AS n") for n in range(AT_ONCE)))
        answers = [result.rows[0][0] for result in results]
        assert answers == list(range(AT_ONCE)), (
            f"{AT_ONCE} queries over one connection were answered {answers}: lend a connection to one query at a time."
        )

    @recommended
    async def test_a_slow_query_does_not_hold_up_others(self, gateway: Gateway) -> None:
        if gateway.database().config.pool_size < 2:
            pytest.skip("The database under test has a pool of one.")
        slow = asyncio.ensure_future(gateway.query(None, self.slow_query))
        try:
            await self._has_begun(slow)
            began = time.monotonic()
            await ask(gateway, "SELECT 1 AS a")
            assert time.monotonic() - began < PROMPT, (
                "A query waited for a slow one although the pool has a free connection: never block the event loop."
            )
        finally:
            slow.cancel()
            await asyncio.wait({slow}, timeout=2 * PROMPT)

    @recommended(Capability.CANCEL)
    async def test_cancelling_one_query_leaves_the_others_alone(self, gateway: Gateway) -> None:
        if gateway.database().config.pool_size < 2:
            pytest.skip("The database under test has a pool of one.")
        first, second = (asyncio.ensure_future(gateway.query(None, self.slow_query)) for _ in range(2))
        try:
            await self._has_begun(first)
            first.cancel()
            await asyncio.wait({first}, timeout=2 * PROMPT)
            done, _ = await asyncio.wait({second}, timeout=MOMENT)
            assert not done, (
                f"Cancelling one query ended another one ({second}): interrupt only its own connection or statement."
            )
        finally:
            first.cancel()
            second.cancel()
            await asyncio.wait({first, second}, timeout=2 * PROMPT)

    @required
    async def test_the_event_loop_goes_on_while_rows_are_awaited(self, narrow: Gateway) -> None:
        began = time.monotonic()
        waiting = asyncio.ensure_future(failure(narrow, self.rowless_query, timeout=MOMENT))
        longest = await _longest_pause(waiting)
        await _until(waiting, began + MOMENT + 2 * PROMPT, "A query whose first row never comes")
        assert longest < PROMPT / 2, (
            f"The event loop was blocked for {longest:.1f} seconds while rows were awaited: fetch them in a thread."
        )

    @required
    async def test_the_event_loop_goes_on_while_a_statement_begins(self, narrow: Gateway) -> None:
        opened = narrow.database()
        # The shortest of a few measurements: other load on this machine is not the plugin's fault.
        pause = min([await _longest_pause(asyncio.ensure_future(run(opened, "SELECT 1 AS a"))) for _ in range(5)])
        assert pause < PAUSE, (
            f"The event loop was blocked for {pause:.1f} seconds at each statement: open connections and send"
            " statements in a thread, or await the driver."
        )

    @required
    async def test_the_executor_runs_no_more_at_once_than_its_pool_has(self, narrow: Gateway) -> None:
        executor = narrow.database().executor
        request = Request(statement=self.slow_query, limits=Limits(timeout=PROMPT))
        first = asyncio.ensure_future(_drain(executor, request))
        try:
            await self._has_begun(first)
            second = asyncio.ensure_future(_drain(executor, Request(statement="SELECT 1 AS a")))
            done, _ = await asyncio.wait({second}, timeout=MOMENT)
            second.cancel()
            await asyncio.wait({second}, timeout=2 * PROMPT)
            assert not done, "Two statements ran at once with pool_size=1: respect Database.pool_size."
        finally:
            first.cancel()
            await asyncio.wait({first}, timeout=2 * PROMPT)

    async def _has_begun(self, query: asyncio.Future[Any]) -> None:
        began = time.monotonic()
        done, _ = await asyncio.wait({query}, timeout=MOMENT)
        assert time.monotonic() - began < MOMENT + PROMPT, (
            "The event loop was blocked while a query ran: await the driver, or call it in a thread or a process."
        )
        if done:
            query.result()
            raise AssertionError(
                f"The slow query ended within {MOMENT} seconds: override slow_query with a slower one."
            )

    async def _assert_answers(self, gateway: Gateway, what: str) -> None:
        began = time.monotonic()
        with anyio.move_on_after(2 * PROMPT):
            await ask(gateway, "SELECT 1 AS a")
        assert time.monotonic() - began < PROMPT, (
            f"{what} kept its connection busy: end the statement (interrupt, cancel or kill) before giving it back, and"
            " again where the first attempt came before the statement."
        )

    async def _assert_ended(self, gateway: Gateway, what: str) -> None:
        await self._assert_answers(gateway, what)
        if Capability.CANCEL in gateway.database().dialect.capabilities:
            assert await self.is_idle(gateway), (
                f"{what} goes on in the database although nobody waits for it. Leaving the stream must end it there:"
                " call the driver's interrupt or cancel, or do not declare Capability.CANCEL."
            )


async def _drain(executor: Any, request: Request) -> None:
    async with executor.open(request) as stream:
        async for _ in stream.batches:
            pass


async def _longest_pause(waiting: asyncio.Future[Any]) -> float:
    """Return the most seconds for which the event loop was blocked while something was awaited for a while."""
    longest, before = 0.0, time.monotonic()
    until = before + 3 * MOMENT
    while not waiting.done() and before < until:
        await asyncio.sleep(0.01)
        longest, before = max(longest, time.monotonic() - before), time.monotonic()
    return longest


async def _until(query: asyncio.Future[Any], deadline: float, what: str) -> None:
    await asyncio.wait({query}, timeout=max(0.0, deadline - time.monotonic()))
    assert query.done(), f"{what} runs long after its timeout: enforce the deadline while rows are fetched too."
    error = query.result()
    assert isinstance(error, QueryTimeout), f"{what} gave {error.code} and must be {QueryTimeout.code}."


async def _ends(query: asyncio.Future[Any], what: str) -> None:
    done, _ = await asyncio.wait({query}, timeout=2 * PROMPT)
    assert done, f"{what} does not let its caller go: bound the clean-up, and throw the connection away when it hangs."
    assert query.cancelled(), f"{what} was answered by {query.exception()!r} instead of ending as cancelled."
