"""What a dialect does not do, declared by its own test class, with the reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, cast


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a case must fail. The day it passes, the run fails, so that the gap is taken out."""

    reason: str

    def __post_init__(self) -> None:
        if not self.reason.partition(": ")[2].strip():
            raise TypeError("A gap needs a reason: say in a sentence why this dialect cannot pass the case.")


def never(reason: str) -> Gap:
    """The engine cannot, by its nature."""
    return Gap(f"never: {reason}")


def not_yet(reason: str) -> Gap:
    """The engine or its driver may learn it; name the release or the issue to watch."""
    return Gap(f"not yet: {reason}")


def not_implemented(reason: str) -> Gap:
    """The plugin could, and does not so far."""
    return Gap(f"not implemented: {reason}")


def case_names(suite: type[Any]) -> list[str]:
    """The cases of a suite: its tests without `test_`, and with `[...]` each of a parametrised one."""
    return [case for name in dir(suite) if name.startswith("test_") for case in _cases(getattr(suite, name), name[5:])]


def _cases(test: Any, name: str) -> Iterator[str]:
    yield name
    for mark in getattr(test, "pytestmark", ()):
        if mark.name == "parametrize":
            yield from (f"{name}[{value}]" for value in cast("list[str]", mark.args[1]))


def check_gaps(suite: type[Any], gaps: Mapping[str, Gap]) -> None:
    """Raise `TypeError` for a gap in a case that is not there: it would hide nothing, or not what was meant."""
    known = case_names(suite)
    for case in gaps:
        if case not in known:
            near = get_close_matches(case, known, n=3)
            raise TypeError(f"{suite.__name__}.gaps names no case: {case!r}. Did you mean one of {near}?")
