"""A database that cannot be reached is not tried by every caller."""

import asyncio

import pytest
from dragoman import ConnectionFailed
from dragoman.gateway.breaker import FAILURES, PAUSE, Breaker
from dragoman.gateway.health import Health


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


class Probe:
    """Answers what it is told to, once `answered` is set."""

    def __init__(self, *, down):
        self.down = down
        self.asked = 0
        self.waited = None
        self.answered = asyncio.Event()
        self.answered.set()

    async def __call__(self, wait):
        self.asked += 1
        self.waited = wait
        await self.answered.wait()
        return self.down


async def broken(clock, probe):
    breaker = Breaker("shop", probe, clock)
    for _ in range(FAILURES):
        await breaker.check(PAUSE)
        breaker.fail(ConnectionFailed("down"))
    return breaker


async def test_after_some_failures_callers_are_answered_at_once_with_the_seconds_to_wait():
    clock, probe = Clock(), Probe(down=False)
    breaker = await broken(clock, probe)
    clock.now += 4
    with pytest.raises(ConnectionFailed) as refused:
        await breaker.check(PAUSE)
    assert refused.value.context == {"retry_after": PAUSE - 4}
    assert "in 6 seconds" in refused.value.suggestion
    assert not probe.asked


async def test_after_the_pause_one_call_waits_for_the_probe_and_the_others_fail_at_once():
    clock, probe = Clock(), Probe(down=False)
    breaker = await broken(clock, probe)
    clock.now += PAUSE
    probe.answered.clear()
    first = asyncio.create_task(breaker.check(PAUSE))
    await asyncio.sleep(0)
    with pytest.raises(ConnectionFailed):
        await breaker.check(PAUSE)
    probe.answered.set()
    await first
    await breaker.check(PAUSE)
    assert probe.asked == 1


async def test_a_call_that_ends_before_it_reaches_the_database_keeps_nobody_else_from_it():
    clock, probe = Clock(), Probe(down=False)
    breaker = await broken(clock, probe)
    clock.now += PAUSE
    await breaker.check(PAUSE)  # this call is refused by the gate, and tells nothing
    await breaker.check(PAUSE)


@pytest.mark.parametrize("timeout", [PAUSE / 5, PAUSE * 5])
async def test_the_call_that_waits_for_the_probe_waits_no_longer_than_it_may(timeout):
    clock, probe = Clock(), Probe(down=False)
    breaker = await broken(clock, probe)
    clock.now += PAUSE
    await breaker.check(timeout)
    assert probe.waited == min(timeout, PAUSE)


async def test_a_probe_that_cannot_reach_it_leaves_it_open():
    clock, probe = Clock(), Probe(down=True)
    breaker = await broken(clock, probe)
    clock.now += PAUSE
    for _ in range(2):
        with pytest.raises(ConnectionFailed):
            await breaker.check(PAUSE)
    assert probe.asked == 1
    clock.now += PAUSE
    probe.down = False
    await breaker.check(PAUSE)


async def test_after_a_probe_that_told_little_one_failure_opens_it_again():
    clock, probe = Clock(), Probe(down=False)
    breaker = await broken(clock, probe)
    clock.now += PAUSE
    await breaker.check(PAUSE)
    breaker.fail(ConnectionFailed("down"))
    with pytest.raises(ConnectionFailed):
        await breaker.check(PAUSE)


async def test_an_error_that_two_layers_tell_of_counts_once():
    breaker = Breaker("shop", Probe(down=True), Clock())
    for _ in range(FAILURES - 1):
        error = ConnectionFailed("down")
        breaker.fail(error)
        breaker.fail(error)
    await breaker.check(PAUSE)


async def _never() -> str:
    raise AssertionError("nobody asks")


async def test_a_connection_that_breaks_under_a_statement_counts_for_nothing():
    breaker = Breaker("shop", Probe(down=True))
    health = Health(_never, lambda: None, breaker)
    health.saw(None)
    for _ in range(FAILURES):
        error = ConnectionFailed("broke")
        error.reached = True
        health.saw(error)
    await breaker.check(PAUSE)
    assert health.ready
