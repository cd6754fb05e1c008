"""One statement's exchange with the server: sent, asked for page by page, ended early or read to its end. Blocking."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
from dragoman import ConnectionFailed

if TYPE_CHECKING:
    import requests

ATTEMPTS: Final = 4
RETRIED: Final = frozenset({429, 502, 503, 504})
"""Answers of a server, or of what stands before it, that a client asks again for."""

_READ_TIMEOUT: Final = 30.0
_CHUNK: Final = 256 * 1024
T = TypeVar("T")


class ServerError(Exception):
    """The server failed the statement; `error` is its own report."""

    def __init__(self, error: Mapping[str, Any]) -> None:
        super().__init__(error.get("errorName"))
        self.error = error


class HttpStatus(Exception):
    """The server, or what stands before it, answered with an HTTP status that is no answer."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(status)
        self.status = status
        self.text = text


class Cancelled(Exception):
    """The exchange was ended by us."""


class Answer(msgspec.Struct, rename="camel"):
    """What is read of an answer. `columns` as the protocol has them; `data` are rows of raw values."""

    id: str = ""
    next_uri: str | None = None
    columns: list[dict[str, Any]] | None = None
    data: list[list[Any]] | None = None
    error: dict[str, Any] | None = None
    update_type: str | None = None


_decode = msgspec.json.Decoder(Answer).decode


@dataclass(frozen=True, slots=True)
class Page:
    """Rows, with the columns as soon as the server tells them. `size`: bytes read. `cut`: there was more than that."""

    columns: list[dict[str, Any]] | None
    rows: list[list[Any]]
    size: int
    cut: bool = False


@dataclass(slots=True)
class Exchange:
    """One statement, sent by the first `page`. `most`: bytes of one answer that are read.

    `cancel` may be called from another thread at any time.
    """

    session: requests.Session
    url: str
    sql: str
    most: int
    connect_timeout: float = 10.0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Of the answers, for statements of ours."""
    _next: str | None = None
    _begun: bool = False
    _over: bool = False
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _cancelled: threading.Event = field(default_factory=threading.Event)

    def page(self) -> Page | None:
        """Return the next page that has rows or tells the columns; None at the end.

        Raises `ServerError`, `HttpStatus`, `Cancelled`, `ConnectionFailed` and what requests raises.
        """
        while not self._over:
            body, cut = self._body()
            answer, rows = _cut_answer(body) if cut else _answer(body)
            self._arrived(answer, cut)
            if rows or answer.columns is not None:
                return Page(answer.columns, rows, len(body), cut)
        return None

    def _body(self) -> tuple[bytes, bool]:
        if self._begun:
            return self._retried(lambda: self._get(self._next or ""))
        self._begun = True
        return self._retried(self._post)

    def _arrived(self, answer: Answer, cut: bool) -> None:
        """Remember where to go on; when we gave up meanwhile, tell the server, since nobody else could yet."""
        if answer.error is not None:
            self._over = True
            self._next = None
            raise ServerError(answer.error)
        with self._lock:
            self._next = answer.next_uri
        self._over = answer.next_uri is None or cut
        self._check_way(answer.next_uri)
        if self._cancelled.is_set():
            self._delete()
            raise Cancelled

    def _check_way(self, uri: str | None) -> None:
        if uri and self.url.startswith("https:") and not uri.startswith("https:"):
            self._next = None
            raise ConnectionFailed(
                "The server answers with an address that is not encrypted.",
                suggestion="The operator must let it know that it is reached by https: http-server.process-forwarded.",
            )

    def cancel(self) -> None:
        """End the statement in the server, unless it has ended. Raises nothing."""
        self._cancelled.set()
        self._delete()

    def _delete(self) -> None:
        import requests

        with self._lock:
            uri, self._next = self._next, None
        if uri is None:
            return
        self._over = True
        try:
            self.session.delete(uri, timeout=(self.connect_timeout, 5.0))
        except requests.RequestException:
            # Nobody asks for its rows any more: the server ends it by itself after a while.
            return

    # Requests

    def _post(self) -> requests.Response:
        kind = {"Content-Type": "text/plain; charset=utf-8"}
        return self.session.post(
            self.url, data=self.sql.encode(), headers=kind, stream=True, timeout=(self.connect_timeout, _READ_TIMEOUT)
        )

    def _get(self, uri: str) -> requests.Response:
        return self.session.get(uri, stream=True, timeout=(self.connect_timeout, _READ_TIMEOUT))

    def _retried(self, send: Callable[[], requests.Response]) -> tuple[bytes, bool]:
        """The body of an answer, at most `most` bytes of it, and whether there was more; asked for again as needed."""
        import requests

        for attempt in range(1, ATTEMPTS + 1):
            if self._cancelled.is_set():
                raise Cancelled
            try:
                with send() as response:
                    self.headers |= response.headers
                    body, cut = _read(response, self.most)
            except requests.ConnectTimeout:
                raise
            except (requests.ConnectionError, requests.Timeout):
                if attempt == ATTEMPTS:
                    raise
                self._cancelled.wait(_pause(attempt, None))
                continue
            if response.status_code == 200 and body:
                return body, cut
            if attempt == ATTEMPTS or (response.status_code not in RETRIED and response.status_code != 200):
                raise HttpStatus(response.status_code, body[:2000].decode(errors="replace"))
            self._cancelled.wait(_pause(attempt, response.headers.get("Retry-After")))
        raise AssertionError("every attempt returns or raises")


def _pause(attempt: int, told: str | None) -> float:
    """Seconds to wait before asking again."""
    return min(float(told), 30.0) if told and told.isdigit() else 0.1 * 2**attempt


def _read(response: requests.Response, most: int) -> tuple[bytes, bool]:
    body = bytearray()
    for chunk in response.iter_content(_CHUNK):
        body += chunk
        if len(body) > most:
            return bytes(body[:most]), True
    return bytes(body), False


def _answer(body: bytes) -> tuple[Answer, list[list[Any]]]:
    answer = _decode(body)
    return answer, answer.data or []


_DATA = b'"data":['
_next_value = json.JSONDecoder().raw_decode


def _cut_answer(body: bytes) -> tuple[Answer, list[list[Any]]]:
    """What can be read of an answer whose end is missing: everything before its rows, and the rows that are whole."""
    before, found, rest = body.partition(_DATA)
    # Quotes inside a name are escaped, so nothing but the key itself looks like this.
    answer = _decode(before + b'"data":null}') if found else Answer()
    text = rest.decode(errors="ignore")
    rows: list[list[Any]] = []
    place = 0
    while text[place : place + 1] == "[":
        try:
            row, end = _next_value(text, place)
        except ValueError:
            break
        rows.append(row)
        place = end + 1
    return answer, rows


def now() -> float:
    """The clock deadlines are measured with."""
    return time.monotonic()
