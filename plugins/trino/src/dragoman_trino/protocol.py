"""One statement's exchange with the server: sent, read page by page, ended early or read to its end. Blocking."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec
from dragoman import ConnectionFailed, ResultTooLarge

if TYPE_CHECKING:
    import requests

ATTEMPTS: Final = 4
RETRIED: Final = frozenset({429, 502, 503, 504})
"""HTTP statuses of a server, or of a proxy before it, after which a client tries again."""
FORWARDED: Final = "The administrator must configure it for https: http-server.process-forwarded."
"""The remedy for a server with https that names an address without it."""

_READ_TIMEOUT: Final = 30.0
_DELETE_TIMEOUT: Final = 5.0
_LONGEST_PAUSE: Final = 10.0
_CHUNK: Final = 256 * 1024
_TOLD: Final = 4096

Columns = list[dict[str, Any]]
Rows = list[list[Any]]


class ServerError(Exception):
    """The server failed the statement; `error` is its own report."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error.get("errorName"))
        self.error = error


class HttpStatus(Exception):
    """The server, or a proxy before it, answered with an HTTP status that is an error."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status)
        self.status = status
        self.text = text


class Cancelled(Exception):
    """We ended the exchange."""


class TooMuch(ResultTooLarge):
    """An answer is longer than allowed before its first row. It was not read."""

    def __init__(self, most: int) -> None:
        super().__init__(
            f"The server's answer takes more than {most} bytes beside its rows; it was not read.",
            suggestion="Select fewer columns, and give them short names with AS.",
        )


class Answer(msgspec.Struct, rename="camel"):
    """The parts of an answer: where to continue, the columns as the protocol has them, rows of raw values."""

    next_uri: str | None = None
    columns: Columns | None = None
    data: msgspec.Raw = msgspec.Raw(b"")
    error: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Columns and rows of one answer. `cut`: it had more rows, which were not read."""

    columns: Columns | None
    data: bytes | msgspec.Raw
    cut: bool = False

    @property
    def size(self) -> int:
        """The bytes its rows take."""
        return len(memoryview(self.data))

    def rows(self, *, pairs: bool = False) -> Rows:
        """Return rows of raw values. `pairs`: objects become pairs, several of which may have the same key."""
        if self.cut:
            return list(_whole_rows(bytes(self.data).decode(errors="ignore"), pairs=pairs))
        if not self.data:
            return []
        return json.loads(bytes(self.data), object_pairs_hook=list) if pairs else _decode_rows(self.data)


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One statement, sent by the first `page`. `most`: the bytes that are read of one answer.

    `cancel` may be called from another thread at any time.
    """

    connect: Callable[[], requests.Session]
    url: str
    sql: str
    most: int
    connect_timeout: float
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of all answers, in lower case; for internal statements. Other statements do not use them."""
    _session: requests.Session | None = None
    _next: str | None = None
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    @property
    def over(self) -> bool:
        """Whether the server has finished with it."""
        return self._over

    def page(self) -> Page | None:
        """Return the next answer with rows or columns; None at the end.

        Raises `ServerError`, `HttpStatus`, `Cancelled`, `ConnectionFailed` and what requests raises.
        """
        while not self._over:
            body, cut = self._retry(self._post if self._session is None else self._get)
            head, data = _split(body) if cut else (body, None)
            answer = _decode(head)
            self._receive(answer)
            if cut and data is None:
                raise TooMuch(self.most)
            if cut or answer.data or answer.columns is not None:
                return Page(answer.columns, answer.data if data is None else data, cut)
        return None

    def _receive(self, answer: Answer) -> None:
        """Store where to continue. If we gave up meanwhile, tell the server, since nobody else could until now."""
        bare = self.url.startswith("https:") and not (answer.next_uri or "https:").startswith("https:")
        with self._lock:
            self._next = None if bare else answer.next_uri
            self._over = self._next is None
        if answer.error is not None:
            raise ServerError(answer.error)
        if self._cancelled.is_set():
            self.cancel()
            raise Cancelled
        if bare:
            raise ConnectionFailed(
                "The server goes on at an address that is not encrypted.",
                suggestion=FORWARDED,
            )

    def cancel(self) -> None:
        """End the statement in the server unless it has ended. Raises nothing."""
        import requests

        self._cancelled.set()
        with self._lock:
            uri, self._next, self._over = self._next, None, self._over or self._next is not None
        if uri is None or self._session is None:
            return
        for attempt in range(1, ATTEMPTS):
            try:
                self._session.delete(uri, timeout=(self.connect_timeout, _DELETE_TIMEOUT))
            except requests.RequestException:
                time.sleep(0.1 * 2**attempt)  # in a thread of its own
            else:
                return
        # Nobody reads its rows any more, so the server ends it by itself after a while.

    def _post(self) -> requests.Response:
        self._session = self._session or self.connect()
        kind = {"Content-Type": "text/plain; charset=utf-8"}
        timeouts = (self.connect_timeout, _READ_TIMEOUT)
        return self._session.post(self.url, data=self.sql.encode(), headers=kind, stream=True, timeout=timeouts)

    def _get(self) -> requests.Response:
        uri = self._next
        if uri is None or self._session is None:
            raise Cancelled
        return self._session.get(uri, stream=True, timeout=(self.connect_timeout, _READ_TIMEOUT))

    def _retry(self, send: Callable[[], requests.Response]) -> tuple[bytes, bool]:
        """Return an answer's first `most` bytes and whether there are more. Tries again as the protocol says."""
        for attempt in range(1, ATTEMPTS + 1):
            if self._cancelled.is_set():
                raise Cancelled
            read = self._try(send, last=attempt == ATTEMPTS)
            if isinstance(read, tuple):
                return read
            self._cancelled.wait(read if read is not None else 0.05 * 2**attempt)
        raise AssertionError("the last attempt returns or raises")

    def _try(self, send: Callable[[], requests.Response], *, last: bool) -> tuple[bytes, bool] | float | None:
        """Try once: return an answer, or else the seconds to wait before the next try, if the server says how many."""
        import requests

        try:
            with send() as response:
                body, cut = _read(response, self.most)
        except requests.ConnectTimeout:
            raise
        except (requests.ConnectionError, requests.Timeout, requests.exceptions.ChunkedEncodingError):
            if last:
                raise
            return None
        self.headers |= {name.lower(): value for name, value in response.headers.items()}
        status = response.status_code
        if status == requests.codes.ok and body:
            return body, cut
        if last or status not in (*RETRIED, requests.codes.ok):
            raise HttpStatus(status, body[:_TOLD].decode(errors="replace"))
        told = response.headers.get("Retry-After", "")
        return min(float(told), _LONGEST_PAUSE) if told.isdigit() else None


