"""What callers get in a while is never more than their roles say, whenever they call."""

import pytest
from dragoman import Principal, QuotaExceeded
from dragoman.access import Quota, Quotas
from hypothesis import given
from hypothesis import strategies as st

ANN, BOB = Principal("ann"), Principal("bob")


class Clock:
    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now


def quotas(clock, **bounds):
    quota = Quota(**bounds)
    return Quotas(lambda principal: quota, clock)


def allowed(counted, principal=ANN):
    try:
        counted.charge(principal)
    except QuotaExceeded:
        return False
    return True


def test_calls_beyond_the_quota_are_refused_with_the_seconds_to_wait():
    clock = Clock()
    counted = quotas(clock, calls_per_minute=2)
    assert [allowed(counted) for _ in range(4)] == [True, True, False, False]
    with pytest.raises(QuotaExceeded) as refused:
        counted.charge(ANN)
    wait = refused.value.context["retry_after"]
    assert refused.value.suggestion == f"Try again in {wait} seconds."
    clock.now += wait
    assert allowed(counted)


@pytest.mark.parametrize(
    ("bound", "period"), [("calls_per_minute", 60), ("rows_per_hour", 3600), ("bytes_per_day", 86400)]
)
@given(start=st.floats(0, 1e6))
def test_nobody_waits_longer_than_the_time_that_is_counted(bound, period, start):
    clock = Clock()
    clock.now = start
    counted = quotas(clock, **{bound: 1})
    counted.charge(ANN)
    counted.spend(ANN, 1, 1)
    wait = refused_for(counted)
    assert 0 < wait <= period
    clock.now += wait + 0.001
    assert allowed(counted)


def refused_for(counted):
    with pytest.raises(QuotaExceeded) as refused:
        counted.charge(ANN)
    return refused.value.context["retry_after"]


def test_each_caller_has_its_own_quota():
    counted = quotas(Clock(), calls_per_minute=1)
    assert [allowed(counted), allowed(counted, BOB)] == [True, True]
    assert [allowed(counted), allowed(counted, BOB)] == [False, False]


def test_rows_and_bytes_are_charged_after_the_answer():
    clock = Clock()
    counted = quotas(clock, rows_per_hour=100, bytes_per_day=10_000)
    counted.spend(ANN, 100, 200)
    assert [allowed(counted), allowed(counted, BOB)] == [False, True]
    clock.now += 3700
    assert allowed(counted)
    counted.spend(ANN, 1, 9_800)
    clock.now += 3700
    assert not allowed(counted)
    clock.now += 86400
    assert allowed(counted)


def test_who_has_no_quota_is_not_counted():
    counted = quotas(Clock())
    assert all(allowed(counted) for _ in range(1000))


@given(st.lists(st.floats(0, 20), max_size=200), st.integers(1, 9))
def test_no_minute_has_more_calls_than_the_quota(pauses, most):
    clock = Clock()
    counted = quotas(clock, calls_per_minute=most)
    passed = []
    for pause in pauses:
        clock.now += pause
        if allowed(counted):
            passed.append(clock.now)
    for moment in passed:
        assert sum(moment <= other < moment + 60 for other in passed) <= most
