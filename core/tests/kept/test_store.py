"""Who owns kept results, how long they live, and that nothing is left behind."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import Busy, Column, Encoded, Limits, ParameterError, Principal, ResultNotFound, RowStream
from dragoman.kept import Bounds, Store
from dragoman.kept.pages import PAGE_BYTES
from dragoman.kept.store import RESULTS_PER_CALLER, RUNNING_PER_CALLER
from dragoman.results.bounds import truncation

BOUNDS = Bounds(max_bytes=10**9, max_bytes_per_caller=10**9, ttl=100)
ADA = Principal("ada", issuer="i", subject="1")
OF = (("shop", "SELECT 1", "all"),)


@asynccontextmanager
async def _stream() -> AsyncIterator[RowStream]:
    async def batches() -> AsyncIterator[Encoded]:
        yield Encoded.of([b"[1]", b"[2]"])

    yield RowStream([Column("n", "int")], batches())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_a_result_goes_when_nobody_reads_it_for_its_time(tmp_path: Path):
    now = [0.0]
    store = Store(tmp_path, BOUNDS, lambda: now[0])
    kept = await store.keep(ADA, "x", "shop", OF, _stream)
    now[0] = 90
    assert store.find(ADA, "x") is kept
    now[0] = 180
    assert store.expires_in(store.find(ADA, "x")) == 100
    now[0] = 281
    with pytest.raises(ResultNotFound):
        store.find(ADA, "x")
    assert list(tmp_path.rglob("*.rows")) == []
    await store.aclose()


async def test_a_result_goes_at_its_time_although_nobody_asks_for_any(tmp_path: Path):
    gone = asyncio.Event()
    store = Store(tmp_path, replace(BOUNDS, ttl=0.01))
    store.changed = lambda owner: None if store.has(ADA) else gone.set()
    store.folder_of(ADA)
    await store.keep(ADA, "x", "shop", OF, _stream)
    await asyncio.wait_for(gone.wait(), 30)
    assert [*tmp_path.rglob("*.rows"), *tmp_path.rglob("tables-*")] == []
    await store.aclose()


@pytest.mark.parametrize(
    "other",
    [
        Principal("ada", issuer="i", subject="2"),
        Principal("ada", issuer="j", subject="1"),
        Principal("ada", token="i"),
        Principal("ada"),
    ],
)
async def test_a_name_alone_is_nobody(tmp_path: Path, other: Principal):
    store = Store(tmp_path, BOUNDS)
    await store.keep(ADA, "x", "shop", OF, _stream)
    with pytest.raises(ResultNotFound):
        store.find(other, "x")
    assert store.of(other) == ()
    await store.aclose()


async def test_a_long_query_is_answered_soon_and_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.01)
    monkeypatch.setattr("dragoman.kept.store.FLUSH_SECONDS", 0)
    going = asyncio.Event()

    @asynccontextmanager
    async def slow() -> AsyncIterator[RowStream]:
        async def batches() -> AsyncIterator[Encoded]:
            yield Encoded.of([b"[1]"])
            await going.wait()
            yield Encoded.of([b"[2]"])

        yield RowStream([Column("n", "int")], batches())

    store = Store(tmp_path, BOUNDS)
    kept = await store.keep(ADA, "x", "shop", OF, slow)
    assert kept.running
    going.set()
    assert kept.task is not None
    await kept.task
    assert (kept.status, kept.pages.read(0, 10, 100).values) == ("complete", [[1], [2]])
    await store.aclose()


async def test_dropping_a_running_result_ends_its_query(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.01)
    ended = asyncio.Event()

    @asynccontextmanager
    async def endless() -> AsyncIterator[RowStream]:
        async def batches() -> AsyncIterator[Encoded]:
            await asyncio.Event().wait()
            yield Encoded.of([])

        try:
            yield RowStream([Column("n", "int")], batches())
        finally:
            ended.set()

    store = Store(tmp_path, BOUNDS)
    await store.keep(ADA, "x", "shop", OF, endless)
    await store.drop(ADA, "x")
    assert ended.is_set()
    assert list(tmp_path.rglob("*.rows")) == []
    await store.aclose()


_CRASH = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_store import ADA, BOUNDS, OF, _stream
from dragoman.kept import Store

async def main():
    store = Store(Path({folder!r}), BOUNDS)
    await store.keep(ADA, "x", "shop", OF, _stream)
    print("kept", flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


async def test_what_a_killed_process_left_is_removed_and_a_living_ones_stays(tmp_path: Path):
    script = _CRASH.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        store = Store(tmp_path, BOUNDS)
        await store.keep(ADA, "x", "shop", OF, _stream)
        assert len(list(tmp_path.rglob("*.rows"))) == 2
        os.kill(process.pid, signal.SIGKILL)
    other = Store(tmp_path, BOUNDS)
    await other.keep(ADA, "x", "shop", OF, _stream)
    assert len(list(tmp_path.rglob("*.rows"))) == 2
    await store.aclose()
    await other.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_what_a_killed_process_left_ends_with_the_next_process_that_ends(tmp_path: Path):
    script = _CRASH.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    store = Store(tmp_path, BOUNDS)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "kept\n"
        await store.tidy()
        assert len(list(tmp_path.rglob("*.rows"))) == 1
        os.kill(process.pid, signal.SIGKILL)
    await store.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_a_caller_who_keeps_nothing_any_more_has_no_folder(tmp_path: Path):
    now = [0.0]
    store = Store(tmp_path, BOUNDS, lambda: now[0])
    eve = Principal("eve", issuer="i", subject="2")
    for owner in (ADA, eve):
        for name in ("x", "y"):
            await store.keep(owner, name, "shop", (), _stream)
    folders = [store.folder_of(owner) for owner in (ADA, eve)]
    await store.drop(ADA, "x")
    assert [folder.exists() for folder in folders] == [True, True]
    await store.drop(ADA, "y")
    assert [folder.exists() for folder in folders] == [False, True]
    now[0] = 101
    store.expire()
    assert not folders[1].exists()
    await store.keep(ADA, "x", "shop", (), _stream)
    assert store.folder_of(ADA).is_dir()
    await store.aclose()


@pytest.mark.parametrize("removed", ["process-*", "."])
async def test_results_are_kept_again_after_somebody_removed_the_folder(tmp_path: Path, removed: str):
    base = tmp_path / "results"
    store = Store(base, BOUNDS)
    for turn in range(3):
        await store.keep(ADA, f"x{turn}", "shop", OF, _stream)
        assert list(store.folder_of(ADA).iterdir()) == []
        assert store.find(ADA, f"x{turn}").status == "complete"
        for folder in base.glob(removed) if removed != "." else (base,):
            shutil.rmtree(folder)
    await store.aclose()


@asynccontextmanager
async def _endless() -> AsyncIterator[RowStream]:
    async def batches() -> AsyncIterator[Encoded]:
        await asyncio.Event().wait()
        yield Encoded.of([])

    yield RowStream([Column("n", "int")], batches())


async def test_queries_that_are_kept_leave_places_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.01)
    opened: list[str] = []

    @asynccontextmanager
    async def counted() -> AsyncIterator[RowStream]:
        opened.append("shop")
        async with _endless() as stream:
            yield stream

    store = Store(tmp_path, BOUNDS)
    names = ["a", "b", "c", "d"]
    await asyncio.gather(*(store.keep(ADA, name, "shop", OF, counted, 2) for name in names))
    assert len(opened) == 2
    assert [kept.running for kept in store.of(ADA)] == [True] * 4
    # Which two have the places is a matter of chance: threads make their files.
    await store.drop(ADA, next(kept.name for kept in store.of(ADA) if kept.columns))
    async with asyncio.timeout(30):
        while len(opened) < 3:
            await asyncio.sleep(0)
    kept = await store.keep(Principal("bob"), "x", "other", OF, _stream)
    assert kept.status == "complete", "other databases have places of their own"
    await store.aclose()


async def test_no_more_run_for_a_caller_however_many_begin_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.kept.store.SOON", 0.01)
    store = Store(tmp_path, BOUNDS)
    keeping = (store.keep(ADA, f"r{number}", "shop", OF, _endless) for number in range(20))
    kept = await asyncio.gather(*keeping, return_exceptions=True)
    assert sum(isinstance(one, Busy) for one in kept) == 20 - RUNNING_PER_CALLER
    assert len(store.of(ADA)) == RUNNING_PER_CALLER
    await store.aclose()


async def test_kept_results_do_not_use_up_the_files_a_process_may_open(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    for number in range(RESULTS_PER_CALLER):
        await store.keep(ADA, f"r{number}", "shop", OF, _stream)
    with pytest.raises(Busy, match="You keep 100 results already"):
        await store.keep(ADA, "more", "shop", OF, _stream)
    await store.keep(ADA, "r0", "shop", OF, _stream)
    await store.drop(ADA, "r1")
    await store.keep(ADA, "more", "shop", OF, _stream)
    assert len(store.of(ADA)) == RESULTS_PER_CALLER
    await store.aclose()


async def test_no_caller_uses_up_the_results_that_all_may_keep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where the process may open few files."""
    monkeypatch.setattr("dragoman.kept.store.MOST_RESULTS", 12)
    store, bob = Store(tmp_path, BOUNDS), Principal("bob", issuer="i", subject="2")
    for number in range(6):
        await store.keep(ADA, f"r{number}", "shop", OF, _stream)
    with pytest.raises(Busy, match="You keep 6 results already"):
        await store.keep(ADA, "more", "shop", OF, _stream)
    for number in range(6):
        await store.keep(bob, f"r{number}", "shop", OF, _stream)
    with pytest.raises(Busy, match="The server keeps as many results as it can"):
        await store.keep(Principal("eve", issuer="i", subject="3"), "first", "shop", OF, _stream)
    await store.aclose()


