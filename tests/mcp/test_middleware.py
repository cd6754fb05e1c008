"""The entrance of the HTTP face, spoken to in bytes: what is refused or dropped, and who is answered meanwhile."""

import asyncio
import json
import random
import re
import signal
import socket
import ssl
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, ExitStack, nullcontext, suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme
from certificates import certify, trusting
from dragoman.mcp.connections import Connection, Connections, Limits
from dragoman.mcp.identity import PRINCIPAL
from dragoman.mcp.middleware import _ONCE, BEGINNINGS, LARGE, MAX_BODIES, MAX_BODY, AccessMiddleware
from dragoman.mcp.origins import Origins
from dragoman.mcp.refusals import RefusalLog, Refused
from dragoman.model import Principal
from starlette.datastructures import Headers
from starlette.responses import Response

TOKEN = "a-token-nobody-guesses"
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "echo", "arguments": {}}}
BODY = json.dumps(CALL).encode()
PATIENCE = 60.0
STATUS = re.compile(rb"HTTP/1\.\d (\d+)")

# Short enough to wait for, long enough for a good client on a busy machine.
HASTY = {"head": 1.0, "body": 1.0, "stall": 1.0}


def head(**changes: str | None) -> bytes:
    """Return the head of a good call, with headers changed or, when None, left out."""
    headers: dict[str, str | None] = {
        "host": "localhost",
        "authorization": f"Bearer {TOKEN}",
        "accept": "application/json, text/event-stream",
        "content-type": "application/json",
        "mcp-protocol-version": "2025-11-25",
        "content-length": str(len(BODY)),
    }
    headers |= {name.replace("_", "-"): value for name, value in changes.items()}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join(["POST /mcp HTTP/1.1", *lines, "", ""]).encode()


GOOD = head() + BODY
WAITS = json.dumps({**CALL, "params": {"name": "wait", "arguments": {}}}).encode()
ANONYMOUS = head(authorization=None)


class Client:
    """A connection that sends bytes as they are."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def aclose(self) -> None:
        self.writer.transport.abort()
        with suppress(ConnectionError):
            await self.writer.wait_closed()

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def status(self) -> int:
        """Return the status of the next answer; its body is read too."""
        async with asyncio.timeout(PATIENCE):
            answer = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
            if length := re.search(r"content-length: (\d+)", answer):
                await self.reader.readexactly(int(length[1]))
            elif "chunked" in answer:
                await self.reader.readuntil(b"\r\n0\r\n\r\n")
        return int(answer.split()[1])

    async def rest(self) -> bytes:
        """Return everything until the server closes the connection."""
        try:
            return await asyncio.wait_for(self.reader.read(), PATIENCE)
        except ConnectionError:
            return b""


class Clients(AsyncExitStack):
    """Connections to one server; closed together."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.url = url
        self._address = url.partition("://")[2].split(":")
        self._tls = tls

    async def connect(self, holds: int | None = None) -> Client:
        """Connect, as a client whose system holds so many bytes at most that it has not read."""
        client = socket.socket()
        if holds:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, holds)
        client.setblocking(False)
        host, port = self._address
        await asyncio.get_running_loop().sock_connect(client, (host, int(port)))
        name = host if self._tls else None
        reader, writer = await asyncio.open_connection(sock=client, ssl=self._tls, server_hostname=name)
        client = Client(reader, writer)
        self.push_async_callback(client.aclose)
        return client

    async def answers(self) -> None:
        """Assert that a good client, who comes now, is answered."""
        client = await self.connect()
        await client.send(GOOD)
        assert await client.status() == 200


@pytest.fixture(scope="module")
async def server(anyio_backend: str, serve_standin: Any) -> AsyncIterator[Any]:
    async with serve_standin(TOKEN, **HASTY) as served:
        yield served


@pytest.fixture
async def clients(server: Any) -> AsyncIterator[Clients]:
    async with Clients(server[1]) as clients:
        yield clients


@pytest.fixture
def log(server: Any) -> Any:
    return server[0]


HALVES = {
    "nothing at all": b"",
    "half a request line": b"POST /mc",
    "half of the headers": ANONYMOUS[:-20],
    "all headers and no end": ANONYMOUS[:-2],
    "a head without a token": ANONYMOUS,
    "a head with a wrong token": head(authorization="Bearer wrong"),
    "a head with the token and no body": head(),
    "half a body": GOOD[:-10],
    "a refused body that never ends": head(authorization=None, content_length="1000000"),
    "a chunked body that never ends": head(content_length=None, transfer_encoding="chunked") + b"1\r\n{\r\n",
}


@pytest.mark.parametrize("half", HALVES)
async def test_half_a_request_is_dropped_and_others_are_answered_meanwhile(clients: Clients, half: str) -> None:
    crowd = [await clients.connect() for _ in range(100)]
    for client in crowd:
        await client.send(HALVES[half])
    await clients.answers()
    await asyncio.gather(*(client.rest() for client in crowd))
    await clients.answers()


@pytest.mark.parametrize("sent", ["headers", "body", "refused body"])
async def test_a_byte_now_and_then_does_not_keep_a_connection(clients: Clients, sent: str) -> None:
    first = {"headers": b"POST /mcp HTTP/1.1\r\nx: ", "body": head(content_length="1000"), "refused body": ANONYMOUS}
    client = await clients.connect()
    await client.send(first[sent])
    closed = asyncio.create_task(client.rest())
    while not closed.done():
        client.writer.write(b"x")
        await asyncio.wait({closed}, timeout=0.1)
    assert not re.search(b" 2\\d\\d ", closed.result().partition(b"\r\n")[0])


