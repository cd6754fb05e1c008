"""The short way past the SDK says what the SDK says: the same frames and requests through both, compared."""

import asyncio
import inspect
import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from dragoman._version import VERSION
from dragoman.config import Server, wants_hot_path
from dragoman.mcp import handshake as own
from dragoman.mcp import switch
from dragoman.mcp.answers import one_line
from dragoman.mcp.early import Early, answer_early
from dragoman.mcp.gate import Gate
from dragoman.mcp.handshake import HANDSHAKE_VERSIONS, MODERN_VERSION
from dragoman.mcp.http import http_app
from dragoman.mcp.server import accepts, build, handshake, options
from dragoman.mcp.stdio import serve_stdio
from mcp.server import Server as SdkServer
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

LEGACY = "2025-06-18"
ENVELOPE = {
    own.VERSION_KEY: MODERN_VERSION,
    own.CLIENT_KEY: {"name": "test", "version": "1"},
    own.CAPABILITIES_KEY: {},
}
INITIALIZE = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
ERAS = pytest.mark.parametrize("modern", [False, True], ids=["2025", "2026"])


def frame(method: str, params: dict[str, Any] | None = None, request: Any = 1, **more: Any) -> bytes:
    sent = {"jsonrpc": "2.0", "id": request, "method": method, **({} if params is None else {"params": params}), **more}
    return json.dumps(sent).encode()


def call(modern: bool, tool: Any = "echo", request: Any = 1, meta: Any = None, **params: Any) -> bytes:
    """A call of a tool; `meta` is laid over what its era needs, `params` over name and arguments."""
    envelope = {**(ENVELOPE if modern else {}), **(meta or {})}
    sent = {"name": tool, "arguments": {"a": 1}, **({"_meta": envelope} if envelope else {}), **params}
    return frame("tools/call", {key: value for key, value in sent.items() if value is not ...}, request)


