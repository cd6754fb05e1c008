"""The messages between executor and worker, in MessagePack, each after its length in four bytes."""

from __future__ import annotations

from typing import Any, Literal

import msgspec


class Run(msgspec.Struct, tag=True, frozen=True):
    """An order to read the rows of one statement, to name its columns, or to return its plan. `timeout` in seconds.

    `confine`: what the dialect's worker must know when the statement may read only parts of some relations. `reads`:
    the relations that were judged, their names in parts. None: nobody judged the statement. `types`: as in `Request`.
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
    reads: list[tuple[str, ...]] | None = None
    types: tuple[str, ...] | None = None


class Cancel(msgspec.Struct, tag=True, frozen=True):
    """An order to end the statement that runs."""


class Columns(msgspec.Struct, tag=True, frozen=True):
    """Names and types of columns. Sent before the rows, and again before rows that change the known types."""

    names: list[str]
    types: list[str]


class Rows(msgspec.Struct, tag=True, frozen=True):
    """Some rows in their final form.

    `oversized`: after these, a row was left out that alone is larger than `max_bytes`.
    """

    json: bytes
    count: int
    notices: tuple[str, ...]
    oversized: bool = False
    octets: tuple[bool | None, ...] = ()


class Told(msgspec.Struct, tag=True, frozen=True):
    """A plan as JSON values, its warnings, and its milliseconds if it was run."""

    plan: Any
    warnings: list[str] = []
    elapsed_ms: float | None = None


class Failed(msgspec.Struct, tag=True, frozen=True):
    """The statement failed. `error` is the name of one of dragoman's exceptions.

    `reached`: the database was open before, so that a `ConnectionFailed` is about what this statement reads.
    """

    error: str
    message: str
    suggestion: str = ""
    identifier: str | None = None
    offset: int | None = None
    reached: bool = False


class Done(msgspec.Struct, tag=True, frozen=True):
    """The worker waits for a statement: it is ready, or the last statement has ended, with or without success."""


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
    """Return the most bytes that one report in answer to an order may have. A longer one is neither sent nor read."""
    return (4 * order.max_bytes if isinstance(order, Run) else 0) + _OVERHEAD