async def test_a_connection_that_stays_silent_is_closed_without_a_word(serve_standin: Any) -> None:
    async with serve_standin(TOKEN, head=1, idle=1) as (peer, url), Clients(url) as clients:
        silent, refused, half = [await clients.connect() for _ in range(3)]
        await refused.send(ANONYMOUS + BODY)
        await half.send(HALVES["half of the headers"])
        await asyncio.gather(*(client.rest() for client in (silent, refused, half)))
        await peer.logged("did not complete a request")
        await clients.answers()
    assert len([line for line in peer.log if line.startswith("refused")]) == 2


async def test_the_oldest_that_say_nothing_make_room_for_new_clients(serve_standin: Any) -> None:
    async with serve_standin(TOKEN, connections=40) as (peer, url), Clients(url) as clients:
        good = await clients.connect()
        await good.send(GOOD)
        assert await good.status() == 200
        crowd = [await clients.connect() for _ in range(200)]
        await clients.answers()
        await peer.logged("makes room")
        await asyncio.gather(*(client.rest() for client in crowd[:100]))
        await good.send(GOOD)
        assert await good.status() == 200, "a client that was let in stays"


async def test_a_caller_uses_a_quarter_of_the_connections_at_once(serve_standin: Any) -> None:
    """If it uses more, it is told to end some. Its idle ones do not count."""
    async with serve_standin(TOKEN, connections=40) as (peer, url), Clients(url) as clients:
        await rest(clients, 9)
        for _ in range(10):
            client = await clients.connect()
            await client.send(head(content_length=str(len(WAITS))) + WAITS)
            await peer.logged("waiting")
        late = await clients.connect()
        await late.send(GOOD)
        assert await late.status() == 429
        assert await late.rest() == b""


async def test_idle_connections_make_room_only_where_there_is_no_other(serve_standin: Any) -> None:
    """A proxy that keeps connections may be about to send the request of another caller on any of them."""
    async with serve_standin(TOKEN, connections=40) as (peer, url), Clients(url) as clients:
        idle = await rest(clients, 20)  # all that one address may have
        for client in idle:
            await client.send(GOOD)
            assert await client.status() == 200
        await rest(clients, 2)
        assert [await client.rest() for client in idle[:2]] == [b"", b""]
        await peer.logged("makes room for new connections")
        await idle[2].send(GOOD)
        assert await idle[2].status() == 200


@pytest.mark.parametrize("half", ["half of the headers", "a head with the token and no body", "half a body"])
async def test_requests_that_do_not_end_on_admitted_connections_keep_nobody_out(serve_standin: Any, half: str) -> None:
    async with serve_standin(TOKEN, connections=40) as (peer, url), Clients(url) as clients:
        idle = await rest(clients, 20)  # all that one address may have
        for client in idle:
            await client.send(HALVES[half])
        new = await clients.connect()
        await new.send(GOOD)
        assert await new.status() == 429, "it is heard, and told that its caller uses too many"
        await peer.logged("makes room for new connections")


async def rest(clients: Clients, number: int) -> list[Any]:
    """Return so many new connections of one caller, each answered and now idle."""
    idle = []
    for _ in range(number):
        idle.append(await clients.connect())
        await idle[-1].send(GOOD)
        assert await idle[-1].status() == 200
    return idle


UNFINISHED = {
    "a length": head(content_length="100") + b"{",
    "chunks": head(content_length=None, transfer_encoding="chunked") + b"1\r\n{\r\n",
    "an expectation": head(content_length="100", expect="100-continue"),
}


@pytest.mark.parametrize("begun", UNFINISHED)
async def test_a_request_that_is_not_complete_does_not_delay_the_end(serve_standin: Any, begun: str) -> None:
    async with serve_standin(TOKEN) as (peer, url), Clients(url) as clients:
        for sent in (UNFINISHED[begun], GOOD):
            client = await clients.connect()
            await client.send(sent)
        assert await client.status() == 200
        peer.process.send_signal(signal.SIGTERM)
        assert await peer.ended(30) == 0
    assert [line for line in peer.log if "the server stops before its request is complete" in line]
    assert not [line for line in peer.log if "Traceback" in line]