def corpus(modern: bool) -> dict[str, bytes]:
    """Frames after the handshake: plain calls, odd ones, and ones that are wrong in every way we know."""
    plain = call(modern)
    nested = {"deep": json.loads("[" * 60 + "]" * 60)}
    brackets = {"sql": "SELECT " + "[(" * 80}
    frames = {
        "a plain call": plain,
        "an error": call(modern, "fail"),
        "a crash": call(modern, "crash"),
        "progress": call(modern, "count", meta={"progressToken": "t"}),
        "progress with a number": call(modern, "count", meta={"progressToken": 7}),
        "progress nobody asked for": call(modern, "count"),
        "only text": call(modern, "big", arguments={"bytes": 10}),
        "an argument missing": call(modern, "big"),
        "no arguments": call(modern, arguments=...),
        "arguments null": call(modern, arguments=None),
        "arguments a list": call(modern, arguments=[1]),
        "arguments a text": call(modern, arguments="x"),
        "an unknown tool": call(modern, "drop"),
        "a tool that is a number": call(modern, 7),
        "no tool": call(modern, ...),
        "more params": call(modern, more=1),
        "task params": call(modern, task={"ttl": 5}),
        "input responses": call(modern, inputResponses={}),
        "no params": frame("tools/call"),
        "params null": frame("tools/call", more=1).replace(b'"more": 1', b'"params": null'),
        "more members": frame("tools/call", json.loads(plain)["params"], more=1),
        "version 1.0": plain.replace(b'"2.0"', b'"1.0"'),
        "no version": plain.replace(b'"jsonrpc": "2.0", ', b""),
        "the method in capitals": plain.replace(b"tools/call", b"TOOLS/CALL"),
        "a key twice": plain.replace(b'{"a": 1}', b'{"a": 1, "a": 2}'),
        "the method twice": plain.replace(b'"method": "tools/call"', b'"method": "ping", "method": "tools/call"'),
        "the name twice": plain.replace(b'"name": "echo"', b'"name": "fail", "name": "echo"'),
        "no id": plain.replace(b'"id": 1, ', b""),
        "broken": plain[:-1],
        "two in a line": plain + plain,
        "a batch": b"[" + plain + b"]",
        "space around": b"  \t" + plain + b" \r",
        "bytes that are no text": plain.replace(b"echo", b"ec\xffho"),
        "no text in the arguments": plain.replace(b'{"a": 1}', b'{"a": "\xff"}'),
        "no text in the envelope": call(modern, meta={"x": "MARK"}).replace(b"MARK", b"\xff"),
        "half a surrogate pair": plain.replace(b'{"a": 1}', b'{"a": "\\ud800"}'),
        "a control character": plain.replace(b'{"a": 1}', b'{"a": "\x01"}'),
        "NaN": plain.replace(b'{"a": 1}', b'{"a": NaN}'),
        "infinity": plain.replace(b'{"a": 1}', b'{"a": 1e999}'),
        "large numbers": plain.replace(b'{"a": 1}', b'{"a": [9007199254740993, 18446744073709551616, 1e308, -0.0]}'),
        "a number of 200 digits": plain.replace(b'{"a": 1}', b'{"a": ' + b"9" * 200 + b"}"),
        "a number of 5000 digits": plain.replace(b'{"a": 1}', b'{"a": ' + b"9" * 5000 + b"}"),
        "nested": call(modern, arguments=nested),
        "nested too deeply": plain.replace(b'{"a": 1}', b'{"a": ' + b"[" * 5000 + b"]" * 5000 + b"}"),
        "many brackets": call(modern, arguments=brackets),
        "another's words": call(modern, arguments={"é": "\u2028\u0000\U0001f600"}),
        "meta null": call(modern, _meta=None),
        "meta a list": call(modern, _meta=[]),
        "meta empty": call(modern, _meta={}),
        "meta of others": call(modern, meta={"example.com/trace": {"a": [1]}}),
        "reserved meta": call(modern, meta={"io.modelcontextprotocol/other": 1}),
        "the other era": call(not modern),
        "half an envelope": call(False, meta={own.VERSION_KEY: MODERN_VERSION}),
        "another version": call(modern, meta={own.VERSION_KEY: "2031-01-01"}),
        "an older version": call(modern, meta={own.VERSION_KEY: LEGACY}),
        "a version that is a number": call(modern, meta={own.VERSION_KEY: 1}),
        "wrong capabilities": call(modern, meta={own.CAPABILITIES_KEY: 1}),
        "capabilities": call(modern, meta={own.CAPABILITIES_KEY: {"elicitation": {"form": {}}, "roots": {}}}),
        "wrong client": call(modern, meta={own.CLIENT_KEY: {"name": 1}}),
        "a client with a title": call(modern, meta={own.CLIENT_KEY: {"name": "a", "version": "1", "title": "b"}}),
        "a log level": call(modern, meta={"io.modelcontextprotocol/logLevel": "debug"}),
        "a cancellation of nothing": json.dumps(
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 99}}
        ).encode(),
        "a late handshake": frame("initialize", INITIALIZE),
        "a ping": frame("ping", {"_meta": ENVELOPE} if modern else None),
        "a list": frame("tools/list", {"_meta": ENVELOPE} if modern else None),
        "a list with a cursor": frame("tools/list", {"cursor": "x", **({"_meta": ENVELOPE} if modern else {})}),
        "a discovery": frame("server/discover", {"_meta": ENVELOPE} if modern else None),
        "another method": frame("prompts/list", {"_meta": ENVELOPE} if modern else None),
        "an answer": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    }  # fmt: skip
    frames |= {f"the token {token!r}": call(modern, "count", meta={"progressToken": token}) for token in TOKENS}
    frames |= {f"the id {request!r}": call(modern, request=request) for request in IDS}
    return frames


TOKENS = (None, True, 1.0, 1.5, "", [], {}, 2**70)
IDS = (0, -1, 2**53, 2**70, 1.0, 1.5, True, None, "", "7", "é", "x" * 2000, [], {})


