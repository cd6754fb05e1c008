"""A process that takes longer to start than a deadline allows is started once, not for every query anew."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from dragoman import InternalError, Limits, Request
from dragoman.workers import process
from dragoman_sqlite.executor import SQLiteExecutor

SLOW = """
import os
with open(os.environ["STARTS"], "a") as starts:
    starts.write(f"{os.getpid()} ")
with open(os.environ["GATE"]) as gate:
    gate.read()
from dragoman_sqlite.frames import Setup
from dragoman_sqlite.worker.__main__ import _session
from dragoman.workers.serving import serve
serve(Setup, _session)
"""
"""A worker that is not ready before somebody writes into GATE, a pipe."""


@pytest.fixture
def slow(bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SQLiteExecutor:
    (tmp_path / "slow_worker.py").write_text(SLOW)
    os.mkfifo(tmp_path / "gate")
    for name, path in {"GATE": "gate", "STARTS": "starts"}.items():
        monkeypatch.setenv(name, str(tmp_path / path))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    pool = process.Workers.__init__

    def slowly(self: process.Workers, module: str, *more: Any) -> None:
        pool(self, "slow_worker", *more)

    monkeypatch.setattr(process.Workers, "__init__", slowly)
    return SQLiteExecutor(bench.make("CREATE TABLE t AS SELECT 1 AS n", pool_size=1))


async def first(executor: SQLiteExecutor, seconds: float) -> bytes:
    """The first row, within a deadline of the caller's."""
    request = Request(statement="SELECT n FROM t", parameters=(), limits=Limits(timeout=seconds))
    async with asyncio.timeout(seconds), executor.open(request) as stream:
        batches: list[Any] = [batch async for batch in stream.batches]
    return batches[0].rows[0]


async def started(folder: Path) -> int:
    """The number of the process, once it has started."""
    async with asyncio.timeout(30):
        while not (folder / "starts").exists() or not (text := (folder / "starts").read_text()):
            await asyncio.sleep(0.01)
    return int(text)


async def test_what_a_deadline_did_not_wait_for_serves_the_next_query(slow: SQLiteExecutor, tmp_path: Path):
    with pytest.raises(TimeoutError):
        await first(slow, 0.05)
    await asyncio.to_thread((tmp_path / "gate").write_text, "")
    assert await first(slow, 30) == b"[1]"
    assert len((tmp_path / "starts").read_text().split()) == 1
    await slow.aclose()


async def test_a_process_that_does_not_start_is_ended_with_the_executor(slow: SQLiteExecutor, tmp_path: Path):
    waiting = asyncio.ensure_future(first(slow, 30))
    number = await started(tmp_path)
    waiting.cancel()
    await asyncio.wait({waiting})
    await slow.aclose()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


async def test_a_process_that_is_never_ready_is_given_up(slow: SQLiteExecutor, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(process, "READY", 0.05)
    with pytest.raises(Exception, match="no process that reads it can be started"):
        await first(slow, 30)
    await slow.aclose()


async def test_a_process_that_ends_at_its_start_says_so(slow: SQLiteExecutor, tmp_path: Path):
    (tmp_path / "slow_worker.py").write_text("")
    with pytest.raises(InternalError, match="does not start"):
        await first(slow, 30)
    await slow.aclose()
