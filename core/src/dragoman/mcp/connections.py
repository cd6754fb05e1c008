"""The connections of the HTTP server: their number, and the time each may take to send a request.

uvicorn gives a connection unlimited time for its first request, and room for any number of further ones. Here each
connection is wrapped. It has a deadline until its request's head is complete, a bound on what it sends before that, a
bound on what it sends after a request that was not answered yet, and a place among those that were not admitted yet. If
these are too many, the oldest connection of the peer with most of them is dropped, so that a new client is always
heard. An idle connection of a caller is dropped only where there is no other room: a proxy may be about to send the
next request on it, of anybody. After these, requests that have not arrived make room, of callers with many connections.
"""

from __future__ import annotations

import asyncio
import fcntl
import math
import resource
import socket
import ssl
import sys
import termios
from collections import Counter
from collections.abc import Callable, Collection, Generator, Hashable, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from dragoman.mcp.refusals import RefusalLog

K = TypeVar("K")
STATE = "dragoman.connection"
"""The key of the ASGI scope's `state` under which a request finds its `Connection`."""

_SWEEP = 0.5

_TCP_INFO = 11
"""Linux' option of a socket that tells what its connection did (linux/tcp.h)."""
_ACKED = slice(120, 128)
"""There, the bytes that the peer has acknowledged (`tcpi_bytes_acked`, since Linux 4.1)."""

_SLICE = 4096
"""The most bytes passed to the server's protocol at once: only this much is read of requests that nobody waits for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The limits of a connection, in seconds and bytes."""

    connections: int = 1024
    """The number of connections, never more than half of the files that this process may open.

    A peer has at most half of them, and at most half of them wait to be admitted. A caller uses at most a quarter at
    the same time: many callers may come through one proxy, which is one peer.
    """

    head: float = 10.0
    """From a request's first byte, or from the connection, to the end of its headers."""

    body: float = 20.0
    """From the end of the headers to the end of the body."""

    idle: int = 60
    """Between two requests."""

    stall: float = 30.0
    """For an answer that the client does not read."""

    head_bytes: int = 64 * 1024
    """For one head, or for everything that comes after a request before its answer.

    A longer head is refused with an error. At four times as much, the connection is dropped.
    """

    behind: int = 16
    """Requests that wait for the answer to an earlier one of the same connection."""

    drain_bytes: int = 8 * 1024 * 1024
    """What a client may still send of a refused body. It is not kept."""