class Connection:
    """A served stand-in at the other end of two pipes."""

    def __init__(self) -> None:
        self._source, self._write = os.pipe()
        self._read, self._sink = os.pipe()
        self.early = Early(self._source, self._sink)

    def send(self, *frames: bytes) -> None:
        os.write(self._write, b"".join(each + b"\n" for each in frames))

    def close(self) -> None:
        """Tell that nothing more will be sent."""
        os.close(self._write)

    def received(self) -> list[dict[str, Any]]:
        """Return everything that was sent back, after the end."""
        os.close(self._sink)
        os.close(self._source)
        with os.fdopen(self._read, "rb") as read:
            return [json.loads(line) for line in read]


async def served(toolbox: Any, way: str, modern: bool, frames: list[bytes]) -> list[dict[str, Any]]:
    """Return what comes back when a client shakes hands, sends these frames and leaves."""
    connection = Connection()
    opening = (
        [frame("server/discover", {"_meta": ENVELOPE}, "open"), frame("tools/list", {"_meta": ENVELOPE}, "list")]
        if modern
        else [frame("initialize", INITIALIZE, "open"), b'{"jsonrpc":"2.0","method":"notifications/initialized"}']
    )
    if way == "early":
        connection.send(*opening)
        # What is not the handshake's begins the loading, so that it returns.
        connection.send(*frames)
        answer_early(connection.early, handshake(toolbox), lambda: None)
        assert connection.early.version == (MODERN_VERSION if modern else LEGACY)
        connection.close()
        await serve_stdio(toolbox, connection.early, hot=True)
        return ordered(connection.received())
    connection.send(*opening)
    serving = asyncio.create_task(serve_stdio(toolbox, connection.early, hot=way == "hot"))
    await answered(connection, len(opening) if modern else 1)
    connection.send(*frames)
    connection.close()
    await serving
    return ordered(connection.received())


async def answered(connection: Connection, lines: int) -> None:
    """Wait until so many lines came back; they stay to be read."""
    import fcntl
    import termios

    async with asyncio.timeout(30):
        seen = b""
        while seen.count(b"\n") < lines:
            await asyncio.sleep(0.001)
            waiting = int.from_bytes(fcntl.ioctl(connection._read, termios.FIONREAD, b"\0" * 4), sys.byteorder)
            seen = await peeked(connection._read, waiting) if waiting else b""


async def peeked(descriptor: int, size: int) -> bytes:
    """Return what a pipe holds without taking it."""
    import ctypes

    ours, theirs = os.pipe()
    try:
        taken = ctypes.CDLL(None).tee(descriptor, theirs, ctypes.c_size_t(size), 0)
        return os.read(ours, taken)
    finally:
        os.close(ours)
        os.close(theirs)


