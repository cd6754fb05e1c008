"""Commands that travel with the driver's own messages and whose answers the driver does not see.

The driver waits for the answer to each of its messages. A transaction around a statement would cost it two more round
trips; sent ahead of the statement, in one batch with it, its beginning costs none.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

ROLLBACK: Final = b"Q" + struct.pack("!I", 13) + b"ROLLBACK\0"
_HEAD: Final = struct.Struct("!BI")
_COMPLETE, _READY, _ERROR = b"CZE"
_OURS: Final = frozenset(b"12CZ")
"""The kinds of messages that answer a command: parsed, bound, complete, ready for the next."""
_PARSE, _BIND, _EXECUTE = b"P", struct.pack("!cI8x", b"B", 12), struct.pack("!cI5x", b"E", 9)
"""The second and third as they are for a command without a name, parameters and columns."""


def batch(commands: Iterable[str]) -> bytes:
    """Return commands as messages of the extended protocol: when one fails the server skips what is left of the batch.

    The batch ends with the driver's own messages, so that nothing runs outside a transaction that did not begin.
    """
    return b"".join(_message(command.encode()) for command in commands)


def _message(command: bytes) -> bytes:
    # No name before the text; no types of parameters after it.
    body = b"\0" + command + b"\0\0\0"
    return _PARSE + struct.pack("!I", len(body) + 4) + body + _BIND + _EXECUTE


@dataclass(slots=True)
class Answers:
    """The answers to some commands, which are taken out of what arrives. `left`: answers that end with `last`, to come.

    An error is the driver's to see, and ends it: no more answers of these commands come.
    """

    left: int
    last: int
    _held: bytes = b""

    @classmethod
    def to_batch(cls, commands: Sequence[str]) -> Answers:
        """To the commands of a `batch`."""
        return cls(len(commands), _COMPLETE)

    @classmethod
    def to_rollback(cls) -> Answers:
        """To `ROLLBACK`."""
        return cls(1, _READY)

    def take(self, data: bytes) -> bytes:
        """Return what the driver is to see of what has arrived."""
        data, place, seen = self._held + data, 0, b""
        while self.left and place + _HEAD.size <= len(data):
            kind, length = _HEAD.unpack_from(data, place)
            end = place + 1 + length
            if end > len(data):
                break
            if kind == _ERROR:
                self.left = 0
                break
            if kind not in _OURS:
                seen += data[place:end]
            self.left -= kind == self.last
            place = end
        self._held = data[place:] if self.left else b""
        return seen if self.left else seen + data[place:]