def _read(response: requests.Response, most: int) -> tuple[bytes, bool]:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > most:
            return bytes(body[:most]), True
    return bytes(body), False


_decode = msgspec.json.Decoder(Answer).decode
_decode_rows = msgspec.json.Decoder(Rows).decode
_DATA: Final = b'"data":['
# The parts that may be long, in the order in which the server sends them.
_LONG: Final = (b'"columns":[', b'"stats":{', b'"error":{', b'"warnings":[')


def _split(body: bytes) -> tuple[bytes, bytes | None]:
    """Return an incomplete answer as an answer without rows, and the text of its rows as far as it goes.

    None: it ends before the rows, in a part that may be long: names of columns, statistics, an error.
    """
    # Quotes inside a name or a value are escaped, so only the key itself looks like this.
    before, found, rows = body.partition(_DATA)
    if found:
        return before + b'"data":[]}', rows
    end = min((place for key in _LONG if (place := body.find(key)) > 0), default=0)
    return (body[:end].rstrip(b",") + b"}" if end else b"{}"), None


def _whole_rows(text: str, *, pairs: bool) -> Iterator[list[Any]]:
    """Yield the rows of a list whose end, and perhaps that of its last row, is missing."""
    next_value = json.JSONDecoder(object_pairs_hook=list if pairs else None).raw_decode
    place = 0
    while text[place : place + 1] == "[":
        try:
            row, place = next_value(text, place)
        except ValueError:
            return
        yield row
        place += 1
