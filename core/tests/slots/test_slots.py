"""A slot is given back once, and only when the work in it is done."""

import asyncio

import pytest
from dragoman.slots import Slots


class Full(Exception):
    pass


def busy(outliving: int) -> Full:
    return Full(f"{outliving} outlive their callers")


@pytest.fixture
def slots() -> Slots:
    return Slots(1, busy)


async def test_who_waits_in_vain_is_told_how_many_slots_outlive_their_callers(slots):
    async with slots.hold(1):
        with pytest.raises(Full, match=r"^0 outlive"):
            await slots.take(0.001)


async def test_a_slot_is_free_again_once_its_holder_has_left(slots):
    for _ in range(3):
        async with slots.hold(1):
            assert slots.locked()
        assert not slots.locked()


async def test_a_slot_is_free_again_when_its_holder_fails(slots):
    with pytest.raises(ZeroDivisionError):
        async with slots.hold():
            raise ZeroDivisionError
    assert not slots.locked()


@pytest.mark.parametrize("end", ["result", "error", "cancelled"])
async def test_a_slot_stays_occupied_until_what_was_begun_in_it_is_done(slots, end):
    work = asyncio.get_running_loop().create_future()
    async with slots.hold() as slot:
        slot.work.add(work)
    assert slots.locked()
    assert slots.outliving == 1
    with pytest.raises(Full, match=r"^1 outlive"):
        await slots.take(0.001)
    {"result": lambda: work.set_result(1), "error": lambda: work.set_exception(OSError()), "cancelled": work.cancel}[
        end
    ]()
    await slots.take(10)
    assert slots.outliving == 0


async def test_all_the_work_of_a_slot_is_waited_for(slots):
    first, second = (asyncio.get_running_loop().create_future() for _ in range(2))
    async with slots.hold() as slot:
        slot.work |= {first, second}
    waiting = asyncio.create_task(slots.take(10))
    first.set_result(None)
    await asyncio.wait({first})
    assert slots.locked()
    second.set_result(None)
    await waiting


async def test_work_that_is_done_when_its_holder_leaves_holds_up_nobody(slots):
    done = asyncio.get_running_loop().create_future()
    done.set_result(None)
    async with slots.hold() as slot:
        slot.work.add(done)
    assert not slots.locked()


async def test_a_cancelled_holder_gives_its_slot_back_and_one_who_waits_takes_none(slots):
    inside = asyncio.Event()

    async def hold() -> None:
        async with slots.hold():
            inside.set()
            await asyncio.get_running_loop().create_future()

    holder = asyncio.create_task(hold())
    await inside.wait()
    waiting = asyncio.create_task(slots.take(10))
    await asyncio.wait({waiting}, timeout=0)
    waiting.cancel()
    await asyncio.wait({waiting})
    holder.cancel()
    await asyncio.wait({holder})
    assert not slots.locked()