class Connection(asyncio.Protocol):
    """One client's connection. It passes everything on to `inner`, the server's own protocol."""

    def __init__(self, inner: Callable[[Connection], asyncio.Protocol], connections: Connections) -> None:
        self._inner = inner(self)
        self._all = connections
        self._limits = connections.limits
        self._transport: asyncio.Transport | None = None
        self._requests = 0
        self._received = 0
        self._behind = 0
        self._allowance = 4 * self._limits.head_bytes
        self._deadline = math.inf
        self._read = self._now()
        self._unsent = self._taken = 0
        self._accepted = False
        self._securing: asyncio.Task[None] | None = None
        self.peer = "unknown"
        self.caller: Hashable = None
        self.is_served = False
        self._gone = False
        self._discards = self._lingers = False
        self._departure: Callable[[], None] | None = None

    @contextmanager
    def serving(self) -> Generator[None]:
        """Serve one request. Between requests the connection gets a deadline again as soon as it sends."""
        self._requests += 1
        self.is_served = False
        self._received, self._deadline, self._allowance = 0, math.inf, 4 * self._limits.head_bytes
        try:
            yield
        finally:
            self._requests -= 1
            self.is_served = self.is_served and self._requests > 0

    def let_in(self, caller: Hashable) -> bool:
        """Record that it sent a whole request of `caller`. While that is served, it is not dropped to make room.

        Return whether the request may be served: its caller does not use too many connections at the same time.
        """
        self.is_served = self._all.let_in(self, caller)
        return self.is_served

    @property
    def is_idle(self) -> bool:
        """Whether it has no request that is being served or sent."""
        return not self._requests and not self._received

    @property
    def awaits_body(self) -> bool:
        """Whether its request is not complete, and has no answer yet."""
        cycle = getattr(self._inner, "cycle", None)
        return cycle is not None and cycle.more_body and not cycle.response_complete

    def notify(self, departure: Callable[[], None] | None) -> None:
        """Call `departure` when the client leaves, now if it has left. None: the answer is ready, call nothing."""
        self._departure = departure
        if self._gone and departure is not None:
            departure()

    def discard_body(self) -> None:
        """Record that the rest of the request's body is refused, and that nothing after it is a request."""
        self._discards = True
        self._allowance = self._limits.drain_bytes
        self._deadline = self._now() + self._limits.head

    def linger(self) -> bool:
        """Keep the connection after its last answer for what is left of a refused body. Return whether it is needed.

        The system of a client that still sends to a closed connection loses the answer.
        """
        if not self._discards or self._lingers or self._transport is None:
            return False
        self._lingers = True
        self._transport.resume_reading()  # the server's protocol may have paused it
        if self._transport.can_write_eof():
            self._transport.write_eof()
        return True

    def drop(self, reason: str) -> None:
        """Close the connection at once. Log the reason, unless it is empty."""
        self._all.leave(self)
        if self._transport is not None:
            self._transport.abort()
        elif self._securing is not None:
            self._securing.cancel()
        if reason:
            self._all.log.note(self.peer, reason)

    def overdue(self, now: float) -> str | None:
        """Return why it must be dropped now, or None. Called regularly: it also records what the client has read.

        The reason is empty for a connection that sent nothing, which is normal: a browser that connects ahead, a probe.
        """
        unsent, taken = _count_bytes(self._transport) if self._transport is not None else (0, 0)
        if not unsent or unsent < self._unsent or taken > self._taken:
            self._read = now
        self._unsent, self._taken = unsent, taken
        if now > self._read + self._limits.stall:
            return "it does not read its answer"
        if not self._requests and now > self._deadline:
            said = self._received and not self._lingers
            return f"it did not complete a request in {self._limits.head:g} seconds" if said else ""
        return None

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    def secure(self, client: socket.socket, peer: str, context: ssl.SSLContext) -> None:
        """Accept a client that has yet to agree on TLS: it has its place, and its deadline, from now on."""
        self.peer = peer
        if self._enter():
            self._securing = asyncio.get_running_loop().create_task(self._secure(client, context))
        else:
            client.close()

    async def _secure(self, client: socket.socket, context: ssl.SSLContext) -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.connect_accepted_socket(
                lambda: self, client, ssl=context, ssl_handshake_timeout=self._limits.head
            )
        except OSError:
            self.drop("it does not agree on TLS")
        finally:
            if self._transport is None:
                self._all.leave(self)

    def _enter(self) -> bool:
        self._accepted = self._all.enter(self)
        self._deadline = self._now() + self._limits.head
        if not self._accepted:
            self._all.log.note(self.peer, "too many connections")
        return self._accepted

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept the connection, or close it if there is no room."""
        self._transport = cast("asyncio.Transport", transport)
        if self._securing is None:
            self.peer = str((transport.get_extra_info("peername") or ["unknown"])[0])
            self._enter()
        if self._accepted:
            self._inner.connection_made(cast("asyncio.BaseTransport", _Gathered(self._transport, self.linger)))
        else:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room, and end what the client waited for."""
        self._all.leave(self)
        self._gone = True
        self.notify(self._departure)
        if self._accepted:
            self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass data on, unless there is too much of it before a request is complete, or after one."""
        for start in range(0, len(data), _SLICE):
            if self._transport is None or self._transport.is_closing():
                return
            self._take(data[start : start + _SLICE])

    def _take(self, data: bytes) -> None:
        cycle = getattr(self._inner, "cycle", None)
        answered = cycle is None or cycle.response_complete
        if self._is_too_much(data, answered, behind=cycle is not None and not answered and not cycle.more_body):
            return
        if self._lingers:
            return
        self._inner.data_received(data)
        if not self._requests and self._transport is not None and self._transport.is_closing():
            self._all.log.note(self.peer, "it does not speak HTTP", status=400)

    def _is_too_much(self, data: bytes, answered: bool, *, behind: bool) -> bool:
        """Return whether `data` ends the connection. It comes `behind` a whole request, or is part of one."""
        if answered and not self._requests:
            if not self._received:
                self._deadline = min(self._deadline, self._now() + self._limits.head)
            if self._received > self._allowance:
                self.drop("it sends too much before a request is complete")
                return True
            self._received += len(data)
        self._behind = self._behind + len(data) if behind else 0
        waiting = len(getattr(self._inner, "pipeline", ()))
        if self._behind > self._limits.head_bytes or waiting > self._limits.behind:
            self.drop("it does not wait for its answers")
            return True
        return False

    def eof_received(self) -> bool | None:
        """Pass on that the client will send nothing more."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """Pass on that the client does not read fast enough."""
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the client reads again."""
        self._inner.resume_writing()


