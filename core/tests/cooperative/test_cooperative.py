"""Who works through many things lets others work meanwhile."""

import asyncio
import threading
import time

from dragoman.cooperative import FEW, SLICE, in_thread_if_many, without_blocking


def work_for(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began <= seconds:
        pass


async def test_the_loop_serves_others_after_every_slice_of_work():
    seen = []

    async def other() -> None:
        while True:
            seen.append("other")
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    async for item in without_blocking("abc"):
        work_for(SLICE)
        seen.append(item)
    task.cancel()
    assert seen == ["a", "other", "b", "other", "c", "other"]


async def test_little_work_is_done_at_once():
    task = asyncio.create_task(asyncio.sleep(0))
    assert [item async for item in without_blocking(range(3))] == [0, 1, 2]
    assert not task.done()
    await task


async def test_what_works_through_many_runs_in_a_thread():
    here = threading.get_ident()
    assert await in_thread_if_many(FEW, threading.get_ident) == here
    assert await in_thread_if_many(FEW + 1, threading.get_ident) != here
