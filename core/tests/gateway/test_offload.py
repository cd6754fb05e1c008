"""Work whose time a text decides is done in processes that end: in time, and with whoever began it."""

import asyncio
import os
import signal
import subprocess
import sys
import time
from contextvars import ContextVar
from types import MappingProxyType

import pytest
from dragoman import InvalidSql
from dragoman.gateway.offload import SHORT, Offload
from dragoman.sql.translate import translate

LONG = SHORT + 1


@pytest.fixture
async def offload():
    made = Offload(seconds=20)
    yield made
    await made.aclose()


def running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


async def test_what_is_short_runs_at_hand_and_what_is_long_elsewhere(offload: Offload):
    assert await offload.call(SHORT, os.getpid) == os.getpid()
    first = await offload.call(LONG, os.getpid)
    assert first != os.getpid()
    assert await offload.call(LONG, os.getpid) == first


async def test_errors_come_through_with_everything_they_say(offload: Offload):
    with pytest.raises(InvalidSql) as raised:
        await offload.call(LONG, translate, "SELECT FROM WHERE", source="postgres", target="sqlite")
    with pytest.raises(InvalidSql) as at_hand:
        translate("SELECT FROM WHERE", source="postgres", target="sqlite")
    assert raised.value.as_dict() == at_hand.value.as_dict()
    assert raised.value.offset == at_hand.value.offset
    with pytest.raises(ZeroDivisionError):
        await offload.call(LONG, divmod, 1, 0)


async def test_what_cannot_be_sent_runs_at_hand(offload: Offload):
    assert await offload.call(LONG, lambda: os.getpid()) == os.getpid()
    assert await offload.call(LONG, of_a_module_nobody_else_can_import) == os.getpid()


async def test_views_of_mappings_are_sent(offload: Offload):
    assert await offload.call(LONG, eval, "__import__('os').getpid()", {"view": MappingProxyType({})}) != os.getpid()


async def test_what_code_prints_is_no_answer(offload: Offload):
    assert await offload.call(LONG, print, "noise") is None
    assert await offload.call(LONG, max, 1, 2) == 2


async def test_what_takes_too_long_is_ended_and_the_next_is_answered():
    offload = Offload(seconds=8)  # a new worker starts within it on a busy machine, too
    process = await offload.call(LONG, os.getpid)
    with pytest.raises(InvalidSql, match="too long"):
        await offload.call(LONG, pow, 3, 10**12)
    assert await offload.call(LONG, max, 1, 2) == 2
    await offload.aclose()
    assert not running(process)


async def test_a_worker_that_dies_fails_its_call_and_no_other(offload: Offload):
    with pytest.raises(InvalidSql):
        await offload.call(LONG, os._exit, 3)
    assert await offload.call(LONG, max, 1, 2) == 2


async def test_a_cancelled_call_leaves_no_worker_in_the_middle_of_its_work(offload: Offload):
    process = await offload.call(LONG, os.getpid)
    call = asyncio.create_task(offload.call(LONG, time.sleep, 15))
    await asyncio.sleep(0)
    while call not in asyncio.all_tasks():
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await offload.call(LONG, max, 1, 2) == 2
    assert await offload.call(LONG, os.getpid) != process or running(process)


async def test_closing_leaves_no_process():
    offload = Offload()
    processes = await asyncio.gather(*(offload.call(LONG, os.getpid) for _ in range(4)))
    assert len(set(processes)) <= 2
    await offload.aclose()
    assert not any(map(running, processes))


async def test_one_caller_leaves_a_worker_to_the_others(offload: Offload, monkeypatch: pytest.MonkeyPatch):
    who = ContextVar("who", default="ann")
    monkeypatch.setattr("dragoman.gateway.offload.identify_caller", who.get)

    async def hog() -> None:
        who.set("eve")
        await offload.call(LONG, time.sleep, 19)

    assert await offload.call(LONG, max, 1, 2) == 2  # a worker is there
    hogs = [asyncio.create_task(hog()) for _ in range(8)]
    await asyncio.sleep(0.1)
    began = time.monotonic()
    assert await offload.call(LONG, max, 1, 2) == 2
    assert time.monotonic() - began < 15
    assert not any(each.done() for each in hogs)
    for each in hogs:
        each.cancel()
    await asyncio.gather(*hogs, return_exceptions=True)


async def test_what_nobody_needs_is_given_up_in_time_and_goes_on(offload: Offload):
    process = await offload.call(LONG, os.getpid)
    began = time.monotonic()
    assert await offload.attempt(0.1, time.sleep, 1.5) is None
    assert await offload.attempt(60, os.getpid) == process  # it was not killed, and is waited for
    assert time.monotonic() - began > 1
    assert await offload.attempt(60, divmod, 1, 1) == (1, 0)
    assert await offload.attempt(60, os._exit, 3) is None


async def test_what_nobody_needs_waits_for_its_turn_only_shortly(offload: Offload, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.gateway.offload.PATIENCE", 0.1)
    await offload.call(LONG, os.getpid)
    first = asyncio.create_task(offload.attempt(60, time.sleep, 15))
    await asyncio.sleep(0.1)
    began = time.monotonic()
    assert [await offload.attempt(60, os.getpid) for _ in range(5)] == [None] * 5
    assert time.monotonic() - began < 5
    first.cancel()
    await asyncio.wait({first})


def test_a_worker_ends_with_a_gateway_that_was_killed():
    program = (
        "import asyncio, os\nfrom dragoman.gateway.offload import Offload\n"
        "async def main():\n    print(await Offload().call(10**6, os.getpid), flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "asyncio.run(main())\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as gateway:
        assert gateway.stdout is not None
        worker = int(gateway.stdout.readline())
        gateway.send_signal(signal.SIGKILL)
    guard = time.monotonic() + 20
    while running(worker):
        assert time.monotonic() < guard
        os.sched_yield()


def of_a_module_nobody_else_can_import() -> int:
    return os.getpid()
