"""Refusals of the HTTP server: the exception, and log lines that a flood of requests cannot multiply."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping

from starlette.responses import JSONResponse

LOGGER = logging.getLogger("dragoman.mcp")

LINES_PER_SECOND = 20
"""The number of refusals logged one by one. The next line counts the others."""

_NO_HEADERS: Mapping[str, str] = {}


class Refused(Exception):
    """A request that the middleware refuses: status, a code, and a reason that says what to do."""

    def __init__(self, status: int, code: str, reason: str, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        super().__init__(reason)
        self.status = status
        self.code = code
        self.reason = reason
        self.headers = headers

    def response(self, more: Mapping[str, str] = _NO_HEADERS) -> JSONResponse:
        """Return the answer to the client, with `more` headers."""
        return JSONResponse({"error": self.code, "message": self.reason}, self.status, {**self.headers, **more})


class RefusalLog:
    """Logs refusals with the peer's address and the reason, at most `LINES_PER_SECOND`. Never a header's value."""

    def __init__(self) -> None:
        self._second = 0
        self._lines = 0
        self._left_out = 0

    def note(self, peer: str, reason: str, **fields: object) -> None:
        """Log one refusal, or count it."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines = second, 0
        self._lines += 1
        if self._lines > LINES_PER_SECOND:
            self._left_out += 1
            return
        if self._left_out:
            fields["left_out"], self._left_out = self._left_out, 0
        LOGGER.warning("refused %s: %s", peer, reason, extra={"refused": {"peer": peer, "reason": reason, **fields}})
