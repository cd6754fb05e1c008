"""Blocking calls run beside the event loop, and what does not return is left behind."""

import asyncio
import subprocess
import sys
import threading

import pytest
from dragoman.threads import Threads, current_frame


@pytest.fixture
def threads():
    made = Threads("dragoman-test")
    yield made
    made.stop()


async def test_calls_run_at_once_each_in_its_thread(threads):
    meeting = threading.Barrier(3)
    names = await asyncio.gather(*(threads.start(lambda: (meeting.wait(), threading.get_ident())[1]) for _ in range(3)))
    assert len(set(names)) == 3
    assert threading.get_ident() not in names


async def test_an_idle_thread_is_used_again():
    threads = Threads("dragoman-test", most=100)
    # A thread is idle a moment after its answer came, so that now and then another one is made.
    used = [await threads.start(threading.get_ident) for _ in range(100)]
    assert len(set(used)) < 50
    threads.stop()


async def test_one_thread_runs_calls_in_their_order():
    threads, seen = Threads("dragoman-test", most=1), []
    go = threading.Event()
    jobs = [threads.start(go.wait), *(threads.start(lambda number=number: seen.append(number)) for number in range(5))]
    assert seen == []
    go.set()
    await asyncio.gather(*jobs)
    assert seen == [0, 1, 2, 3, 4]
    threads.stop()


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
async def test_what_a_call_raises_comes_out_and_its_thread_goes_on(threads, error):
    def fail() -> None:
        raise error("no")

    failed = threads.start(fail)
    await asyncio.wait({failed})
    assert isinstance(failed.exception(), error)
    assert await threads.start(lambda: 7) == 7


async def test_a_call_that_is_cancelled_before_it_begins_is_not_made():
    threads, seen = Threads("dragoman-test", most=1), []
    go = threading.Event()
    first = threads.start(go.wait)
    threads.start(lambda: seen.append("cancelled")).cancel()
    await asyncio.sleep(0)  # the cancellation reaches the job at the loop's next turn
    last = threads.start(lambda: seen.append("last"))
    go.set()
    await asyncio.gather(first, last)
    assert seen == ["last"]
    threads.stop()


async def test_stopped_threads_end_after_the_calls_they_have():
    threads = Threads("dragoman-test", most=1)
    thread = await threads.start(threading.current_thread)
    last = threads.start(lambda: "done")
    threads.stop()
    assert await last == "done"
    await asyncio.to_thread(thread.join, 10)
    assert not thread.is_alive()


WATCHING = """
import gc, threading, time
from dragoman.threads import current_frame

class Garbage:
    left = 0

    def __init__(self):
        self.itself = self
        Garbage.left += 1

    def __del__(self):
        time.sleep(0.0005)  # lets other threads run
        Garbage.left -= 1

def begin_threads():
    for _ in range(50):
        thread = threading.Thread(target=Garbage)
        thread.start()
        thread.join()

gc.set_threshold(1)
beginner = threading.Thread(target=begin_threads, daemon=True)
beginner.start()
while beginner.is_alive():
    if Garbage.left < 10:  # a collection of the other thread never ends if this one makes more meanwhile
        Garbage()
    current_frame(beginner.ident)
assert gc.isenabled()
"""


def test_a_look_at_a_thread_ends_also_while_others_begin_and_garbage_is_collected():
    assert subprocess.run([sys.executable, "-c", WATCHING], timeout=60, check=False).returncode == 0


def test_a_thread_that_is_over_has_no_frame():
    thread = threading.Thread(target=lambda: None)
    thread.start()
    thread.join()
    assert current_frame(thread.ident or 0) is None
    here = current_frame(threading.get_ident())
    assert here is not None
    assert here.f_code is current_frame.__code__