@pytest.mark.parametrize(
    ("bounds", "free", "limit", "hint"),
    [
        ({"max_bytes_per_caller": PAGE_BYTES}, 0, PAGE_BYTES, "Keep less"),
        ({"max_bytes": PAGE_BYTES}, 0, PAGE_BYTES, "All callers"),
        ({}, 2**62, len(b"[1],[2]"), "disk"),
    ],
)
async def test_a_result_that_is_cut_names_the_limit_that_cut_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds, free, limit, hint
):
    monkeypatch.setattr("dragoman.kept.store.LEAST_FREE", free)
    monkeypatch.setattr("dragoman.kept.store.FLUSH_SECONDS", -1)

    @asynccontextmanager
    async def two() -> AsyncIterator[RowStream]:
        async def batches() -> AsyncIterator[Encoded]:
            yield Encoded.of([b"[1]", b"[2]"])
            yield Encoded.of([b"[3]"])

        yield RowStream([Column("n", "int")], batches())

    store = Store(tmp_path, replace(BOUNDS, **bounds))
    kept = await store.keep(ADA, "x", "shop", OF, two)
    assert kept.truncated is not None
    assert (kept.truncated.reason, kept.truncated.limit, kept.pages.rows) == ("bytes", limit, 2)
    assert hint in kept.truncated.hint
    await store.aclose()


