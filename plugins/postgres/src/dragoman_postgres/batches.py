"""Commands as messages that travel beside the driver's own, and whose answers the driver does not see.

The driver waits for the answer to each of its messages. A transaction around a statement would cost it two more round
trips. In one batch with the statement, its beginning and its end cost none.
"""

from __future__ import annotations

import struct
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

_COMPLETE, _CLOSED, _COLUMNS = b"C3T"
SYNC: Final = struct.pack("!cI", b"S", 4)
"""Ends a batch."""
_BIND, _EXECUTE = struct.pack("!cI8x", b"B", 12), struct.pack("!cI5x", b"E", 9)
"""Messages for a command without a name, parameters and columns."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Commands as messages. Their answers are `answers` sequences, whose last messages have the kind `last`."""

    messages: bytes
    answers: int
    last: int

    def __add__(self, other: Batch) -> Batch:
        """Return the commands of both, whose answers end with messages of one kind."""
        return replace(self, messages=self.messages + other.messages, answers=self.answers + other.answers)

    @classmethod
    def of(cls, *commands: str) -> Batch:
        """Commands of the extended protocol, without an end: when one fails, the server skips all that follows.

        If one fails, the server skips the rest, up to the end. The driver's next message ends the batch, so that
        nothing runs outside a transaction that did not begin.
        """
        return cls(b"".join(map(_message, commands)), len(commands), _COMPLETE)

    @classmethod
    def closing(cls, names: Collection[str]) -> Batch:
        """Return the commands that let the server forget prepared statements, without an end, as above."""
        return cls(b"".join(_about_statement(b"C", name) for name in names), len(names), _CLOSED)

    @classmethod
    def describing(cls, name: str) -> Batch:
        """Return the question for the columns of a prepared statement, without an end, as above.

        It fails if they have changed since the statement was prepared.
        """
        return cls(_about_statement(b"D", name), 1, _COLUMNS)

    @classmethod
    def parsing(cls, text: str) -> Batch:
        """Return the question for the parameters of a statement as its tables are now, without an end, as above."""
        return cls(_parse(text) + _about_statement(b"D", ""), 1, _COLUMNS)


def _message(command: str) -> bytes:
    return _parse(command) + _BIND + _EXECUTE


def _parse(text: str) -> bytes:
    # No name before the text; no types of parameters after it.
    body = b"\0" + text.encode() + b"\0\0\0"
    return b"P" + struct.pack("!I", len(body) + 4) + body


def _about_statement(kind: bytes, name: str) -> bytes:
    return kind + struct.pack("!I", len(name.encode()) + 6) + b"S" + name.encode() + b"\0"


ROLLBACK: Final = Batch.of("ROLLBACK")