async def test_a_caller_whose_bodies_never_end_keeps_nobody_out() -> None:
    """Whether it holds a few large bodies back or many small ones, others are served, and so is it afterwards."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await Response("served")(scope, receive, send)

    async def named(scope: Any) -> Principal:
        return Principal(Headers(scope=scope)["x-name"])

    door = before(app, named)
    leaving = asyncio.Event()

    async def status(name: str, size: int, *, ends: bool) -> int:
        """Return the status that a body of `size` bytes gets; 0 if it never ended, and the client left."""
        messages = [{"type": "http.request", "body": bytes(size), "more_body": not ends}]
        told: list[int] = []

        async def receive() -> Any:
            if not messages:
                await leaving.wait()
            return messages.pop() if messages else {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            told.append(message.get("status", 0))

        headers = [(b"host", b"localhost"), (b"content-length", str(size + (not ends)).encode())]
        scope = {"type": "http", "method": "POST", "path": "/mcp", "http_version": "1.1"}
        await door({**scope, "headers": [*headers, (b"x-name", name.encode())]}, receive, send)
        return told[0] if told else 0

    for size in (MAX_BODY - 1, MAX_BODY // 8):
        leaving.clear()
        waiting = {asyncio.create_task(status("eve", size, ends=False)) for _ in range(MAX_BODIES // size + 8)}
        refused, held = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        assert {each.result() for each in refused} == {429}
        assert await status("ann", MAX_BODY, ends=True) == 200
        leaving.set()
        assert set(await asyncio.gather(*held)) <= {0, 429}
        assert await status("eve", MAX_BODY, ends=True) == 200


class Loop:
    """The turn in which the event loop is, while `count` runs."""

    turn = 0

    async def count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.turn += 1


async def test_large_bodies_go_on_one_in_each_turn_of_the_event_loop() -> None:
    """So between two of them everybody else has a turn, however many one caller sends at once."""
    turns = list[int]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        turns.append(loop.turn)
        await Response("served")(scope, receive, send)

    door, loop = before(app, anyone), Loop()
    counting = asyncio.create_task(loop.count())
    await asyncio.gather(*(post(door, LARGE + 1) for _ in range(20)))
    counting.cancel()
    assert len(set(turns)) == 20


async def test_a_caller_with_many_connections_makes_nobody_wait() -> None:
    """A call takes several turns of the event loop, and a turn in which 250 requests begin is long."""
    began = list[tuple[int, str]]()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        began.append((loop.turn, scope[PRINCIPAL].name))
        for _ in range(5):
            await asyncio.sleep(0)
        await Response("served")(scope, receive, send)

    async def named(scope: Any) -> Principal:
        return Principal(Headers(scope=scope).get("x-name", "eve"))

    door, loop = before(app, named), Loop()
    counting = asyncio.create_task(loop.count())
    flood = [asyncio.create_task(post(door, 10)) for _ in range(250)]
    await asyncio.sleep(0)
    await asyncio.gather(*flood, post(door, 10, (b"x-name", b"ann")))
    counting.cancel()
    turns = Counter(turn for turn, _ in began)
    assert max(turns.values()) <= BEGINNINGS
    assert [name for _, name in began].index("ann") <= 3 * BEGINNINGS


def before(app: Any, authenticate: Any) -> AccessMiddleware:
    """Return the middleware before an application that takes messages at /mcp."""
    return AccessMiddleware(
        app,
        closed={"/mcp": ("POST",)},
        open={},
        origins=Origins("127.0.0.1", (), ()),
        authenticate=authenticate,
        limits=Limits(),
        log=RefusalLog(),
    )


async def anyone(scope: Any) -> Principal:
    return Principal("anyone")


async def post(app: Any, size: int, *more: tuple[bytes, bytes]) -> None:
    """Send a body of `size` bytes, all of it at once, with `more` headers."""
    messages = [{"type": "http.request", "body": bytes(size), "more_body": False}]

    async def receive() -> Any:
        return messages.pop()

    async def send(message: Any) -> None:
        pass

    headers = [(b"host", b"localhost"), (b"content-length", str(size).encode()), *more]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "http_version": "1.1", "headers": headers}
    await app(scope, receive, send)


def connection_to(connections: Connections, peer: str) -> Connection:
    made = Connection(lambda _: asyncio.Protocol(), connections)
    made.peer = peer
    return made


@pytest.mark.parametrize("seed", range(20))
async def test_no_caller_keeps_another_out(seed: int) -> None:
    """However callers come, leave and change on a proxy's connections, each uses its share, and loses none in use."""
    chance, connections = random.Random(seed), Connections(Limits(connections=40), RefusalLog())
    users: dict[Connection, str] = {}
    using: dict[Connection, ExitStack] = {}
    for _ in range(600):
        connection = chance.choice([connection_to(connections, chance.choice("xyz")), *users])
        if connection in using:
            using.pop(connection).close()
            if chance.random() < 0.5:
                connections.leave(connection)
                del users[connection]
        elif connection in users or enters(connections, connection, users, using):
            caller = chance.choice("aaab")
            using.setdefault(connection, ExitStack()).enter_context(connection.serving())
            room = connections.let_in(connection, caller)
            users[connection] = caller
            assert room == (sum(users[each] == caller for each in using) <= 10)
            if not room:
                using.pop(connection).close()
        assert {each for caller in "ab" for each in connections.of(caller)} == users.keys()
    for connection in users:
        connections.leave(connection)
    assert not any(connections.of(caller) for caller in "ab")


def enters(
    connections: Connections, new: Connection, users: dict[Connection, str], using: Collection[Connection]
) -> bool:
    """Let a connection enter, and check that it needed and found room. `users`: without what was dropped for it."""
    crowded = sum(each.peer == new.peer for each in users) == 20
    full = crowded or len(users) == 40
    idle = {each for each in users if each not in using and (not crowded or each.peer == new.peer)}
    entered = connections.enter(new)
    dropped = users.keys() - {each for caller in "ab" for each in connections.of(caller)}
    assert dropped <= idle, "none in use, and where one address has too many, none of another"
    assert (entered, len(dropped)) == ((True, 0) if not full else (bool(idle), min(len(idle), 1)))
    for each in dropped:
        del users[each]
    return entered


async def test_a_client_that_left_before_it_was_let_in_is_no_connection_of_its_caller() -> None:
    """It may leave while its token is checked."""
    connections = Connections(Limits(connections=40), RefusalLog())
    for _ in range(20):
        connection = connection_to(connections, "x")
        assert connections.enter(connection)
        connections.leave(connection)
        assert connections.let_in(connection, "ann")
    assert not connections.of("ann")