def _count_bytes(transport: asyncio.Transport) -> tuple[int, int]:
    """Return how many bytes of a connection wait to be sent or received, and how many the client has received.

    The process alone does not tell whether a client reads: the system takes more only when a third of what the system
    holds is gone, which takes a slow client minutes, and with TLS the transport does not see what waits below it. Not
    every system says more than the process.
    """
    try:
        waiting = transport.get_write_buffer_size()
    except AttributeError:  # with TLS, asyncio's transport has let go of its connection once it was closed twice
        return 0, 0
    client: socket.socket | None = transport.get_extra_info("socket")
    if client is None:  # with TLS it is gone a turn of the event loop before the connection is told
        return waiting, 0
    try:
        held = int.from_bytes(fcntl.ioctl(client.fileno(), termios.TIOCOUTQ, bytes(4)), sys.byteorder)
        told = client.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, _ACKED.stop) if sys.platform == "linux" else b""
    except (OSError, ValueError):
        return waiting, 0
    return waiting + held, int.from_bytes(told[_ACKED], sys.byteorder)


class _Gathered:
    """A transport that sends a head together with its body, which uvicorn writes one after the other.

    A separate write costs the server a system call, and wakes the client for a head without content.
    """

    def __init__(self, transport: asyncio.Transport, linger: Callable[[], bool]) -> None:
        self._transport = transport
        self._linger = linger
        self._closes = False
        self._held = b""
        self._loop = asyncio.get_running_loop()

    def write(self, data: bytes) -> None:
        """Hold a short piece until the next one or the loop's next turn. Send any other piece with what is held."""
        if self._held or len(data) > _SLICE:
            self._send(data)
        else:
            self._held = data
            self._loop.call_soon(self._send)

    def _send(self, data: bytes = b"") -> None:
        held, self._held = self._held, b""
        # Not `writelines`: in Python 3.12.0 to 3.12.8 it has no high-water mark (CVE-2024-12254).
        if (whole := held + data) and not self._transport.is_closing():
            self._transport.write(whole)

    def close(self) -> None:
        """Send what is held, then close, unless the connection lingers."""
        self._send()
        self._closes = True
        if not self._linger():
            self._transport.close()

    def is_closing(self) -> bool:
        """Return whether it was closed, also while the connection lingers: nothing is served on it any more."""
        return self._closes or self._transport.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


class SecureServer:
    """Accepts the connections of a listener, as `asyncio.Server` does, and knows them before TLS is agreed upon."""

    def __init__(self, listener: socket.socket, context: ssl.SSLContext, create: Callable[[], Connection]) -> None:
        self._listener = listener
        self._context = context
        self._create = create
        listener.setblocking(False)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, address = await loop.sock_accept(self._listener)
            except OSError:  # no descriptor is left, or the client has left again
                await asyncio.sleep(_SWEEP)
                continue
            self._create().secure(client, str(address[0]), self._context)
            await asyncio.sleep(0)  # others get their turn, however many clients come

    def close(self) -> None:
        """Accept no more connections."""
        self._accepting.cancel()

    async def wait_closed(self) -> None:
        """Wait until no connection is accepted any more."""
        await asyncio.wait({self._accepting})


