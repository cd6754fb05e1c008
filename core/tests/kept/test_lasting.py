"""Kept results that outlive their process: whole ones, their callers' own, and nothing that others put there."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import Column, Encoded, Principal, RowStream
from dragoman.kept import Bounds, Store

BOUNDS = Bounds(max_bytes=10**9, max_bytes_per_caller=10**9, ttl=100)
ADA = Principal("ada", issuer="i", subject="1")

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def _stream() -> AsyncIterator[RowStream]:
    async def batches() -> AsyncIterator[Encoded]:
        yield Encoded.of([b"[1]", b"[2]"])

    yield RowStream([Column("n", "int")], batches())


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _restarted(store: Store, folder: Path, **bounds: float) -> Store:
    """What an ended process leaves to the next."""
    await store.aclose()
    newer = Store(folder, replace(BOUNDS, **bounds))
    await newer.adopt(lambda owner: True)
    return newer


async def test_whole_results_outlive_their_process(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    for name in ("x", "y"):
        await store.keep(ADA, name, "shop", (("shop", "SELECT 1", "all"),), _stream, notices=("Told.",))
    await store.drop(ADA, "y")
    store = await _restarted(store, tmp_path)
    (kept,) = store.of(ADA)
    assert (kept.name, kept.database, kept.sources) == ("x", "shop", (("shop", "SELECT 1", "all"),))
    assert (kept.status, kept.columns, kept.notices) == ("complete", (Column("n", "int"),), ("Told.",))
    assert kept.pages.read(0, 10, 100).values == [[1], [2]]
    await store.keep(ADA, "x", "shop", (), _stream)
    store = await _restarted(store, tmp_path)
    assert [kept.sources for kept in store.of(ADA)] == [()]
    await store.drop(ADA, "x")
    await store.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_what_was_made_for_a_file_alone_still_makes_room_after_a_restart(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    await store.keep(ADA, "x", "shop", (), _stream)
    await store.keep(ADA, "export_1", "shop", (), _stream, is_for_file=True)
    store = await _restarted(store, tmp_path)
    assert {kept.name: kept.is_for_file for kept in store.of(ADA)} == {"x": False, "export_1": True}
    await store.aclose()


async def test_a_result_of_no_rows_outlives_its_process_too(tmp_path: Path):
    @asynccontextmanager
    async def empty() -> AsyncIterator[RowStream]:
        async def batches() -> AsyncIterator[Encoded]:
            yield Encoded(b"", 0)

        yield RowStream([Column("n", "int")], batches())

    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    await store.keep(ADA, "none", "shop", (), empty)
    store = await _restarted(store, tmp_path)
    assert [(kept.name, kept.pages.rows) for kept in store.of(ADA)] == [("none", 0)]
    await store.drop(ADA, "none")
    await store.aclose()


async def test_a_process_takes_over_its_own_callers_results_and_leaves_the_others(tmp_path: Path):
    eve = Principal("eve", issuer="i", subject="2")
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    for owner in (ADA, eve):
        await store.keep(owner, "x", "shop", (), _stream)
    await store.aclose()
    stores = [Store(tmp_path, BOUNDS) for _ in range(2)]
    for store, owner in zip(stores, (ADA, eve), strict=True):
        await store.adopt(owner.identity.__eq__)
        assert [kept.owner for own in (ADA, eve) for kept in store.of(own)] == [owner.identity]
        await store.drop(owner, "x")
    for store in stores:
        await store.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_what_nobody_read_for_its_time_does_not_come_back(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    await store.keep(ADA, "x", "shop", (), _stream)
    store = await _restarted(store, tmp_path, ttl=-1)
    assert store.of(ADA) == ()
    await store.aclose()
    assert list(tmp_path.iterdir()) == []


async def test_what_was_taken_over_goes_at_its_time_although_nobody_asks_for_any(tmp_path: Path):
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    await store.keep(ADA, "x", "shop", (), _stream)
    await store.aclose()
    gone = asyncio.Event()
    store = Store(tmp_path, replace(BOUNDS, ttl=1))
    store.changed = lambda owner: gone.set()
    await store.adopt(lambda owner: True)
    if store.has(ADA):  # a slow machine may be late already
        await asyncio.wait_for(gone.wait(), 30)
    assert list(tmp_path.rglob("*.rows")) == []
    await store.aclose()


@pytest.mark.parametrize("planted", ["an open folder", "a link to rows", "a header of nonsense", "rows that end early"])
async def test_nothing_that_another_put_there_is_taken_over(tmp_path: Path, planted: str):
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    await store.keep(ADA, "x", "shop", (), _stream)
    await store.aclose()
    (folder,) = tmp_path.glob("process-*")
    (rows,) = folder.glob("*.rows")
    if planted == "an open folder":
        folder.chmod(0o777)
    elif planted == "a link to rows":
        rows.rename(tmp_path / "secret")
        rows.symlink_to(tmp_path / "secret")
    elif planted == "a header of nonsense":
        rows.with_suffix(".kept").write_bytes(b'{"name": 7}')
    else:
        rows.write_bytes(b"[1]")
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    assert store.of(ADA) == ()
    await store.aclose()


async def test_every_result_that_a_killed_process_told_as_kept_is_there(tmp_path: Path):
    """Killed at any moment of writing the next one."""
    script = _CRASH_AFTER.format(tests=str(Path(__file__).parent), folder=str(tmp_path))
    told = set[str]()
    for number in range(5):
        with subprocess.Popen(
            [sys.executable, "-c", script, str(number)], stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            for _ in range(3 * number + 1):
                told.add(process.stdout.readline().strip())
            os.kill(process.pid, signal.SIGKILL)
            told |= {line.strip() for line in process.stdout if line.endswith("\n")}
    store = Store(tmp_path, BOUNDS)
    await store.adopt(lambda owner: True)
    found = {kept.name: kept for kept in store.of(ADA)}
    assert told <= set(found)
    assert len(told) > 30
    for kept in found.values():
        assert kept.pages.read(0, 10, 100).values == [[1], [2]]
        await store.drop(ADA, kept.name)
    await store.aclose()
    assert list(tmp_path.iterdir()) == []


_CRASH_AFTER = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {tests!r})
from test_lasting import ADA, BOUNDS, _stream
from dragoman.kept import Store

async def main():
    store = Store(Path({folder!r}), BOUNDS)
    await store.adopt(lambda owner: True)
    for number in range(20):
        name = f"r{{sys.argv[1]}}_{{number}}"
        await store.keep(ADA, name, "shop", (), _stream)
        print(name, flush=True)

asyncio.run(main())
"""