async def test_a_result_that_was_cut_does_not_ask_for_a_higher_limit(tmp_path: Path):
    @asynccontextmanager
    async def cut() -> AsyncIterator[RowStream]:
        async with _stream() as stream:
            yield replace(stream, truncated=truncation("rows", Limits(max_rows=2)))

    store = Store(tmp_path, BOUNDS)
    kept = await store.keep(ADA, "x", "shop", OF, cut)
    assert kept.truncated is not None
    assert (kept.truncated.reason, kept.truncated.limit) == ("rows", 2)
    assert "`limit`" not in kept.truncated.hint
    await store.aclose()


async def test_old_files_make_room_for_what_a_caller_keeps(tmp_path: Path):
    """Nobody names what is made for a file, so that nobody drops it."""
    now = [0.0]
    store = Store(tmp_path, replace(BOUNDS, ttl=3600), lambda: now[0])
    for number in range(RESULTS_PER_CALLER):
        kept = await store.keep(ADA, f"r{number}", "shop", OF, _stream)
        kept.is_for_file = number in (3, 5)
        now[0] += 0.1
    with pytest.raises(Busy):
        await store.keep(ADA, "soon", "shop", OF, _stream)
    now[0] += 700
    for name, gone in (("later", "r3"), ("last", "r5")):
        await store.keep(ADA, name, "shop", OF, _stream)
        with pytest.raises(ResultNotFound):
            store.find(ADA, gone)
    with pytest.raises(Busy):
        await store.keep(ADA, "more", "shop", OF, _stream)
    await store.aclose()


async def test_two_results_of_one_name_at_once_leave_one(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    await asyncio.gather(*(store.keep(ADA, "x", "shop", OF, _stream) for _ in range(3)))
    assert len(store.of(ADA)) == len(list(tmp_path.rglob("*.rows"))) == 1
    await store.aclose()


async def test_names_that_are_one_table_in_sql_are_one_result(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    first = await store.keep(ADA, "orders", "shop", OF, _stream)
    second = await store.keep(ADA, "ORDERS", "shop", OF, _stream)
    assert first.is_dropped
    assert store.find(ADA, "Orders") is second
    assert [kept.name for kept in store.of(ADA)] == ["ORDERS"]
    await store.aclose()


@pytest.mark.parametrize("name", ["sqlite_master", "pg_class", "DuckDB_Tables", "pragma_table_info", "csv", "JSON"])
async def test_a_name_of_an_engine_is_refused_while_nothing_is_kept_yet(tmp_path: Path, name: str):
    store = Store(tmp_path, BOUNDS)
    with pytest.raises(ParameterError, match="cannot be named"):
        await store.keep(ADA, name, "shop", OF, _stream)
    assert store.of(ADA) == ()
