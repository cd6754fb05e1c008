"""Where a call comes from: the caller's trace, as SEP-414 defines it, and facts of the protocol."""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

TRACE_KEYS = frozenset({"traceparent", "tracestate", "baggage"})
"""The keys of `_meta` that carry a trace."""
_TRACEPARENT = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a call comes from.

    - `traceparent`, `tracestate`, `baggage`: as in the caller's `_meta`.
    - `linked`: the `traceparent` of the HTTP request around it.
    - `transport`: tcp or pipe.
    - `version`: of the protocol.
    - `request`: the id of its message.
    """

    traceparent: str = ""
    tracestate: str = ""
    baggage: str = ""
    linked: str = ""
    transport: str = ""
    version: str = ""
    request: str = ""

    @property
    def trace(self) -> str:
        """The id of its trace, or an empty text."""
        return trace_id(self.traceparent) or trace_id(self.linked)


_origin: ContextVar[Origin | None] = ContextVar("origin", default=None)


def origin() -> Origin | None:
    """Return the origin of the current call."""
    return _origin.get()


@contextmanager
def coming_from(where: Origin | None) -> Generator[None]:
    """Run a call with this origin; None: unknown."""
    token = _origin.set(where)
    try:
        yield
    finally:
        _origin.reset(token)


def trace_id(traceparent: str) -> str:
    """Return the trace id of a `traceparent`, 32 hexadecimal digits; an empty text if it is not a valid one."""
    if not traceparent:
        return ""
    found = _TRACEPARENT.match(traceparent)
    return found[1] if found and (len(traceparent) == 55 or traceparent[:2] != "00") else ""
