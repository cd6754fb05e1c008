"""A database that cannot be reached is not tried by every caller."""

from contextvars import Context, copy_context

import pytest
from dragoman import ConnectionFailed
from dragoman.gateway.breaker import FAILURES, PAUSE, Breaker
from dragoman.gateway.health import Health


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def broken(clock):
    breaker = Breaker("shop", clock)
    for _ in range(FAILURES):
        breaker.check()
        breaker.fail(ConnectionFailed("down"))
    return breaker


def test_after_some_failures_callers_are_answered_at_once_with_the_seconds_to_wait():
    clock = Clock()
    breaker = broken(clock)
    clock.now += 4
    with pytest.raises(ConnectionFailed) as refused:
        breaker.check()
    assert refused.value.context == {"retry_after": PAUSE - 4}
    assert "in 6 seconds" in refused.value.suggestion


def test_after_the_pause_one_call_tries_for_all():
    clock = Clock()
    breaker = broken(clock)
    clock.now += PAUSE
    breaker.check()
    with pytest.raises(ConnectionFailed):
        of_another_call(breaker)
    breaker.reset()
    for _ in range(FAILURES - 1):
        breaker.check()
        breaker.fail(ConnectionFailed("down"))
    breaker.check()


def of_another_call(breaker):
    Context().run(breaker.check)


def test_the_call_that_tries_may_ask_in_each_layer_it_goes_through():
    clock = Clock()
    breaker = broken(clock)
    clock.now += PAUSE
    breaker.check()
    breaker.check()
    copy_context().run(breaker.check)
    with pytest.raises(ConnectionFailed):
        of_another_call(breaker)


@pytest.mark.parametrize("end", ["fail", "reset"])
def test_a_trial_that_is_over_lets_nothing_more_through(end):
    clock = Clock()
    breaker = broken(clock)
    clock.now += PAUSE
    breaker.check()
    if end == "reset":
        breaker.reset()
        for _ in range(FAILURES - 1):
            breaker.fail(ConnectionFailed("down"))
    breaker.fail(ConnectionFailed("down"))
    with pytest.raises(ConnectionFailed):
        breaker.check()


def test_a_trial_that_fails_opens_it_again():
    clock = Clock()
    breaker = broken(clock)
    clock.now += PAUSE
    breaker.check()
    breaker.fail(ConnectionFailed("down"))
    clock.now += PAUSE - 1
    with pytest.raises(ConnectionFailed):
        breaker.check()


def test_an_error_that_two_layers_tell_of_counts_once():
    breaker = Breaker("shop", Clock())
    for _ in range(FAILURES - 1):
        error = ConnectionFailed("down")
        breaker.fail(error)
        breaker.fail(error)
    breaker.check()


async def _never() -> str:
    raise AssertionError("nobody asks")


def test_a_connection_that_breaks_under_a_statement_counts_for_nothing():
    breaker = Breaker("shop")
    health = Health(_never, lambda: None, breaker)
    health.saw(None)
    for _ in range(FAILURES):
        error = ConnectionFailed("broke")
        error.reached = True
        health.saw(error)
    breaker.check()
    assert health.ready
