"""What a tool call comes back as: the same object as text and as structure."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import msgspec

from dragoman.errors import DragomanError

encode = msgspec.json.Encoder().encode
"""Any JSON value, minified; what is `msgspec.Raw` passes as it is."""
MAX_WORDS = 2000
"""Characters of one text in an error."""


@dataclass(frozen=True, slots=True)
class Link:
    """A file that a client may fetch: by `resources/read`, or where its address says. `size` in bytes."""

    uri: str
    name: str
    mime: str
    size: int


@dataclass(frozen=True)
class Answer:
    """The answer of a tool call. `text` is minified JSON; empty when only the structured half is wanted.

    `links` stand beside it. `meta` is not shown to models. An error carries everything in its text and has no
    structured half.
    """

    text: str
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False
    body: bytes | None = None
    links: tuple[Link, ...] = ()

    @cached_property
    def structured(self) -> dict[str, Any] | None:
        """The answer as an object; None when only text is wanted. Decoded when first asked for."""
        decoded: dict[str, Any] | None = None if self.body is None else msgspec.json.decode(self.body)
        return decoded


@dataclass(frozen=True, slots=True)
class Body:
    """What a handler made, before the format is chosen. `facts` may hold `msgspec.Raw` JSON."""

    facts: dict[str, Any]
    meta: dict[str, Any] = field(default_factory=dict[str, Any])
    links: tuple[Link, ...] = ()


def failure(tool: str, error: DragomanError, meta: dict[str, Any] | None = None) -> Answer:
    """Return the answer of a call that failed."""
    return Answer(encode(_sendable({"error": error.as_dict(), "tool_name": tool})).decode(), meta or {}, is_error=True)


def size(value: Any) -> int:
    """Return how many bytes a value takes as minified JSON."""
    return len(encode(value))


def _sendable(value: Any) -> Any:
    """Return an error's facts with every text bounded and in valid Unicode: it may quote anything that was sent."""
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
