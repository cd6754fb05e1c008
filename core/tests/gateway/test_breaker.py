"""A database that cannot be reached is not tried by every caller."""

import pytest
from dragoman import ConnectionFailed
from dragoman.gateway.breaker import FAILURES, PAUSE, Breaker


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
        breaker.check()
    breaker.reset()
    for _ in range(FAILURES - 1):
        breaker.check()
        breaker.fail(ConnectionFailed("down"))
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
