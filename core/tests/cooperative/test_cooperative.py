"""Who works through many things lets others work meanwhile."""

import asyncio
import inspect
import itertools
import threading
import time

from dragoman.cooperative import FEW, SLICE, begin_each, in_thread_if_many, without_blocking


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


async def test_the_loop_serves_others_between_the_beginnings_of_many_pieces_of_work():
    seen: list[str] = []
    ended = asyncio.Event()

    async def other() -> None:
        while not ended.is_set():
            seen.append("other")
            await asyncio.sleep(0)

    async def work(name: str) -> str:
        seen.append(name)
        await ended.wait()
        return name

    task = asyncio.create_task(other())
    begun = await begin_each([work(name) for name in "abc"])
    ended.set()
    assert await asyncio.gather(*begun) == ["a", "b", "c"]
    await task
    places = [seen.index(name) for name in "abc"]
    assert all("other" in seen[first:second] for first, second in itertools.pairwise(places))


async def test_what_was_begun_ends_with_who_began_it():
    ended: list[str] = []

    async def work(name: str) -> None:
        try:
            if name == "b":
                beginning.cancel()
            await asyncio.Event().wait()
        finally:
            ended.append(name)

    works = [work(name) for name in "abc"]
    beginning = asyncio.create_task(begin_each(works))
    await asyncio.wait({beginning})
    assert beginning.cancelled()
    while len(ended) < 2:
        await asyncio.sleep(0)
    assert ended == ["a", "b"]
    assert inspect.getcoroutinestate(works[2]) == inspect.CORO_CLOSED