class Ending(asyncio.Transport):
    """A connection that has no socket any more, and is yet to be told of its end. `dropped`: set once it is dropped."""

    def __init__(self) -> None:
        super().__init__()
        self.dropped = asyncio.Event()

    def get_write_buffer_size(self) -> int:
        return 0

    def abort(self) -> None:
        self.dropped.set()


async def test_a_connection_that_is_ending_keeps_no_other_beyond_its_deadline() -> None:
    """With TLS there is no socket any more one turn of the event loop before the connection is told."""
    connections = Connections(Limits(head=0.1), RefusalLog())
    transports = [Ending(), Ending()]
    for transport in transports:
        Connection(lambda _: asyncio.Protocol(), connections).connection_made(transport)
    async with asyncio.timeout(30):
        for transport in transports:
            await transport.dropped.wait()


@pytest.fixture(params=["plain", "secure"])
def tls(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path | None, ssl.SSLContext | None]:
    """The folder of a server's certificate, and what a client needs to trust it; None for a server without TLS."""
    if request.param == "plain":
        return None, None
    authority = trustme.CA()
    certify(tmp_path, authority)
    return tmp_path / "tls", trusting(authority)


async def ask_much(clients: Clients, *, holds: int | None = None, reads: bool = True, **changes: str) -> Client:
    """Return a client that has asked for 30 MB, and whose system holds so many of them at most."""
    call = {**CALL, "params": {"name": "big", "arguments": {"bytes": 30_000_000}}}
    body = json.dumps(call).encode()
    client = await clients.connect(holds)
    if not reads:
        client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
    await client.send(head(content_length=str(len(body)), **changes) + body)
    return client


async def test_a_client_that_does_not_read_is_dropped(serve_standin: Any, tls: Any) -> None:
    folder, context = tls
    async with serve_standin(folder=folder, stall=1) as (peer, url), Clients(url, context) as clients:
        await ask_much(clients, reads=False)
        await peer.logged("does not read its answer")
        await clients.answers()


SMALL = {
    "a word at the root": b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a sign of life": b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n",
    "a call without a token": ANONYMOUS + BODY,
    "a call": GOOD,
    "the beginning of a head that never ends": b"x: y\r\n",
    "the beginning of a body that never ends": head(content_length=None, transfer_encoding="chunked") + b"1\r\n{\r\n",
}


