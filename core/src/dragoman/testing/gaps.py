"""Gaps: what a dialect does not do. Its own test class declares them, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Gap:
    """The reason why a case must fail. The run fails on the day the case passes, so that the gap is removed."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason.partition(": ")[2].strip():
            raise TypeError("A gap needs a reason: say in a sentence why this dialect cannot pass the case.")


def never(reason: str) -> Gap:
    """The engine cannot do this, by its nature."""
    return Gap(f"never: {reason}")


def not_yet(reason: str) -> Gap:
    """The engine or its driver may do this later. Name the release or the issue to watch."""
    return Gap(f"not yet: {reason}")


def not_implemented(reason: str) -> Gap:
    """The plugin could do this, but does not yet."""
    return Gap(f"not implemented: {reason}")


def case_names(suite: type[Any]) -> list[str]:
    """Return the cases of a suite: its tests without `test_`, and each example of a parametrised one with `[...]`."""
    return [case for name in dir(suite) if name.startswith("test_") for case in _cases(getattr(suite, name), name[5:])]


def _cases(test: Any, name: str) -> Iterator[str]:
    yield name
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            yield from (f"{name}[{value}]" for value in cast("list[str]", mark.args[1]))


def check_gaps(suite: type[Any], gaps: Mapping[str, Gap]) -> None:
    """Raise `TypeError` for a gap in an unknown case: it would have no effect, or not the intended one."""
    known = case_names(suite)
    for case in gaps:
        if case not in known:
            near = get_close_matches(case, known, n=3)
            raise TypeError(f"{suite.__name__}.gaps names no case: {case!r}. Did you mean one of {near}?")
