"""`name_pattern` means what LIKE means, and no pattern takes longer than its length times the name's."""

import time

import pytest
from dragoman.tools.describing import _like
from hypothesis import given
from hypothesis import strategies as st

BOMBS = ["%_" * 125 + "~", "%a" * 125 + "~", "%aa" * 80 + "b", "_%" * 125, "%" * 250, "%a_" * 80 + "~", "a" * 249 + "~"]
NAMES = ["a" * 1000, "ab" * 500, "a_" * 500, "A" * 999 + "b"]


def fits(pattern: str, name: str) -> bool:
    """What LIKE answers, worked out place by place."""
    letters = iter(pattern.lower())
    items = [next(letters, "\\") if each == "\\" else {"%": None, "_": ""}.get(each, each) for each in letters]
    reached = [True] + [False] * len(name)
    for item in items:
        after = [item is None and reached[0]]
        for place, letter in enumerate(name.lower()):
            after.append(reached[place + 1] or after[-1] if item is None else reached[place] and (item in ("", letter)))
        reached = after
    return reached[-1]


@given(pattern=st.text("ab%_\\", max_size=12), name=st.text("abAB%_\\\n", max_size=12))
def test_a_pattern_means_what_like_means(pattern, name):
    assert (_like(pattern).fullmatch(name) is not None) == fits(pattern, name)


@pytest.mark.parametrize("pattern", BOMBS)
def test_no_pattern_makes_matching_slow(pattern):
    plain = _like("%table%name%")
    compiled = _like(pattern)

    def seconds(of) -> float:
        began = time.thread_time()
        for _ in range(20):
            for name in NAMES:
                of.fullmatch(name)
        return time.thread_time() - began

    assert seconds(compiled) < 1000 * max(
        seconds(plain), 1e-4
    )  # one that goes back and forth takes 10**20 times as long
