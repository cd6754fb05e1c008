"""Work that several callers want at once is done once."""

import asyncio

import pytest
from dragoman.catalog.flight import SingleFlight


@pytest.fixture
def flights():
    return SingleFlight()


async def test_callers_share_work_that_is_running(flights):
    done = []

    async def work():
        await asyncio.sleep(0)
        done.append(1)

    await asyncio.gather(*(flights.run("key", work) for _ in range(3)))
    assert len(done) == 1


async def test_work_that_began_before_a_caller_came_is_not_shared_with_who_wants_it_anew(flights):
    gate, begun = asyncio.Event(), []

    async def work():
        begun.append(1)
        await gate.wait()

    callers = [asyncio.create_task(flights.run("key", work))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    callers += [asyncio.create_task(flights.run_anew("key", work)) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert len(begun) == 1
    gate.set()
    await asyncio.gather(*callers)
    assert len(begun) == 2


async def test_work_that_has_just_ended_is_done_again(flights):
    """Between its end and its callbacks, waiting for it does not give way: whoever repeats that blocks everything."""
    done = []

    async def work():
        done.append(1)

    first = flights.start("key", work)
    await asyncio.sleep(0)  # the work ends in this turn of the loop, and its callbacks run in the next
    assert first.done()
    await flights.run("key", work)
    assert len(done) == 2


async def test_the_end_of_work_leaves_later_work_alone(flights):
    gate = asyncio.Event()
    first = flights.start("key", lambda: asyncio.sleep(0))
    while not first.done():
        await asyncio.sleep(0)
    later = flights.start("key", gate.wait)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert flights.start("key", gate.wait) is later
    gate.set()
    await later