async def _flood(client: Client, small: bytes) -> None:
    """Send 40 MB of it: what the sockets hold is less."""
    async with asyncio.timeout(PATIENCE):
        for _ in range(200):
            await client.send(small * (200_000 // len(small)))


@pytest.mark.parametrize("sent", SMALL)
async def test_a_client_that_sends_requests_and_reads_no_answer_is_dropped(serve_standin: Any, sent: str) -> None:
    async with serve_standin(TOKEN, **HASTY) as (peer, url), Clients(url) as clients:
        client = await clients.connect()
        client.writer.transport.pause_reading()  # pyright: ignore[reportAttributeAccessIssue]
        await client.send(GOOD)
        with pytest.raises(ConnectionError):
            await _flood(client, SMALL[sent])
        await clients.answers()
    assert not [line for line in peer.log if "Traceback" in line]


async def test_a_few_requests_sent_at_once_are_answered(clients: Clients) -> None:
    client = await clients.connect()
    await client.send(GOOD * 10)
    assert [await client.status() for _ in range(10)] == [200] * 10


async def test_a_body_of_many_slices_is_no_head(clients: Clients) -> None:
    client = await clients.connect()
    body = BODY + b" " * 900_000
    await client.send(head(content_length=str(len(body))) + body)
    assert await client.status() == 200


async def test_a_head_of_many_short_lines_is_bounded(clients: Clients) -> None:
    client = await clients.connect()
    with suppress(ConnectionError):
        await client.send(GOOD.replace(b"\r\n\r\n", b"\r\n" + b"x: y\r\n" * 20_000 + b"\r\n"))
    assert b" 200 " not in await client.rest()


async def test_a_client_that_reads_slowly_gets_its_answer(serve_standin: Any, tls: Any) -> None:
    folder, context = tls
    async with serve_standin(folder=folder, stall=2) as (_, url), Clients(url, context) as clients:
        client = await ask_much(clients, holds=65_536, connection="close")
        received = 0
        while chunk := await client.reader.read(1_000_000):
            received += len(chunk)
            await asyncio.sleep(0.015)  # longer than `stall` in all
        assert received > 30_000_000


async def test_a_client_that_reads_much_less_than_the_system_holds_gets_its_answer(
    serve_standin: Any, tls: Any
) -> None:
    """At this pace the system takes more from the server only every few seconds."""
    folder, context = tls
    async with serve_standin(folder=folder, stall=2) as (_, url), Clients(url, context) as clients:
        client = await ask_much(clients, holds=65_536, connection="close")
        received = 0
        for _ in range(80):
            received += len(await client.reader.readexactly(25_000))
            await asyncio.sleep(0.1)
        assert received + len(await client.rest()) > 30_000_000


@pytest.mark.parametrize(
    ("name", "changes", "status"),
    [
        ("no host", {"host": None}, 400),
        ("an empty host", {"host": ""}, 421),
        ("another host", {"host": "evil.example"}, 421),
        ("a host with our name in it", {"host": "localhost.evil.example"}, 421),
        ("a host that ends in ours", {"host": "evil-localhost"}, 421),
        ("a port that is none", {"host": "localhost:evil.example"}, 421),
        ("a user before the host", {"host": "localhost@evil.example"}, 421),
        ("a port and a user", {"host": "localhost:80@evil.example"}, 421),
        ("two hosts in one", {"host": "localhost, evil.example"}, 421),
        ("a dot after it", {"host": "localhost."}, 421),
        ("another loopback address", {"host": "127.0.0.2"}, 421),
        ("a number for the address", {"host": "2130706433"}, 421),
        ("any address", {"host": "0.0.0.0"}, 421),
        ("capitals", {"host": "LocalHost:9"}, 200),
        ("IPv6", {"host": "[::1]:9"}, 200),
        ("a configured host", {"host": "gw.example:1"}, 200),
        ("a configured host and port", {"host": "other.example:8443"}, 200),
        ("a configured host, another port", {"host": "other.example:8444"}, 421),
        ("an origin elsewhere", {"origin": "http://evil.example"}, 403),
        ("an origin like ours", {"origin": "http://localhost.evil.example"}, 403),
        ("an origin with a user", {"origin": "http://localhost@evil.example"}, 403),
        ("an origin of another kind", {"origin": "file://localhost"}, 403),
        ("a null origin", {"origin": "null"}, 403),
        ("an empty origin", {"origin": ""}, 403),
        ("a local origin", {"origin": "http://localhost:3000"}, 200),
        ("a configured origin", {"origin": "https://app.example"}, 200),
        ("a configured origin, plain", {"origin": "http://app.example"}, 403),
        ("a configured origin, another port", {"origin": "https://app.example:444"}, 403),
        ("no token", {"authorization": None}, 401),
        ("a body too large", {"content_length": str(2**40)}, 413),
    ],
)
async def test_a_request_is_judged_by_its_head(
    clients: Clients, name: str, changes: dict[str, str | None], status: int
) -> None:
    client = await clients.connect()
    await client.send(head(**changes) + BODY)
    assert await client.status() == status, name


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/mcp", "/nothing", "/health/", "//", "/%2e"])
async def test_host_and_origin_are_checked_on_every_path(server: Any, path: str) -> None:
    async with httpx2.AsyncClient(base_url=server[1]) as client:
        assert (await client.get(path, headers={"host": "evil.example"})).status_code == 421
        response = await client.get(path, headers={"origin": "http://evil.example"})
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("path", "statuses"),
    [
        ("/", {"GET": 200, "HEAD": 200, "POST": 405, "DELETE": 405}),
        ("/health", {"GET": 200, "HEAD": 200, "POST": 405}),
        ("/ready", {"GET": 200, "HEAD": 200, "PUT": 405}),
        ("/mcp", {"GET": 405, "POST": 401, "OPTIONS": 405, "TRACE": 405}),
        ("/mcp/", {"GET": 405, "POST": 401}),
        ("/MCP", {"POST": 404}),
        ("/mcp/../mcp", {"POST": 404}),
        ("/mcp%2f", {"POST": 401}),
        ("/docs", {"GET": 404}),
        ("/.well-known/oauth-protected-resource", {"GET": 404}),
        ("*", {"OPTIONS": 404}),
    ],
)
async def test_paths_and_methods_are_those_there_are(clients: Clients, path: str, statuses: dict[str, int]) -> None:
    for method, status in statuses.items():
        client = await clients.connect()
        await client.send(f"{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".encode())
        assert (await client.rest()).split()[1] == str(status).encode(), method


async def test_the_first_page_says_what_this_is_and_how_to_connect(server: Any) -> None:
    async with httpx2.AsyncClient() as client:
        page = (await client.get(server[1])).text
    assert "Model Context Protocol" in page
    assert f"{server[1]}/mcp" in page
    assert "Bearer" in page


async def test_readiness_names_databases_only_to_those_who_are_known(server: Any) -> None:
    async with httpx2.AsyncClient(base_url=server[1]) as client:
        assert (await client.get("/ready")).json() == {"status": "ready"}
        wrong = await client.get("/ready", headers={"authorization": "Bearer wrong"})
        assert wrong.json() == {"status": "ready"}
        known = await client.get("/ready", headers={"authorization": f"Bearer {TOKEN}"})
        assert known.json() == {"status": "ready", "databases": {}}


SMUGGLED = b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
AMBIGUOUS = {
    "both lengths": head(transfer_encoding="chunked") + b"0\r\n\r\n" + SMUGGLED,
    "both lengths, the other way": head(content_length="4", transfer_encoding="chunked") + b"5c\r\n" + SMUGGLED,
    "two lengths": head(content_length="0\r\ncontent-length: 100") + SMUGGLED,
    "two lengths in one": head(content_length="0, 100") + SMUGGLED,
    "a length with a sign": head(content_length="+0") + SMUGGLED,
    "a negative length": head(content_length="-1") + SMUGGLED,
    "a hexadecimal length": head(content_length="0x10") + SMUGGLED,
    "another coding": head(content_length=None, transfer_encoding="xchunked") + b"0\r\n\r\n" + SMUGGLED,
    "two codings": head(content_length=None, transfer_encoding="gzip, chunked") + b"0\r\n\r\n" + SMUGGLED,
    "a coding with a tab": head(content_length="4", transfer_encoding="\tchunked") + b"0\r\n\r\n" + SMUGGLED,
    "a coding under a bad name": head(content_length="4", **{"transfer-encoding ": "chunked"}) + SMUGGLED,
    "a folded header": head(content_length="4", transfer_encoding="\r\n chunked") + b"0\r\n\r\n" + SMUGGLED,
    "a chunk of a wrong size": head(content_length=None, transfer_encoding="chunked")
    + b"-1\r\n{\r\n0\r\n\r\n"
    + SMUGGLED,
    "a chunk with more than it says": head(content_length=None, transfer_encoding="chunked") + b"1\r\n{}\r\n0\r\n\r\n",
    "a coding in HTTP/1.0": head(content_length=None, transfer_encoding="chunked", connection="keep-alive").replace(
        b"HTTP/1.1", b"HTTP/1.0"
    )
    + b"%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY),
    "a target on another host": GOOD.replace(b" /mcp ", b" http://evil.example/mcp "),
    "a target on this host": GOOD.replace(b" /mcp ", b" http://localhost/mcp "),
    "a target without a path": GOOD.replace(b" /mcp ", b" localhost/mcp "),
    "two hosts": head(host="localhost\r\nhost: evil.example") + BODY,
    "two tokens": head(authorization=f"Bearer {TOKEN}\r\nauthorization: Bearer wrong") + BODY,
    "two versions": head(mcp_protocol_version="2025-11-25\r\nmcp-protocol-version: 2026-07-28") + BODY,
    "a NUL in a header": head(x="a\0b") + BODY,
    "another protocol": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(100),
    "SSH": b"SSH-2.0-OpenSSH_9.6\r\n",
}


@pytest.mark.parametrize("shape", AMBIGUOUS)
async def test_what_can_be_read_in_two_ways_is_refused_and_ends_the_connection(clients: Clients, shape: str) -> None:
    client = await clients.connect()
    await client.send(AMBIGUOUS[shape])
    assert STATUS.findall(await client.rest()) in ([b"400"], [b"501"], [])
    await clients.answers()


TRAILING = {
    "authorization": f"Bearer {TOKEN}",
    "host": "localhost",
    "origin": "https://evil.example",
    "x-forwarded-user": "ada",
    "x-forwarded-groups": "admins",
    "expect": "100-continue",
    **dict.fromkeys(("content-type", "mcp-session-id", "mcp-protocol-version", "mcp-method", "mcp-name"), "x"),
}


def trailed(field: str, **changes: str | None) -> bytes:
    """Return a good call whose body comes in chunks, with a field after the last one."""
    chunks = b"%x\r\n%b\r\n0\r\n" % (len(BODY), BODY)
    return head(content_length=None, transfer_encoding="chunked", **changes) + chunks + field.encode() + b"\r\n"


def test_every_header_that_counts_is_tried_after_the_body() -> None:
    assert set(TRAILING) >= {name.decode() for name in _ONCE} - {"content-length", "transfer-encoding"}


@pytest.mark.parametrize("name", TRAILING)
async def test_a_field_after_the_body_is_no_header(clients: Clients, name: str) -> None:
    for changes in ({}, {name: None}):
        statuses: list[int] = []
        for field in ("", f"{name}: {TRAILING[name]}\r\n"):
            client = await clients.connect()
            await client.send(trailed(field, **changes))
            statuses.append(await client.status())
        assert statuses[0] == statuses[1], (changes, statuses)


async def test_the_next_request_of_a_connection_has_headers_again(clients: Clients) -> None:
    client = await clients.connect()
    for sent in (trailed(f"x: {'y' * 9000}\r\n"), GOOD, trailed("", authorization=None), GOOD):
        await client.send(sent)
        assert await client.status() == (401 if sent == trailed("", authorization=None) else 200)


@pytest.mark.parametrize("around", [" {}", "{} ", "\t{}\t ", "00{}"])
async def test_a_length_with_space_around_it_is_a_length(clients: Clients, around: str) -> None:
    client = await clients.connect()
    await client.send(head(content_length=around.format(len(BODY))) + BODY)
    assert await client.status() == 200


UPGRADES = ["h2c", "websocket", "h2c, websocket", "H2C"]
CONNECTIONS = ["upgrade", "Upgrade, HTTP2-Settings", "keep-alive, UPGRADE", "keep-alive\r\nconnection: upgrade"]
INNER = head(connection="close") + BODY
BODIES = {
    "content-length": (str(len(INNER)), INNER),
    "transfer-encoding": ("chunked", b"%x\r\n%b\r\n0\r\n\r\n" % (len(INNER), INNER)),
}


@pytest.mark.parametrize("framing", BODIES)
@pytest.mark.parametrize("connection", CONNECTIONS)
@pytest.mark.parametrize("protocol", UPGRADES)
async def test_a_body_behind_an_upgrade_is_never_a_request(
    clients: Clients, protocol: str, connection: str, framing: str
) -> None:
    size, body = BODIES[framing]
    lengths = {"content_length": None} | {framing: size}
    client = await clients.connect()
    with suppress(ConnectionError):
        await client.send(head(upgrade=protocol, connection=connection, **lengths))
        await asyncio.sleep(0.05)  # the body comes in a packet of its own
        await client.send(body)
    assert STATUS.findall(await client.rest()) == [b"400"]
    await clients.answers()


async def test_an_upgrade_without_a_body_is_ignored(clients: Clients) -> None:
    client = await clients.connect()
    await client.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\nupgrade: h2c\r\nconnection: upgrade\r\n\r\n")
    assert await client.status() == 200
    await client.send(GOOD)
    assert await client.status() == 200


async def test_a_request_that_was_broken_off_reaches_nothing() -> None:
    served: list[Any] = []

    async def app(*scope: Any) -> None:
        served.append(scope)

    messages: list[Any] = [
        {"type": "http.request", "body": b"{", "more_body": True},
        {"type": "http.disconnect"},
    ]
    door = before(app, anyone)
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/mcp",
        "http_version": "1.1",
        "headers": [(b"host", b"localhost"), (b"content-length", b"9")],
    }

    async def receive() -> Any:
        return messages.pop(0)

    async def send(message: Any) -> None:
        served.append(message)

    await door(scope, receive, send)
    assert served == messages == []


