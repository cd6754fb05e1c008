"""Results are cut exactly: at a row, at a byte, wherever batches begin and end."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from dragoman import Column, Encoded, Kind, Limits, ResultTooLarge, RowStream, encode
from dragoman.results import Bounded, Collected, Collector
from hypothesis import given
from hypothesis import strategies as st

COLUMNS = [Column("n", "integer", Kind("integer")), Column("s", "text", Kind("text"))]
ROWS = [(1, "a"), (22, "bb"), (333, "c"), (4, ""), (5, None)]
PLENTY = Limits(max_rows=1000, max_bytes=100_000)


async def collect(stream: RowStream, limits: Limits) -> Collected:
    return await Collector().collect(stream, limits)


def stream(rows: Sequence[Any], cuts: Sequence[int] = (), *, encoded: bool = False) -> RowStream:
    """A stream of `rows` in batches that begin at `cuts`."""

    async def batches():
        for start, end in pairwise([0, *cuts, len(rows)]):
            yield encode(COLUMNS, rows[start:end]) if encoded else rows[start:end]

    return RowStream(COLUMNS, batches())


def minified(rows: Sequence[Any]) -> bytes:
    return json.dumps(rows, separators=(",", ":")).encode()


@pytest.mark.parametrize("encoded", [True, False])
@pytest.mark.parametrize("cut", range(6))
async def test_rows_are_the_same_wherever_a_batch_ends(cut: int, encoded: bool):
    found = await collect(stream(ROWS, [cut], encoded=encoded), PLENTY)
    assert (found.rows_json, found.row_count, found.truncated) == (minified(ROWS), 5, None)


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("limit", range(1, 7))
async def test_a_result_is_truncated_exactly_when_rows_are_left_out(limit: int, cut: int):
    found = await collect(stream(ROWS, [cut]), Limits(max_rows=limit))
    assert found.rows_json == minified(ROWS[:limit])
    assert found.row_count == min(limit, 5)
    told = found.truncated and (found.truncated.reason, found.truncated.limit)
    assert told == (("rows", limit) if limit < 5 else None)


@pytest.mark.parametrize("cut", range(6))
@pytest.mark.parametrize("kept", range(1, 6))
async def test_bytes_are_those_of_the_minified_array(kept: int, cut: int):
    size = len(minified(ROWS[:kept]))
    exact = await collect(stream(ROWS, [cut]), Limits(max_bytes=size))
    assert exact.rows_json == minified(ROWS[:kept])
    assert (exact.truncated and exact.truncated.reason) == ("bytes" if kept < 5 else None)
    if kept > 1:
        less = await collect(stream(ROWS, [cut]), Limits(max_bytes=size - 1))
        assert less.rows_json == minified(ROWS[: kept - 1])


async def test_a_first_row_that_alone_is_too_large_is_an_error():
    with pytest.raises(ResultTooLarge, match="larger than 8 bytes"):
        await collect(stream(ROWS), Limits(max_bytes=8))


async def test_an_empty_stream_keeps_its_columns():
    found = await collect(stream([]), PLENTY)
    assert (found.columns, found.rows_json, found.row_count, found.truncated) == (tuple(COLUMNS), b"[]", 0, None)


async def test_columns_are_those_of_the_end():
    given = stream(ROWS)
    given.columns = list(COLUMNS)
    rows = given.batches

    async def batches():
        async for batch in rows:
            yield batch
        given.columns = [COLUMNS[0], Column("s", "varchar", Kind("text"))]

    given.batches = batches()
    assert [column.type for column in (await collect(given, PLENTY)).columns] == ["integer", "varchar"]


async def test_a_notice_comes_once_whoever_gives_it():
    async def batches():
        yield Encoded(b"[1]", 1, ("changed", "odd"))
        yield Encoded(b"", 0, ("late",))
        yield Encoded(b"[2]", 1, ("odd",))

    found = await collect(RowStream(COLUMNS[:1], batches(), ["changed"]), PLENTY)
    assert found.notices == ("changed", "odd", "late")
    assert found.rows_json == b"[[1],[2]]"


async def test_no_batch_is_read_after_the_one_that_a_limit_cut():
    read: list[int] = []

    async def batches():
        for number in range(10):
            read.append(number)
            yield [(number, "x")]

    await collect(RowStream(COLUMNS, batches()), Limits(max_rows=3))
    assert read == [0, 1, 2, 3]


async def test_a_bounded_stream_counts_what_it_hands_out():
    bounded = Bounded(stream(ROWS, [2]), Limits(max_rows=3))
    handed = [row async for batch in bounded.batches() for row in batch.rows]
    assert (bounded.rows, bounded.bytes) == (len(handed), len(b"[" + b",".join(handed) + b"]"))
    assert bounded.truncated is not None


@given(
    rows=st.lists(st.tuples(st.integers(), st.none() | st.text()), max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4),
    limits=st.tuples(st.integers(1, 14), st.integers(2, 200)),
)
async def test_limits_never_lie(rows: list[Any], cuts: list[int], limits: tuple[int, int]):
    max_rows, max_bytes = limits
    texts = encode(COLUMNS, rows).rows
    kept = max(n for n in range(len(rows) + 1) if n <= max_rows and len(b",".join(texts[:n])) + 2 <= max_bytes)
    starts = sorted({min(cut, len(rows)) for cut in cuts})
    try:
        found = await collect(stream(rows, starts), Limits(max_rows=max_rows, max_bytes=max_bytes))
    except ResultTooLarge:
        assert kept == 0 < len(rows)
    else:
        assert found.rows_json == b"[" + b",".join(texts[:kept]) + b"]"
        assert len(found.rows_json) <= max_bytes
        assert (found.truncated is None) == (kept == len(rows))


@pytest.mark.parametrize("count", [1, 30])
async def test_a_row_that_is_announced_as_too_large_cuts_where_it_stands(count: int):
    async def batches():
        yield ROWS[:2]
        yield Encoded(b"", 0, oversized=True)

    found = await collect(RowStream(COLUMNS, batches()), Limits(max_bytes=1000, max_rows=1 + count))
    assert found.rows_json == minified(ROWS[:2])
    assert found.truncated is not None
    assert found.truncated.reason == ("rows" if count == 1 else "bytes")


async def test_a_first_row_that_is_announced_as_too_large_is_an_error():
    async def batches():
        yield Encoded(b"", 0, oversized=True)

    with pytest.raises(ResultTooLarge, match="first row"):
        await collect(RowStream(COLUMNS, batches()), PLENTY)


async def _collect(stream: RowStream) -> None:
    await Collector().collect(stream, PLENTY)


async def _iterate(stream: RowStream) -> None:
    assert [batch async for batch in Bounded(stream, PLENTY).batches()] == []


@pytest.mark.parametrize("read", [_collect, _iterate])
async def test_a_stream_that_yields_nothing_for_ever_ends_at_a_deadline(read: Callable[[RowStream], Awaitable[None]]):
    async def nothing():
        while True:
            yield []

    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(read(RowStream(COLUMNS, nothing())), 0.1)


@pytest.mark.parametrize(
    "column", [Column("n" * 20_000, "integer"), Column("n", "t" * 20_000), Column('"' * 9_000, "text")]
)
async def test_names_and_types_of_columns_are_bounded(column: Column):
    few, many = RowStream([column], stream([]).batches), RowStream([column] * 20, stream([]).batches)
    assert (await collect(few, PLENTY)).columns == (column,)
    with pytest.raises(ResultTooLarge, match="names and types"):
        await collect(many, PLENTY)
    with pytest.raises(ResultTooLarge, match="names and types"):
        await collect(few, Limits(max_bytes=10))


async def test_of_too_many_columns_only_the_lengths_are_looked_at():
    class Unhashed(Column):
        def __hash__(self) -> int:
            raise AssertionError("a hash takes a microsecond for each column")

    with pytest.raises(ResultTooLarge, match="its 12000 columns"):
        await collect(RowStream([Unhashed("a", "integer")] * 12_000, stream([]).batches), Limits(max_bytes=100_000))


async def test_types_that_come_with_the_rows_are_bounded():
    columns = [Column("n", "any")]

    async def batches():
        yield [(1,)]
        columns[:] = [Column("n", "t" * 200_000)]

    with pytest.raises(ResultTooLarge, match="names and types"):
        await collect(RowStream(columns, batches()), PLENTY)
