"""Keeps rows that came before the server ended their statement: the driver would drop them with the error."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Final

_HEAD: Final = struct.Struct("!BI")
_ERROR, _ROW, _READY = b"EDZ"
_COMPLETE: Final = b"C" + struct.pack("!I", 13) + b"SELECT 0\0"
_LATE: Final = (b"\0C57014\0", b"\0C55P03\0")
"""The SQLSTATEs of an error that ends a statement, or its wait for a lock, at its deadline."""


@dataclass(slots=True)
class Deadline:
    """Turns the error of a deadline after some rows into the end of the rows, and then is `struck`.

    `near`: before this moment, in the time of `time.monotonic`, no such error can come, so data is passed on unchecked
    and counted in `passed`. Errors of statements that run after its answer stay errors.
    """

    near: float
    passed: list[bytes] = field(default_factory=list[bytes])
    struck: bool = False
    _over: bool = False
    _held: bytearray = field(default_factory=bytearray)
    _already: int = 0
    _rows: int = 0

    def change(self, data: bytes) -> bytes:
        """Return the data that the driver should see: only complete messages.

        An incomplete rest is kept until its end arrives.
        """
        if self.passed:
            self._follow(b"".join(self.passed))
            self.passed.clear()
            self._already = len(self._held)
        return self._follow(data)

    def _follow(self, data: bytes) -> bytes:
        self._held += data
        seen, start = bytearray(), 0
        while (end := self._message_end(start)) <= len(self._held):
            seen += self._replace(bytes(self._held[start:end]))
            start = end
        del self._held[:start]
        already, self._already = self._already, 0 if seen else self._already
        return bytes(seen[already:])

    def _message_end(self, start: int) -> int:
        """Return the end of the message that begins there, or of its header while that is incomplete."""
        head = start + _HEAD.size
        length: int = _HEAD.unpack_from(self._held, start)[1] if head <= len(self._held) else _HEAD.size - 1
        return start + 1 + length

    def _replace(self, message: bytes) -> bytes:
        self._rows += message[0] == _ROW
        self._over = self._over or message[0] == _READY
        if message[0] != _ERROR or not self._rows or self._over or not any(state in message for state in _LATE):
            return message
        self.struck = True
        return _COMPLETE
