"""Callers take turns at the places of a database and of the server."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest
from dragoman.errors import Busy
from dragoman.gateway.calls import Limiter
from dragoman.turns import Turns


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


async def test_a_caller_alone_has_all_places():
    turns = Turns(3)
    assert [turns.take("ann") for _ in range(4)] == [True, True, True, False]


async def test_no_place_is_kept_for_the_gateway_s_own_work():
    turns = Turns(3)
    assert turns.take(None)
    turns.give_back(None)
    assert [turns.take("ann") for _ in range(3)] == [True, True, True]


async def test_who_comes_next_gets_the_next_place_however_many_another_waits_for():
    turns, order = Turns(1), []

    async def use(caller: str) -> None:
        await turns.wait(caller)
        order.append(caller)

    assert turns.take("ann")
    tasks = [asyncio.create_task(use(caller)) for caller in ("ann", "ann", "ann", "bob", "bob", "cid")]
    await settle()
    for _ in tasks:
        turns.give_back(order[-1] if order else "ann")
        await settle()
    assert order == ["ann", "bob", "cid", "ann", "bob", "ann"]


async def test_the_last_place_is_kept_for_who_was_here_lately(monkeypatch):
    turns = Turns(3)
    assert turns.take("bob")
    turns.give_back("bob")
    assert [turns.take("ann") for _ in range(3)] == [True, True, False]
    assert turns.take("bob")
    turns.give_back("bob")
    monkeypatch.setattr("dragoman.turns.RECENT", -1.0)
    assert turns.take("ann")


async def test_nothing_is_kept_while_everybody_has_a_place():
    turns = Turns(4)
    for caller in ("ann", "bob"):
        turns.take(caller)
        turns.give_back(caller)
    assert [turns.take(caller) for caller in ("ann", "bob", "ann", "bob")] == [True] * 4


async def test_a_full_queue_of_one_caller_refuses_that_caller_only():
    limiter = Limiter("shop runs statements", 1, 2)
    await limiter.acquire("ann")
    waiting = [asyncio.create_task(limiter.acquire("ann")) for _ in range(2)]
    await settle()
    with pytest.raises(Busy):
        await limiter.acquire("ann")
    other = asyncio.create_task(limiter.acquire("bob"))
    await settle()
    limiter.turns.give_back("ann")
    limiter.turns.give_back("ann")
    await other
    for task in waiting:
        task.cancel()


@pytest.mark.parametrize("seed", range(50))
async def test_no_place_is_lost_or_made(seed):
    """Callers come, leave, and are cancelled in any order: while they wait, and when they have just got a place."""
    chance, size = random.Random(seed), random.Random(seed).randint(1, 4)
    turns, inside = Turns(size), Counter[str]()

    async def use(caller: str) -> None:
        if not turns.take(caller):
            await turns.wait(caller)
        inside[caller] += 1
        assert inside.total() <= size
        try:
            for _ in range(chance.randint(0, 4)):
                await asyncio.sleep(0)
        finally:
            inside[caller] -= 1
            turns.give_back(caller)

    tasks = []
    for _ in range(60):
        tasks.append(asyncio.create_task(use(chance.choice("abc"))))
        if chance.random() < 0.4:
            chance.choice(tasks).cancel()
        for _ in range(chance.randint(0, 2)):
            await asyncio.sleep(0)
    await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 30)
    assert [each.exception() for each in tasks if not each.cancelled()] == [None] * sum(
        not each.cancelled() for each in tasks
    )
    assert [turns.take("new") for _ in range(size)] == [True] * max(size - 1, 1) + [False] * (size > 1)