@pytest.mark.parametrize("header", ["x: " + "y" * 2_000_000, "\r\n".join(f"x{n}: y" for n in range(200_000))])
async def test_huge_headers_are_refused(clients: Clients, header: str) -> None:
    client = await clients.connect()
    with suppress(ConnectionError):
        await client.send(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\n" + header.encode())
    assert (await client.rest()).split()[1:2] in ([b"400"], [b"431"], [])
    await clients.answers()


async def test_a_call_that_begins_after_its_client_left_is_called_off_at_once() -> None:
    connection = Connection(lambda _: asyncio.Protocol(), Connections(Limits(), RefusalLog()))
    connection.connection_lost(None)
    called_off: list[bool] = []
    connection.notify(lambda: called_off.append(True))
    assert called_off == [True]


@pytest.mark.parametrize("way", ["hot"], indirect=True)  # through the SDK, the first call is not told of it
async def test_a_client_that_leaves_with_requests_unanswered_leaves_no_traceback(serve_standin: Any) -> None:
    waits = json.dumps({**CALL, "params": {"name": "wait", "arguments": {}}}).encode()
    async with serve_standin(TOKEN) as (peer, url), Clients(url) as clients:
        client = await clients.connect()
        await client.send(head(content_length=str(len(waits))) + waits + GOOD)
        await peer.logged("waiting")
        await client.aclose()
        await peer.logged("cancelled")
        await clients.answers()
    assert not [line for line in peer.log if "Traceback" in line or "ASGI" in line]


async def test_an_answer_leaves_in_one_piece(clients: Clients) -> None:
    client = await clients.connect()
    for _ in range(50):
        await client.send(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        head, _, body = (await client.reader.read(100_000)).partition(b"\r\n\r\n")
        assert f"content-length: {len(body)}".encode() in head


async def test_requests_in_one_write_are_answered_in_order(clients: Clients) -> None:
    health = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    client = await clients.connect()
    await client.send(GOOD + health + ANONYMOUS + BODY + head(host="evil.example") + BODY + GOOD)
    assert [await client.status() for _ in range(5)] == [200, 200, 401, 421, 200]


async def test_a_client_that_waits_to_be_told_to_go_on_is_refused_before_its_body(clients: Clients) -> None:
    client = await clients.connect()
    await client.send(head(authorization=None, expect="100-continue"))
    assert await client.status() == 401
    other = await clients.connect()
    await other.send(head(expect="100-continue"))
    assert await other.status() == 100
    await other.send(BODY)
    assert await other.status() == 200


EARLY = {
    "no token": head(authorization=None),
    "another host": head(host="evil.example"),
    "another origin": head(origin="http://evil.example"),
    "no such path": head().replace(b"/mcp", b"/nothing"),
    "no such method": head().replace(b"POST", b"PUT"),
    "an open path": head().replace(b"POST /mcp", b"GET /health"),
    "too large": head(content_length=str(2**40)),
    "told to wait": head(authorization=None, expect="100-continue"),
    "a preflight": head(origin="http://localhost:3000", access_control_request_method="POST").replace(
        b"POST /", b"OPTIONS /"
    ),
}


@pytest.mark.parametrize("framing", ["content-length", "transfer-encoding"])
@pytest.mark.parametrize("early", EARLY)
async def test_nothing_is_a_request_after_an_answer_that_left_before_the_body(
    clients: Clients, early: str, framing: str
) -> None:
    """A proxy that keeps the rest of the body to itself sends the next caller's request on this connection."""
    own = head(content_length=str(len(GOOD)))
    length = b"content-length: %d" % len(own) if framing == "content-length" else b"transfer-encoding: chunked"
    begun = re.sub(rb"content-length: \d{1,3}\b(?!\d)", length, EARLY[early])
    client = await clients.connect()
    await client.send(begun)
    assert 400 <= await client.status() < 500
    with suppress(ConnectionError):
        await client.send(own + GOOD)
    assert STATUS.findall(await client.rest()) == []
    await clients.answers()


@pytest.mark.parametrize("early", EARLY)
async def test_a_client_that_sends_its_body_after_the_answer_can_read_the_answer(clients: Clients, early: str) -> None:
    client = await clients.connect()
    await client.send(re.sub(rb"content-length: \d{1,3}\b(?!\d)", b"content-length: 500000", EARLY[early]))
    for _ in range(10):
        await client.send(bytes(50_000))
        await asyncio.sleep(0.01)
    assert 400 <= await client.status() < 500
    assert await client.rest() == b""


@pytest.mark.parametrize("early", EARLY)
async def test_a_client_that_sends_a_large_body_at_once_can_read_the_answer(clients: Clients, early: str) -> None:
    client = await clients.connect()
    begun = re.sub(rb"content-length: \d{1,3}\b(?!\d)", b"content-length: 7000000", EARLY[early])
    await client.send(begun + bytes(6_900_000))
    assert 400 <= await client.status() < 500
    assert await client.rest() == b""


async def test_a_refusal_of_a_body_that_has_arrived_keeps_the_connection(clients: Clients) -> None:
    client = await clients.connect()
    for _ in range(3):
        await client.send(ANONYMOUS + BODY)
        assert await client.status() == 401
        await client.send(GOOD)
        assert await client.status() == 200


async def test_what_was_sent_behind_a_request_that_ends_its_connection_is_not_served(serve_standin: Any) -> None:
    async with serve_standin(TOKEN, **HASTY) as (peer, url), Clients(url) as clients:
        client = await clients.connect()
        await client.send(EARLY["told to wait"] + BODY + GOOD)
        assert STATUS.findall(await client.rest()) == [b"401"]
        await clients.answers()
    assert not [line for line in peer.log if "Traceback" in line]


async def test_a_refused_client_that_stays_is_let_go(serve_standin: Any, tls: Any) -> None:
    folder, context = tls
    async with serve_standin(TOKEN, folder=folder, **HASTY) as (_, url), Clients(url, context) as clients:
        client = await clients.connect()
        await client.send(ANONYMOUS)
        assert await client.status() == 401
        await client.send(GOOD)
        assert await client.rest() == b""
        await clients.answers()


async def test_each_refusal_is_a_line_with_the_peer_and_the_reason_and_no_secret(serve_standin: Any) -> None:
    refused: dict[str, dict[str, str | None]] = {
        "invalid_token": {"authorization": "Bearer hunter2"},
        "unknown_host": {"host": "evil.example"},
        "unknown_origin": {"origin": "http://evil.example"},
        "too_large": {"content_length": "99999999"},
    }
    async with serve_standin(TOKEN) as (peer, url), Clients(url) as clients:
        for reason, changes in refused.items():
            client = await clients.connect()
            await client.send(head(**changes) + BODY)
            await client.status()
            await peer.logged(f"refused 127.0.0.1: {reason}")
        other = await clients.connect()
        await other.send(b"\x16\x03\x01")
        await peer.logged("refused 127.0.0.1: it does not speak HTTP")
        await clients.answers()
    assert len([line for line in peer.log if line.startswith("refused")]) == 5
    assert not [line for line in peer.log if "hunter2" in line or TOKEN in line]


async def test_a_flood_of_refusals_is_not_a_flood_of_lines(serve_standin: Any) -> None:
    async with serve_standin(TOKEN) as (peer, url), Clients(url) as clients:
        client = await clients.connect()
        for _ in range(500):
            await client.send(ANONYMOUS + BODY)
            assert await client.status() == 401
        assert 0 < len([line for line in peer.log if "invalid_token" in line]) < 400


class TestPagesOfAllowedOrigins:
    ORIGINS = pytest.mark.parametrize(
        "origin", ["https://app.example", "http://localhost:5173", "http://dev.example:3000"]
    )

    @ORIGINS
    async def test_may_ask_before_they_call(self, server: Any, origin: str) -> None:
        asked = {"origin": origin, "access-control-request-method": "POST"}
        asked["access-control-request-headers"] = (
            "authorization, content-type, mcp-protocol-version, x-evil, Mcp-Param-Db"
        )
        async with httpx2.AsyncClient() as client:
            response = await client.options(f"{server[1]}/mcp", headers=asked)
        assert response.status_code == 204
        assert response.headers["access-control-allow-origin"] == origin
        assert "POST" in response.headers["access-control-allow-methods"]
        allowed = response.headers["access-control-allow-headers"]
        assert allowed == "authorization, content-type, mcp-protocol-version, Mcp-Param-Db"
        assert "origin" in response.headers["vary"].lower()

    @ORIGINS
    @pytest.mark.parametrize(("token", "status"), [(TOKEN, 200), ("wrong", 401)])
    async def test_may_read_answers_and_errors(self, server: Any, origin: str, token: str, status: int) -> None:
        headers = {
            "origin": origin,
            "authorization": f"Bearer {token}",
            "accept": "application/json, text/event-stream",
        }
        async with httpx2.AsyncClient() as client:
            response = await client.post(f"{server[1]}/mcp", headers=headers, json=CALL)
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == origin
        exposed = response.headers["access-control-expose-headers"].lower()
        assert {"mcp-session-id", "www-authenticate"} <= set(exposed.split(", "))
        assert "origin" in response.headers["vary"].lower()

    async def test_and_nobody_else_is_told_anything(self, server: Any) -> None:
        asked = {"origin": "https://evil.example", "access-control-request-method": "POST"}
        async with httpx2.AsyncClient() as client:
            refused = await client.options(f"{server[1]}/mcp", headers=asked)
            plain = await client.get(f"{server[1]}/health")
        assert refused.status_code == 403
        assert not [name for name in (*refused.headers, *plain.headers) if name.startswith("access-control")]


@pytest.mark.parametrize(
    ("arrived_at", "host", "allowed"),
    [
        ("10.0.0.5", "10.0.0.5:8080", True),
        ("10.0.0.5", "10.0.0.6:8080", False),
        ("10.0.0.5", "evil.example:8080", False),
        ("fe80::1", "[fe80::1]:8080", True),
        ("fe80::1", "[fe80::2]:8080", False),
    ],
)
def test_the_address_a_connection_came_in_at_is_a_host(arrived_at: str, host: str, allowed: bool) -> None:
    scope = {"type": "http", "server": (arrived_at, 8080)}
    with nullcontext() if allowed else pytest.raises(Refused, match="allowed_hosts"):
        Origins("0.0.0.0", (), ()).check_host(scope, host.encode())