class Connections:
    """All connections of a server, by peer and in order of arrival."""

    def __init__(self, limits: Limits, log: RefusalLog) -> None:
        self.limits = limits
        self.log = log
        self._most = min(limits.connections, resource.getrlimit(resource.RLIMIT_NOFILE)[0] // 2)
        self._share = max(self._most // 4, 1)
        self._open: set[Connection] = set()
        self._peers = Counter[str]()
        self._waiting: dict[str, dict[Connection, None]] = {}
        self._callers: dict[Hashable, dict[Connection, None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def protocol(self, base: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.Protocol]:
        """Return uvicorn's protocol class `base` with every connection guarded, as uvicorn calls it."""
        own = _strict(base)

        def create(*, app_state: dict[str, Any], **options: Any) -> asyncio.Protocol:
            return Connection(lambda guard: own(app_state=app_state | {STATE: guard}, **options), self)

        return create

    def enter(self, new: Connection) -> bool:
        """Accept a connection. Return whether there was room, or room could be made."""
        half = self._most // 2
        if self._peers[new.peer] >= half:
            room = self._drop_waiting(new.peer) or self._drop_idle(new.peer) or self._drop_unserved(new.peer)
        elif len(self._open) >= self._most or sum(map(len, self._waiting.values())) >= half:
            crowd = max(self._waiting, key=lambda peer: len(self._waiting[peer]), default="")
            room = self._drop_waiting(crowd) or self._drop_idle() or self._drop_unserved()
        else:
            room = True
        if room:
            self._open.add(new)
            self._sweep_later()
            self._peers[new.peer] += 1
            self._waiting.setdefault(new.peer, {})[new] = None
        return room

    def _drop_waiting(self, peer: str) -> bool:
        """Drop the oldest connection of a peer that waits to be admitted, if there is one."""
        return _drop_oldest(self._waiting.get(peer, ()))

    def _drop_idle(self, peer: str | None = None) -> bool:
        """Drop the oldest idle connection of the caller that has most of them, of those of a peer if it is given."""
        idle = ([each for each in own if each.is_idle and peer in (None, each.peer)] for own in self._callers.values())
        most = max(idle, key=len, default=list[Connection]())
        return _drop_oldest(most)

    def _drop_unserved(self, peer: str | None = None) -> bool:
        """Drop the oldest connection whose request has not arrived, of a caller that has more than its share.

        It may have begun requests on all its idle connections, and they are not counted before they have arrived.
        """
        large = (own for own in self._callers.values() if len(own) > self._share)
        return _drop_oldest(each for own in large for each in own if not each.is_served and peer in (None, each.peer))

    def let_in(self, connection: Connection, caller: Hashable) -> bool:
        """Count a connection as one of its caller, no longer as one that waits.

        Return whether the caller may use it: whether it uses no more than its share at the same time. An unknown one is
        ignored: its client left while it was being admitted.
        """
        if connection not in self._open:
            return True
        _remove(self._waiting, connection.peer, connection)
        _remove(self._callers, connection.caller, connection)
        connection.caller = caller
        own = self._callers.setdefault(caller, {})
        own[connection] = None
        return len(own) <= self._share or sum(not each.is_idle for each in own) <= self._share

    def of(self, caller: Hashable) -> Collection[Connection]:
        """Return the connections of a caller, the one that was used last at the end."""
        return self._callers.get(caller, {}).keys()

    def drop_incomplete(self) -> None:
        """Drop what still waits for the rest of a request: the server is about to end."""
        for connection in [each for each in self._open if each.awaits_body]:
            connection.drop("the server stops before its request is complete")

    def leave(self, connection: Connection) -> None:
        """Remove a connection. An unknown one is ignored."""
        if connection not in self._open:
            return
        self._open.discard(connection)
        _remove(self._waiting, connection.peer, connection)
        _remove(self._callers, connection.caller, connection)
        self._peers[connection.peer] -= 1
        if not self._peers[connection.peer]:
            del self._peers[connection.peer]

    def _sweep_later(self) -> None:
        if self._open and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(_SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._timer = None
        self._sweep_later()  # first: whatever goes wrong with one connection, no other's deadline ends with it
        now = asyncio.get_running_loop().time()
        for connection in list(self._open):
            if (reason := connection.overdue(now)) is not None:
                connection.drop(reason)


def _drop_oldest(connections: Iterable[Connection]) -> bool:
    """Drop the first of some connections. Return whether there was one."""
    oldest = next(iter(connections), None)
    if oldest is not None:
        oldest.drop("it makes room for new connections")
    return oldest is not None


def _remove(groups: dict[K, dict[Connection, None]], key: K, connection: Connection) -> None:
    """Remove a connection from its group, and the group when it is empty."""
    group = groups.get(key, {})
    group.pop(connection, None)
    if not group:
        groups.pop(key, None)


def _strict(base: Callable[..., asyncio.Protocol]) -> Callable[..., asyncio.Protocol]:
    """Return uvicorn's protocol class `base`, except that it refuses requests to a proxy and ignores trailers.

    A target such as `http://host/mcp` names a host of its own, which the checks of `Host` would not see. httptools
    removes it from the path; for h11 it is the path, which does not exist.

    Fields that follow a chunked body are no headers: proxies pass them on and check only the head. httptools reports
    both in the same way, and uvicorn would add them to the head; h11 keeps them apart.
    """
    if getattr(base, "on_url", None) is None:
        return base
    parent: Any = base

    def on_message_begin(self: Any) -> None:
        self.head_is_complete = False
        parent.on_message_begin(self)

    def on_url(self: Any, url: bytes) -> None:
        if not self.url and url[:1] not in (b"/", b"*"):
            raise ValueError("a target that names a host")
        parent.on_url(self, url)

    def on_header(self: Any, name: bytes, value: bytes) -> None:
        if not self.head_is_complete:
            parent.on_header(self, name, value)

    def on_headers_complete(self: Any) -> None:
        self.head_is_complete = True
        parent.on_headers_complete(self)

    callbacks = (on_message_begin, on_url, on_header, on_headers_complete)
    bases = (cast("type[asyncio.Protocol]", base),)
    return type("StrictProtocol", bases, {callback.__name__: callback for callback in callbacks})
