"""Bounds of an answer: rows, bytes, and whether it says exactly when something is missing."""

from __future__ import annotations

import anyio
import pytest

from dragoman.dialect import Dialect
from dragoman.errors import QueryError, ResultTooLarge
from dragoman.gateway import Gateway
from dragoman.model import Encoded, Limits, Request
from dragoman.testing import sample
from dragoman.testing.base import PATIENCE, SIDE, OpenDatabase, Suite, ask, expect_answer, failure, product, run
from dragoman.testing.base import WIDE as PADDING
from dragoman.testing.tiers import recommended, required

COUNT = 25
NUMBERS = sample.numbers(COUNT)
WIDE = " UNION ALL ".join(f"SELECT {n} AS n, '{'x' * 1000}' AS t" for n in range(COUNT))
FAR = 25
MANY = product(SIDE)


class BoundCases(Suite):
    """Answers of n, n + 1, and exactly n rows, and bounds in bytes."""

    @required
    async def test_a_result_of_exactly_the_limit_is_not_truncated(self, gateway: Gateway) -> None:
        result = await ask(gateway, NUMBERS, limit=COUNT)
        assert (result.row_count, result.truncated) == (COUNT, None), (
            f"{result.row_count} of {COUNT} rows came with limit={COUNT}, truncated={result.truncated}."
        )

    @required
    async def test_a_result_of_one_row_more_is_truncated_and_says_so(self, gateway: Gateway) -> None:
        result = await ask(gateway, NUMBERS, limit=COUNT - 1)
        reason = result.truncated and (result.truncated.reason, result.truncated.limit)
        assert (result.row_count, reason) == (COUNT - 1, ("rows", COUNT - 1)), (
            f"{result.row_count} of {COUNT} rows came with limit={COUNT - 1}, "
            f"truncated={result.truncated}. The executor must return at least limits.max_rows + 1 "
            "rows if there are that many: the core cuts."
        )

    @required
    async def test_a_result_below_the_limit_is_whole(self, gateway: Gateway) -> None:
        result = await ask(gateway, NUMBERS, limit=COUNT + 1)
        assert (result.row_count, result.truncated) == (COUNT, None), (
            f"{result.row_count} of {COUNT} rows came with limit={COUNT + 1}, truncated={result.truncated}."
        )

    @required
    async def test_a_limit_of_one_gives_one_row(self, gateway: Gateway) -> None:
        result = await ask(gateway, NUMBERS, limit=1)
        assert result.row_count == 1, f"{result.row_count} rows came with limit=1."
        assert result.truncated, "truncated is not set with limit=1 of several rows."

    @required
    async def test_the_same_statement_has_the_limits_of_each_request(self, opened: OpenDatabase) -> None:
        _, few = await run(opened, NUMBERS, max_rows=3)
        _, all_ = await run(opened, NUMBERS, max_rows=COUNT)
        assert len(all_) == COUNT, (
            f"{len(few)} rows came with max_rows=3, and then {len(all_)} of {COUNT} with max_rows={COUNT}: store"
            " nothing of a request in the executor, and keep no statement together with its limits."
        )

    @required
    async def test_the_executor_delivers_enough_rows_to_tell(self, opened: OpenDatabase) -> None:
        _, rows = await run(opened, NUMBERS, max_rows=3)
        assert len(rows) > 3, (
            f"The executor returned {len(rows)} rows for max_rows=3. It must return at least 4, "
            "to show that more exist."
        )

    @recommended
    async def test_a_row_limit_keeps_the_order(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT n FROM ({NUMBERS}) AS t ORDER BY n DESC", limit=3)
        wanted = [[COUNT], [COUNT - 1], [COUNT - 2]]
        assert result.rows == wanted, (
            f"ORDER BY n DESC with limit=3 gave {result.rows}. A dialect that wraps statements loses the order here:"
            " stop reading instead."
        )

    @recommended
    async def test_a_row_limit_keeps_the_order_of_a_table(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT id FROM {sample.TRACK} ORDER BY id DESC", limit=2)
        assert result.rows == [[5], [4]], f"ORDER BY id DESC with limit=2 gave {result.rows}; the order was lost."

    @recommended
    async def test_a_statement_s_own_limit_holds(self, gateway: Gateway) -> None:
        remedy = "If the engine writes it differently, override first_two."
        result = await expect_answer(gateway, self.first_two, remedy, limit=5)
        assert (result.rows, result.truncated) == ([[1], [2]], None), (
            f"{self.first_two} with limit=5 gave {result.rows}, truncated={result.truncated}. {remedy}"
        )

    @required
    async def test_bytes_are_bounded(self, gateway: Gateway) -> None:
        result = await ask(gateway, WIDE, max_bytes=5000)
        assert len(result.rows_json) <= 5000, f"{len(result.rows_json)} bytes came with max_bytes=5000."
        assert result.row_count, "No row came although the first fits max_bytes."
        assert result.truncated, "The answer was cut by max_bytes and does not say so."
        assert result.truncated.reason == "bytes", f"truncated says {result.truncated} and must say bytes."

    @required
    async def test_a_first_row_beyond_the_byte_limit_is_an_error(self, gateway: Gateway) -> None:
        error = await failure(gateway, WIDE, max_bytes=500)
        assert isinstance(error, ResultTooLarge), f"A row larger than max_bytes gave {error.code}: {error.message}"

    @required
    async def test_the_executor_has_no_row_limit_of_its_own(self, opened: OpenDatabase) -> None:
        _, rows = await run(opened, product(FAR), max_rows=2 * FAR**3, max_bytes=10**9)
        assert len({row[0] for row in rows}) == len(rows) == FAR**3, (
            f"{len(rows)} of {FAR**3} rows came with limits.max_rows={2 * FAR**3}: apply no "
            "limits but those of the request, since paging and exports need all rows."
        )

    @required
    async def test_a_failure_after_many_rows_is_not_the_end_of_the_rows(self, gateway: Gateway) -> None:
        own = type(self)
        if own.failing_query != Suite.failing_query and own.failing_late_query == Suite.failing_late_query:
            pytest.skip("failing_query is overridden: override failing_late_query too, which fails after many rows.")
        with anyio.fail_after(PATIENCE):
            error = await failure(gateway, self.failing_late_query, limit=SIDE**3, max_bytes=10_000_000)
        assert isinstance(error, QueryError), (
            f"A failure after thousands of rows gave {error.code} ({error.message}) and must be {QueryError.code}."
        )

    @required
    async def test_an_order_is_kept_across_batches(self, opened: OpenDatabase) -> None:
        statement = f"SELECT q.n, '{PADDING}' AS wide FROM ({self.many_rows}) q ORDER BY q.n"
        _, rows = await run(opened, statement, max_rows=2 * SIDE**3, max_bytes=10**9)
        numbers = [int(row[0]) for row in rows]
        assert numbers == sorted(numbers), (
            "Thousands of rows did not come in the order of ORDER BY: pass batches on in their order."
        )

    @recommended
    async def test_rows_come_in_batches(self, opened: OpenDatabase) -> None:
        limits = Limits(max_rows=2 * SIDE**3, max_bytes=10**9)
        request = Request(statement=f"SELECT q.n, '{PADDING}' AS wide FROM ({self.many_rows}) q", limits=limits)
        async with opened.executor.open(request) as stream:
            sizes = [len(each.values if isinstance(each, Encoded) else each) async for each in stream.batches]
        assert max(sizes) <= sum(sizes) / 2, (
            f"{max(sizes)} of {sum(sizes)} rows came in one batch of some megabytes: fetch some hundred rows at a time."
        )

    @required
    async def test_nothing_is_lost_or_repeated_between_batches(self, gateway: Gateway, dialect: Dialect) -> None:
        count = min(SIDE**3, gateway.database().config.max_rows)
        result = await ask(gateway, MANY, limit=count, max_bytes=10_000_000)
        distinct = {row[0] for row in result.rows}
        assert (result.row_count, len(distinct)) == (count, count), (
            f"{result.row_count} rows came, {len(distinct)} of them distinct; {count} must come, each once. Look at"
            f" what the executor of {dialect.name} does between batches."
        )
