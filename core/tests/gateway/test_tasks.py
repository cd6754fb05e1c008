"""Work with a deadline that begins only when it waits."""

import asyncio

import pytest
from dragoman.errors import QueryTimeout
from dragoman.gateway import tasks
from dragoman.gateway.tasks import within


@pytest.fixture(autouse=True)
def no_grace(monkeypatch):
    monkeypatch.setattr(tasks, "GRACE", 0.0)


async def answering(*waits, answer="answer"):
    for wait in waits:
        await wait
    return answer


async def failing(*waits):
    await answering(*waits)
    raise LookupError("lost")


def done(result=None, error=None):
    future = asyncio.get_running_loop().create_future()
    future.set_exception(error) if error else future.set_result(result)
    return future


def soon():
    future = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(future.set_result, None)
    return future


@pytest.mark.parametrize("waits", [0, 1, 3])
async def test_work_answers_and_fails_as_without_a_deadline(waits):
    assert await within(60, answering(*(soon() for _ in range(waits)))) == "answer"
    with pytest.raises(LookupError, match="lost"):
        await within(60, failing(*(soon() for _ in range(waits))))


async def test_work_sees_the_error_of_what_it_waits_for():
    async def catching():
        with pytest.raises(KeyError):
            await asyncio.gather(soon(), done(error=KeyError("no")))
        await soon()
        return "caught"

    assert await within(60, catching()) == "caught"


@pytest.mark.parametrize("before", [0, 2])
async def test_work_that_waits_for_too_long_is_cancelled_and_cleans_up(before):
    over = []

    async def hanging():
        try:
            await answering(*(soon() for _ in range(before)))
            await asyncio.Event().wait()
        finally:
            await soon()
            over.append("cleaned up")

    with pytest.raises(QueryTimeout, match="did not answer within 0 seconds"):
        await within(0, hanging())
    assert over == ["cleaned up"]


async def test_a_timeout_of_its_own_is_not_the_deadline():
    async def late():
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        await within(60, late())


async def test_a_caller_that_leaves_cancels_the_work():
    waits, ended = asyncio.Event(), asyncio.Event()

    async def hanging():
        try:
            waits.set()
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.ensure_future(within(60, hanging()))
    await waits.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended.is_set()
    assert caller.cancelled()
