"""How executor and worker talk: messages in MessagePack, each behind its length in four bytes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Run(msgspec.Struct, tag=True, frozen=True):
    """One statement: read its rows, only name its columns, or tell its plan. `timeout` in seconds.

    `confine`: what the dialect's worker must know of the parts of relations that it may read, if these are parts.
    """

    sql: str
    parameters: list[Any]
    max_rows: int
    max_bytes: int
    timeout: float
    task: Literal["rows", "columns", "plan"] = "rows"
    analyze: bool = False
    verbose: bool = False
    confine: Any = None


class Cancel(msgspec.Struct, tag=True, frozen=True):
    """End the statement that runs."""


class Columns(msgspec.Struct, tag=True, frozen=True):
    """Names and types; sent before the rows, and again before rows that change what types are seen."""

    names: list[str]
    types: list[str]


class Rows(msgspec.Struct, tag=True, frozen=True):
    """Some rows in their final form; `oversized`: after them one is left out that alone is beyond `max_bytes`."""

    json: bytes
    count: int
    notices: tuple[str, ...]
    oversized: bool = False


class Told(msgspec.Struct, tag=True, frozen=True):
    """A plan as JSON values, what to watch out for in it, and its milliseconds when it was run."""

    plan: Any
    warnings: list[str] = []
    elapsed_ms: float | None = None


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The statement failed; `error` is the name of one of dragoman's exceptions."""

    error: str
    message: str
    suggestion: str = ""
    identifier: str | None = None
    offset: int | None = None


class Done(msgspec.Struct, tag=True, frozen=True):
    """The worker waits for a statement: it is ready, or the last one has ended, one way or the other."""


Order = Run | Cancel
Report = Columns | Rows | Told | Failed | Done

HEADER = 4
_OVERHEAD = 1024 * 1024
_encoder = msgspec.msgpack.Encoder()


def pack(message: msgspec.Struct) -> bytes:
    """Return the bytes of one message, its header included."""
    body = _encoder.encode(message)
    return len(body).to_bytes(HEADER, "big") + body


def most_bytes(order: Order) -> int:
    """Return how many bytes one report may take in answer to an order: what is longer is neither sent nor read."""
    return (4 * order.max_bytes if isinstance(order, Run) else 0) + _OVERHEAD
