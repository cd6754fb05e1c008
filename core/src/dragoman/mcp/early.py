"""The handshake over stdio, answered before the SDK is loaded.

A client waits for `initialize` and `tools/list` before it shows anything, and importing the SDK takes a second. So
these are answered from what is known without it. The SDK gets the same frames as soon as it is loaded, and each of its
answers is compared with the one that was sent. Everything that is not clearly one of these requests is left to the SDK.

Nothing heavy is imported here, not even asyncio, since this runs before the first answer.
"""

from __future__ import annotations

import json
import os
import select
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from dragoman.mcp.handshake import (
    HANDSHAKE_VERSIONS,
    MODERN_VERSION,
    Handshake,
    is_object,
    plain_capabilities,
    plain_client,
    plain_envelope,
)

_SILENCE = 0.15
"""Seconds after which a silent client is assumed to wait for nothing, so that the rest may be imported."""
_CHUNK = 65536
_MAX_LINE = 65536
"""The most bytes of a line that is handled here. A longer one is the SDK's."""
_LARGEST_ID = 2**53


@dataclass(frozen=True, slots=True)
class Exchange:
    """A frame that was handled. `result`: the answer to a request; a notification has neither id nor answer."""

    frame: bytes
    request: int | str | None = None
    result: dict[str, Any] | None = None


@dataclass(slots=True)
class Early:
    """The state of the handshake.

    - `version`: of the protocol on the connection; None while that is open.
    - `rest`: bytes that were read and not answered.
    - `ended`: the input has ended.
    - `stopped`: a signal has arrived, or the client has left.
    """

    source: int
    sink: int
    exchanges: list[Exchange] = field(default_factory=list[Exchange])
    version: str | None = None
    rest: bytes = b""
    ended: bool = False
    stopped: bool = False


def answer_early(early: Early, handshake: Handshake, load: Callable[[], None]) -> None:
    """Answer what can be answered, until `load` is done: it imports, in a thread, what answers everything else.

    It starts once `tools/list` was answered, at the first frame that is not ours, or when the client is silent.
    """
    with _signals(early) as woken:
        _Front(early, handshake, load, woken).run()


@contextmanager
def _signals(early: Early) -> Generator[tuple[int, int]]:
    """Record SIGTERM and SIGINT instead of dying of them, and wake the waiting thread. Yields both ends of a pipe."""
    read, write = os.pipe()
    os.set_blocking(write, False)

    def stop(*_: object) -> None:
        early.stopped = True
        os.write(write, b"s")

    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield read, write
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
        os.close(read)
        os.close(write)


class _Front:
    def __init__(self, early: Early, handshake: Handshake, load: Callable[[], None], woken: tuple[int, int]) -> None:
        self._early = early
        self._handshake = handshake
        self._load = load
        self._woken, self._wake = woken
        self._loading: threading.Thread | None = None
        self._ours = True

    def run(self) -> None:
        """Serve until everything else is loaded, or the client or a signal ends it."""
        early = self._early
        while not early.stopped:
            sources = [self._woken] if not self._ours else [self._woken, early.source]
            ready, _, _ = select.select(sources, [], [], None if self._loading else _SILENCE)
            if self._woken in ready:
                break
            if not ready:
                self._begin_loading()
            elif not self._read():
                break
        if self._loading:
            self._loading.join()

    def _read(self) -> bool:
        """Read what the client sent. Return whether to go on."""
        chunk = os.read(self._early.source, _CHUNK)
        self._early.rest += chunk
        while self._ours and b"\n" in self._early.rest:
            line, _, rest = self._early.rest.partition(b"\n")
            if not self._take(line):
                self._ours = False
                break
            self._early.rest = rest
        if len(self._early.rest) > _MAX_LINE:
            self._ours = False
        if not self._ours or not chunk:
            self._begin_loading()
        self._early.ended = not chunk
        return bool(chunk)

    def _begin_loading(self) -> None:
        if self._loading is None:
            self._loading = threading.Thread(target=self._load_and_wake, name="dragoman-loading")
            self._loading.start()

    def _load_and_wake(self) -> None:
        try:
            self._load()
        finally:
            os.write(self._wake, b"l")

    def _take(self, line: bytes) -> bool:
        """Answer a line, if it is ours to answer."""
        exchange = self._exchange(line) if line.strip() else Exchange(b"")
        if exchange is None:
            return False
        if exchange.frame:
            self._early.exchanges.append(exchange)
        if exchange.result is not None and not self._send(exchange):
            return False
        if exchange.result is not None and "tools" in exchange.result:
            self._begin_loading()
        return True

    def _exchange(self, line: bytes) -> Exchange | None:
        try:
            frame: Any = json.loads(line.decode(), parse_constant=_refuse, object_pairs_hook=_unique)
        except (ValueError, RecursionError):
            return None
        if not is_object(frame) or frame.get("jsonrpc") != "2.0":
            return None
        if frame == {"jsonrpc": "2.0", "method": "notifications/initialized"}:
            # Before the handshake it would open the connection by itself; after it, it only reports this.
            return Exchange(line) if self._early.version in HANDSHAKE_VERSIONS else None
        version = _version(frame, self._early.version)
        if version is None:
            return None
        method: str = frame["method"]
        try:
            result = self._handshake.result(method, version)
        except KeyError:
            return None
        self._early.version = version
        return Exchange(line, frame["id"], result)

    def _send(self, exchange: Exchange) -> bool:
        answer = {"jsonrpc": "2.0", "id": exchange.request, "result": exchange.result}
        rest = memoryview(json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")
        while rest:
            ready, writable, _ = select.select([self._woken], [self._early.sink], [])
            if writable:
                try:
                    # The most bytes that a pipe which is ready certainly accepts at once.
                    rest = rest[os.write(self._early.sink, rest[: select.PIPE_BUF]) :]
                except OSError:
                    self._early.stopped = True  # nobody reads any more
                    return False
            elif ready and self._early.stopped:
                return False
        return True


def _version(frame: dict[str, Any], known: str | None) -> str | None:
    """Return the version of the protocol in which to answer a request, or None if it is not ours to answer."""
    if frame.keys() - {"params"} != {"jsonrpc", "id", "method"} or not _plain_id(frame["id"]):
        return None
    method, params = frame["method"], frame.get("params", {})
    if not is_object(params):
        return None
    if known is None and method == "initialize":
        return _initialize(params)
    if known in HANDSHAKE_VERSIONS:
        return known if not params and method in ("ping", "tools/list") else None
    modern = params.keys() == {"_meta"} and plain_envelope(params["_meta"])
    return MODERN_VERSION if modern and method in ("server/discover", "tools/list") else None


def _initialize(params: dict[str, Any]) -> str | None:
    """Return the requested version, if every SDK would accept these params and that version."""
    if params.keys() != {"protocolVersion", "capabilities", "clientInfo"}:
        return None
    version = params["protocolVersion"]
    plain = plain_capabilities(params["capabilities"]) and plain_client(params["clientInfo"])
    return version if plain and version in HANDSHAKE_VERSIONS else None


def _plain_id(request: Any) -> bool:
    if isinstance(request, str):
        return request.isascii() and len(request) <= 100
    return type(request) is int and -_LARGEST_ID < request < _LARGEST_ID


def _refuse(constant: str) -> Any:
    raise ValueError(constant)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a duplicate key: parsers differ in which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key twice")
    return found
