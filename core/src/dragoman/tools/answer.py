"""The answer of a tool call: the same object as text and as structured content."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from dragoman.errors import DragomanError

encode = msgspec.json.Encoder().encode
"""Returns any JSON value, minified. A `msgspec.Raw` passes unchanged."""
MAX_WORDS = 2000
"""The most characters of one text in an error."""


@dataclass(frozen=True, slots=True)
class Link:
    """A file that a client may fetch: with `resources/read`, or from its address. `size` in bytes."""

    uri: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True)
class Answer:
    """The answer of a tool call. `text` is minified JSON; empty if only the structured half is wanted.

    - `links`: returned beside it.
    - `meta`: not shown to models.

    An error carries everything in its text and has no structured half.
    """

    text: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False
    body: bytes | None = None
    links: tuple[Link, ...] = ()

    @cached_property
    def structured(self) -> dict[str, Any] | None:
        """The answer as an object; None if only text is wanted. Decoded on first use."""
        decoded: dict[str, Any] | None = None if self.body is None else msgspec.json.decode(self.body)
        return decoded


@dataclass(frozen=True, slots=True)
class Body:
    """The result of a handler, before the format is chosen. `facts` may hold `msgspec.Raw` JSON."""

    facts: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    links: tuple[Link, ...] = ()


def failure(tool: str, error: DragomanError, meta: dict[str, Any] | None = None) -> Answer:
    """Return the answer of a call that failed."""
    return Answer(encode(_sendable({"error": error.as_dict(), "tool_name": tool})).decode(), meta or {}, is_error=True)


def size(value: Any) -> int:
    """Return the bytes that a value takes as minified JSON."""
    return len(encode(value))


def _sendable(value: Any) -> Any:
    """Return an error's facts with every text bounded and in valid Unicode. They may quote anything that was sent."""
    match value:
        case str():
            text = value if len(value) <= MAX_WORDS else value[:MAX_WORDS] + "..."
            return text.encode("utf-8", "backslashreplace").decode()
        case dict():
            return {key: _sendable(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_sendable(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
