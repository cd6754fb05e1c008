"""Results are the same when their rows are, however columns and rows are ordered and numbers written."""

import random

import pytest
from dragoman_ask.comparing import ballot, same_rows
from hypothesis import given, settings
from hypothesis import strategies as st

TOLERANCE = 0.01


@pytest.mark.parametrize(
    ("expected", "got", "case", "same"),
    [
        ([[1, "a"], [2, "b"]], [["b", 2], ["a", 1]], {}, True),
        ([[1], [2]], [[2], [1]], {"ordered": True}, False),
        ([["12.50"]], [[12.5]], {}, True),
        ([[1.0]], [[1.01]], {"tolerance": 0.02}, True),
        ([[1.0]], [[1.01]], {}, False),
        ([[1], [1]], [[1]], {}, False),
        ([[1, 2]], [[1]], {}, False),
        ([], [], {}, True),
        ([[None]], [[0]], {}, False),
        ([[True]], [[1]], {}, False),
        ([[0.1 + 0.2]], [["0.3"]], {}, True),
        # Near each other, and not the same.
        ([[1_000_000_001]], [[1_000_000_002]], {}, False),
        ([["9007199254740993"]], [[9007199254740992]], {}, False),
        # As texts they are sorted otherwise.
        ([[9.999, "a"], [10.5, "b"]], [[10.0, "a"], [10.5, "b"]], {"tolerance": 0.01}, True),
        # Columns that hold the same, in rows that do not.
        ([[1, 2], [2, 3], [3, 1]], [[2, 1], [3, 2], [1, 3]], {}, True),
        ([[1, 2], [2, 3], [3, 1]], [[1, 1], [2, 2], [3, 3]], {}, False),
    ],
)
def test_rows_are_compared_as_a_multiset(expected, got, case, same):
    assert same_rows(expected, got, **case) is same


VALUES = {
    "number": st.integers(-50, 50).map(lambda n: n / 4),
    "name": st.sampled_from(["a", "b", "1x", None]),
    "whole": st.integers(0, 3),
}


@st.composite
def tables(draw):
    kinds = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4))
    return draw(st.lists(st.tuples(*(VALUES[kind] for kind in kinds)), min_size=1, max_size=12))


def shake(rows, seed, jitter):
    """The same rows in another order, with columns in another order and numbers a little off."""
    source = random.Random(seed)
    places = source.sample(range(len(rows[0])), len(rows[0]))
    shaken = [[_nudge(row[place], source, jitter) for place in places] for row in rows]
    source.shuffle(shaken)
    return shaken


def _nudge(value, source, jitter):
    return value + source.uniform(-jitter, jitter) if isinstance(value, float) else value


@settings(max_examples=300, deadline=None)
@given(tables(), st.integers())
def test_no_order_of_rows_and_columns_makes_a_difference(rows, seed):
    assert same_rows(rows, shake(rows, seed, 0.0))
    assert same_rows(rows, shake(rows, seed, TOLERANCE / 3), tolerance=TOLERANCE)


@settings(max_examples=300, deadline=None)
@given(
    tables().filter(
        lambda rows: len({repr(sorted(map(repr, each))) for each in zip(*rows, strict=True)}) == len(rows[0])
    ),
    st.integers(),
)
def test_results_that_are_the_same_have_one_ballot(rows, seed):
    assert ballot(rows) == ballot(shake(rows, seed, 0.0))


@settings(max_examples=300, deadline=None)
@given(tables(), st.integers(), st.data())
def test_one_other_value_makes_them_differ(rows, seed, data):
    other = [list(row) for row in rows]
    row = data.draw(st.integers(0, len(rows) - 1))
    place = data.draw(st.integers(0, len(rows[0]) - 1))
    other[row][place] = 1_000.5
    assert not same_rows(rows, shake(other, seed, 0.0), tolerance=TOLERANCE)