def ordered(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Sort by request: each is answered in its own time; what belongs to one request keeps its order."""
    return sorted(messages, key=lambda message: json.dumps(message.get("id")))


def unordered(messages: list[dict[str, Any]]) -> list[str]:
    """For requests of one id, which are answered in any order."""
    return sorted(json.dumps(message, sort_keys=True) for message in messages)


@ERAS
@pytest.mark.parametrize("way", ["hot", "early"])
@pytest.mark.parametrize("name", corpus(True))
async def test_a_frame_is_answered_as_the_sdk_answers_it(standin: Any, name: str, way: str, modern: bool) -> None:
    frames = [corpus(modern)[name]]
    assert await served(standin.StandIn(), way, modern, frames) == await served(
        standin.StandIn(), "cold", modern, frames
    )


@ERAS
async def test_plain_calls_do_take_the_short_way(standin: Any, modern: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: Any) -> Any:
        raise AssertionError("the SDK was asked")

    monkeypatch.setattr("dragoman.mcp.server._result", never)
    frames = [call(modern, request=number) for number in range(5)]
    frames.append(call(modern, request=5, meta={"progressToken": 5}))
    frames.append(call(modern, request=6, meta={"example.com/trace": "x"}))
    answers = [each for each in await served(standin.StandIn(), "hot", modern, frames) if isinstance(each["id"], int)]
    assert [each["result"]["structuredContent"]["arguments"] for each in answers] == [{"a": 1}] * 7


@ERAS
async def test_an_id_that_is_in_flight_is_the_sdks_to_judge(standin: Any, modern: bool) -> None:
    frames = [call(modern, "wait", arguments={"seconds": 0.2}), call(modern, "echo")]
    hot, cold = [await served(standin.StandIn(), way, modern, frames) for way in ("hot", "cold")]
    assert unordered(hot) == unordered(cold)


@ERAS
async def test_the_same_early_requests_may_be_sent_again(standin: Any, modern: bool) -> None:
    meta = {"_meta": ENVELOPE} if modern else None
    frames = [frame("tools/list", meta, "list"), frame("tools/list", meta, "list"), call(modern, request="list")]
    early, cold = [await served(standin.StandIn(), way, modern, frames) for way in ("early", "cold")]
    assert unordered(early) == unordered(cold)


async def test_an_early_answer_that_is_not_the_sdks_is_told(standin: Any, caplog: pytest.LogCaptureFixture) -> None:
    connection = Connection()
    connection.send(frame("initialize", INITIALIZE))
    connection.close()
    toolbox = standin.StandIn()
    said = handshake(toolbox)
    said.instructions = "Something else."
    answer_early(connection.early, said, lambda: None)
    connection.early.rest += frame("ping", request=2) + b"\n"
    await serve_stdio(toolbox, connection.early, hot=True)
    assert [message["id"] for message in connection.received()] == [1, 2]
    assert "the early answer to request 1 is not the SDK's" in caplog.text


async def test_tools_that_changed_since_they_were_listed_early_are_told(
    standin: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """Files of saved queries may change between the first answer and the server that reads them."""
    connection = Connection()
    connection.send(frame("initialize", INITIALIZE), b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    connection.send(frame("tools/list", request=2))
    connection.close()
    toolbox = standin.StandIn()
    said = handshake(toolbox)
    said.tools = said.tools[:-1]
    answer_early(connection.early, said, lambda: None)
    connection.early.rest += frame("ping", request=3) + b"\n"
    await serve_stdio(toolbox, connection.early, hot=True)
    received = connection.received()
    assert [message.get("id") for message in received if "id" in message] == [1, 2, 3]
    assert [message["method"] for message in received if "method" in message] == ["notifications/tools/list_changed"]
    assert "not the SDK's" not in caplog.text


@pytest.mark.parametrize("version", [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS])
async def test_the_handshake_is_what_the_sdk_says(standin: Any, version: str) -> None:
    toolbox = standin.StandIn()
    said = handshake(toolbox)
    modern = version in MODERN_PROTOCOL_VERSIONS
    params: Any = {"_meta": ENVELOPE} if modern else None
    methods = ("server/discover", "tools/list") if modern else ("initialize", "ping", "tools/list")
    for method in methods:
        asked = INITIALIZE | {"protocolVersion": version} if method == "initialize" else params
        first = [] if modern or method == "initialize" else [frame("initialize", INITIALIZE, 0)]
        result = (await sdk_says(toolbox, [*first, frame(method, asked, 1)]))["result"]
        assert result == said.result(method, version)


def test_every_version_of_the_protocol_that_the_sdk_knows_was_looked_at() -> None:
    assert HANDSHAKE_PROTOCOL_VERSIONS == HANDSHAKE_VERSIONS
    assert MODERN_PROTOCOL_VERSIONS == (MODERN_VERSION,)


async def sdk_says(toolbox: Any, frames: list[bytes]) -> dict[str, Any]:
    """Return the SDK's answer to the last of these frames."""
    server = build(toolbox)
    to_server, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](9)
    outgoing, from_server = anyio.create_memory_object_stream[SessionMessage](9)
    answers: list[SessionMessage] = []
    async with to_server, from_server, anyio.create_task_group() as group:
        group.start_soon(server.run, incoming, outgoing, options(server))
        for each in frames:
            await to_server.send(SessionMessage(jsonrpc_message_adapter.validate_json(each)))
            answers.append(await from_server.receive())
        group.cancel_scope.cancel()
    return json.loads(answers[-1].message.model_dump_json(by_alias=True, exclude_unset=True))


# HTTP


class Exchange:
    """One request to an ASGI application."""

    def __init__(self, body: bytes, headers: list[tuple[bytes, bytes]], pieces: int = 1) -> None:
        size = -(-len(body) // pieces) or 1
        parts = [body[start : start + size] for start in range(0, len(body), size)] or [b""]
        self._messages = [
            {"type": "http.request", "body": part, "more_body": place < len(parts) - 1}
            for place, part in enumerate(parts)
        ]
        self._gone = asyncio.Event()
        self._scope = {
            "type": "http", "asgi": {"version": "3.0"}, "http_version": "1.1", "method": "POST", "scheme": "http",
            "path": "/mcp", "raw_path": b"/mcp", "root_path": "", "query_string": b"", "headers": headers,
            "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 8080),
        }  # fmt: skip
        self.status = 0
        self.sent = b""
        self.stream = False

    async def through(self, app: Any) -> tuple[int, Any]:
        """Return the status and the messages of the answer, or its text when it holds none."""
        async with asyncio.timeout(30):
            await app(self._scope, self._receive, self._send)
        if not self.stream:
            try:
                return self.status, [json.loads(self.sent)]
            except ValueError:
                return self.status, self.sent
        lines = self.sent.decode().replace("\r\n", "\n").split("\n")
        return self.status, [json.loads(line[6:]) for line in lines if line.startswith("data: ")]

    def leave(self) -> None:
        self._gone.set()

    async def _receive(self) -> dict[str, Any]:
        if self._messages:
            return self._messages.pop(0)
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.stream = dict(message["headers"]).get(b"content-type", b"").startswith(b"text/event-stream")
        else:
            self.sent += message.get("body", b"")


@asynccontextmanager
async def running(toolbox: Any, hot: bool) -> AsyncIterator[Any]:
    """The ASGI application, its lifespan begun."""
    app = http_app(toolbox, Server(transport="http", allowed_hosts=("gw.example",)), hot=hot)
    told: asyncio.Queue[Any] = asyncio.Queue()
    states: asyncio.Queue[Any] = asyncio.Queue()
    life = asyncio.ensure_future(app({"type": "lifespan", "asgi": {"version": "3.0"}}, told.get, states.put))
    await told.put({"type": "lifespan.startup"})
    assert (await states.get())["type"] == "lifespan.startup.complete"
    yield app
    await told.put({"type": "lifespan.shutdown"})
    await life


def headers(modern: bool, body: bytes, tool: str = "echo") -> dict[str, str]:
    given = {
        "host": "127.0.0.1:8080",
        "content-type": "application/json",
        "accept": "application/json, text/event-stream",
        "content-length": str(len(body)),
        "mcp-protocol-version": MODERN_VERSION if modern else LEGACY,
    }
    return given | ({"mcp-method": "tools/call", "mcp-name": tool} if modern else {})


def lines(given: dict[str, str], *more: tuple[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode("latin-1")) for name, value in (*given.items(), *more)]


VARIATIONS: dict[str, dict[str, str | None]] = {
    "the plain ones": {},
    "no protocol version": {"mcp-protocol-version": None},
    **{f"version {version}": {"mcp-protocol-version": version} for version in (*HANDSHAKE_VERSIONS, MODERN_VERSION)},
    "an unknown version": {"mcp-protocol-version": "2031-01-01"},
    "no version at all": {"mcp-protocol-version": ""},
    "another method": {"mcp-method": "tools/list"},
    "another name": {"mcp-name": "fail"},
    "no name": {"mcp-name": None},
    "no method": {"mcp-method": None},
    "an encoded name": {"mcp-name": "=?base64?ZWNobw==?="},
    "a session": {"mcp-session-id": "abc"},
    "a parameter": {"mcp-param-sql": "x"},
    "no host": {"host": None},
    "a foreign host": {"host": "evil.example"},
    "an allowed host": {"host": "gw.example:443"},
    "a host without port": {"host": "localhost"},
    "a host with an odd port": {"host": "localhost:x"},
    "a host in capitals": {"host": "LOCALHOST:8080"},
    "a loopback in brackets": {"host": "[::1]:8080"},
    "an origin": {"origin": "http://localhost:3000"},
    "a foreign origin": {"origin": "http://evil.example"},
    "an empty origin": {"origin": ""},
    "a null origin": {"origin": "null"},
    "a charset": {"content-type": "application/json; charset=utf-8"},
    "another charset": {"content-type": "application/json; charset=utf-16"},
    "a content type in capitals": {"content-type": "Application/JSON"},
    "a longer content type": {"content-type": "application/json-patch"},
    "no content type": {"content-type": None},
    "only JSON accepted": {"accept": "application/json"},
    "only streams accepted": {"accept": "text/event-stream"},
    "anything accepted": {"accept": "*/*"},
    "accepted with weights": {"accept": "text/event-stream;q=0.5 , Application/JSON;q=1"},
    "nothing accepted": {"accept": None},
    "no length": {"content-length": None},
    "a length that is none": {"content-length": "x"},
    "a length beyond the limit": {"content-length": "99999999"},
    "a token": {"authorization": "Bearer x"},
}  # fmt: skip


@pytest.fixture(scope="module")
async def both(anyio_backend: str, standin: Any) -> AsyncIterator[tuple[Any, Any]]:
    async with running(standin.StandIn(), True) as hot, running(standin.StandIn(), False) as cold:
        yield hot, cold


Both = Callable[[bytes, list[tuple[bytes, bytes]]], Awaitable[None]]


@pytest.fixture
def compare(both: tuple[Any, Any]) -> Both:
    """Send the same request both ways and compare what comes back."""

    async def compared(body: bytes, given: list[tuple[bytes, bytes]], pieces: int = 1) -> None:
        hot, cold = [await Exchange(body, given, pieces).through(app) for app in both]
        assert hot == cold

    return compared


@ERAS
@pytest.mark.parametrize("name", VARIATIONS)
async def test_headers_are_judged_as_the_sdk_judges_them(compare: Any, name: str, modern: bool) -> None:
    body = call(modern)
    given = headers(modern, body) | VARIATIONS[name]
    await compare(body, lines({key: value for key, value in given.items() if value is not None}))


@ERAS
@pytest.mark.parametrize("name", headers(True, b""))
async def test_a_header_sent_twice_is_judged_as_the_sdk_judges_it(compare: Any, name: str, modern: bool) -> None:
    body = call(modern)
    given = headers(modern, body)
    for again in (given.get(name, "x"), "other"):
        await compare(body, lines(given, (name, again)))


@ERAS
@pytest.mark.parametrize("name", corpus(True))
async def test_a_body_is_answered_as_the_sdk_answers_it(compare: Any, name: str, modern: bool) -> None:
    body = corpus(modern)[name]
    try:
        tool = str(json.loads(body)["params"]["name"])
    except (ValueError, KeyError, TypeError, RecursionError):
        tool = "echo"
    await compare(body, lines(headers(modern, body, tool)))
    await compare(body, lines(headers(modern, body, tool)), pieces=3)


@ERAS
async def test_a_client_that_leaves_cancels_its_call_and_gets_nothing(standin: Any, modern: bool) -> None:
    toolbox = standin.StandIn()
    body = call(modern, "wait")
    async with running(toolbox, True) as app:
        exchange = Exchange(body, lines(headers(modern, body, "wait")))
        asking = asyncio.create_task(exchange.through(app))
        async with asyncio.timeout(30):
            while toolbox.log != ["waiting"]:
                await asyncio.sleep(0)
            exchange.leave()
            await asking
    assert toolbox.log == ["waiting", "cancelled"]
    assert exchange.sent == b""


@ERAS
async def test_a_long_silence_becomes_a_stream_with_comments(
    standin: Any, modern: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.mcp.http_gate.SILENCE", 0.01)
    body = call(modern, "wait", arguments={"seconds": 0.2})
    async with running(standin.StandIn(), True) as app:
        exchange = Exchange(body, lines(headers(modern, body, "wait")))
        status, messages = await exchange.through(app)
    assert status == 200
    assert exchange.sent.startswith(b": ping\r\n\r\n: ping\r\n\r\n")
    assert messages[-1]["result"]["isError"] is False


# What the hot path leans on


SEAMS: dict[Callable[..., Any], tuple[str, ...]] = {
    SdkServer.run: ("read_stream", "write_stream", "initialization_options"),
    SdkServer.create_initialization_options: ("notification_options",),
    SdkServer.streamable_http_app: (
        "streamable_http_path",
        "stateless_http",
        "json_response",
        "max_request_body_size",
        "transport_security",
        "custom_starlette_routes",
    ),
    StreamableHTTPSessionManager.handle_request: ("scope", "receive", "send"),
    validate_client_request: ("method", "version", "params"),
}


@pytest.mark.parametrize("seam", SEAMS, ids=lambda seam: seam.__qualname__)
def test_the_seams_of_the_sdk_are_where_they_were(seam: Callable[..., Any]) -> None:
    assert set(SEAMS[seam]) <= inspect.signature(seam).parameters.keys()


def test_the_sdk_judges_what_is_not_plain() -> None:
    assert accepts(LEGACY, {"name": "echo", "_meta": {"progressToken": 1}})
    assert accepts(MODERN_VERSION, {"name": "echo", "_meta": ENVELOPE})
    assert not accepts(MODERN_VERSION, {"name": "echo"})
    assert not accepts(LEGACY, {"arguments": {}})


def test_the_gate_remembers_envelopes_within_bounds() -> None:
    gate = Gate(["echo"], lambda *_: True)
    for number in range(1000):
        assert gate.call(call(False, meta={"n": number}), LEGACY) is not None
    assert len(gate._accepted) <= 256


def test_a_document_with_line_ends_is_sent_in_one_line() -> None:
    assert json.loads(one_line(b'{"a":\r\n [1,\n2]}')) == {"a": [1, 2]}
    assert b"\n" not in one_line(b'{"a":\r\n [1,\n2]}')


@pytest.mark.parametrize("given", ["off", "OFF", "0", "no", "false", " off "])
def test_the_hot_path_can_be_switched_off(given: str) -> None:
    assert not wants_hot_path({"DRAGOMAN_HOT_PATH": given})
    assert wants_hot_path({})
    assert wants_hot_path({"DRAGOMAN_HOT_PATH": "on"})


@pytest.mark.parametrize(("folder", "hot"), [("mcp-2.3.9", True), ("mcp-2.4.0", False), ("mcp-3.0", False)])
def test_the_hot_path_is_off_with_an_sdk_that_was_not_tested(
    tmp_path: Path, folder: str, hot: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / f"{folder}.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("DRAGOMAN_HOT_PATH", raising=False)
    assert switch.hot_path() == hot
    assert ("is newer than" in caplog.text) != hot


def test_the_release_is_the_distributions() -> None:
    import importlib.metadata

    assert importlib.metadata.version("dragoman") == VERSION


@pytest.fixture
def shop(tmp_path: Path) -> str:
    import sqlite3

    sqlite3.connect(tmp_path / "shop.db").close()
    return f"sqlite:///{tmp_path / 'shop.db'}"


async def test_nothing_heavy_is_imported_before_the_tools_are_listed(run: Any, shop: str) -> None:
    program = """
import sys
from dragoman.mcp import early
begin = early._Front._begin_loading
def noted(self):
    print("LOADED", *sys.modules, file=sys.stderr, flush=True)
    begin(self)
early._Front._begin_loading = noted
from dragoman.cli import main
main(sys.argv[1:])
"""
    async with run(sys.executable, "-c", program, "serve", shop, env={**os.environ, "DRAGOMAN_HOT_PATH": "on"}) as peer:
        opening = frame("initialize", INITIALIZE, 1) + b"\n" + frame("tools/list", None, 2)
        await peer.send(opening)
        assert [(await peer.receive())["id"] for _ in range(2)] == [1, 2]
        loaded = set((await peer.logged("^LOADED"))[0].split()) | set(peer.log[0].split())
    heavy = {"asyncio", "mcp", "pydantic", "typer", "rich", "msgspec", "anyio", "sqlglot", "importlib.metadata"}
    assert not loaded & heavy
    assert "dragoman.mcp.early" in loaded
