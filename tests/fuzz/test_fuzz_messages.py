"""Large messages over HTTP, of every shape that a parser makes many objects of: the event loop goes on meanwhile.

`test_fuzz_tools.py` calls tools without a transport. Here the bytes of a request are parsed, checked and refused.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.config import Configuration, Server
from dragoman.mcp.http import http_app
from dragoman.mcp.middleware import MAX_BODY
from dragoman.mcp.values import MOST_VALUES
from dragoman.tools import Toolbox
from pauses import MEASUREMENTS, MOST, paused, sqlite_file, unit

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
VALUES = ("[]", "[[]]", '{"a":1}', "1.2345678901234567e-300", '"\\u0061"', "9" * 99)
"""Each is repeated, as a list's items or as an object's members."""
LONG = ("a", "\\u0061", '\\"', "1234567890" * 9 + "x")
"""Each is repeated within a text."""
LONGEST = 4 * MOST
"""Of the pauses, in the units of `pauses.py`: a message of 1 MiB is parsed several times on its way."""

pytestmark = pytest.mark.anyio


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Any]:
    shop = sqlite_file(tmp_path, "shop", "CREATE TABLE orders (id INTEGER);")
    async with Gateway.open(Configuration(databases={"shop": shop}, server=Server(transport="http"))) as gateway:
        app = http_app(Toolbox(gateway, profile="full"), gateway.configuration.server)
        async with running(app):
            yield app


@asynccontextmanager
async def running(app: Any) -> AsyncIterator[None]:
    """Begin and end an application, as a server does."""
    orders, told = asyncio.Queue[Any](), asyncio.Queue[Any]()
    orders.put_nowait({"type": "lifespan.startup"})
    serving = asyncio.create_task(app({"type": "lifespan"}, orders.get, told.put))
    assert (await told.get())["type"] == "lifespan.startup.complete"
    yield
    orders.put_nowait({"type": "lifespan.shutdown"})
    await serving


def filled(method: str) -> dict[str, str]:
    """Return the params of a method, by what is in them, with a place for a value."""
    call = '{"name":"execute_query","arguments":{"database":"shop","sql":"SELECT 1",%s}'
    return {
        "tools/call": {
            "params": call % '"params":%s' + "}",
            "an unknown argument": call % '"unknown":%s' + "}",
            "tables": '{"name":"describe_table","arguments":{"database":"shop","table_name":%s}}',
            "_meta": '{"name":"list_databases","arguments":{},"_meta":%s}',
        },
        "prompts/get": {"arguments": '{"name":"find","arguments":%s}'},
        "completion/complete": {
            "context": '{"ref":{"type":"ref/prompt","name":"find"},"argument":{"name":"database","value":"a"},'
            '"context":{"arguments":%s}}'
        },
        "resources/read": {"uri": '{"uri":%s}'},
        "no/such": {"params": '{"a":%s}'},
    }[method]


METHODS = (
    "tools/call",
    "no/such",
    *(pytest.param(each, marks=pytest.mark.full) for each in ("prompts/get", "completion/complete", "resources/read")),
)


def shapes(most: int) -> list[str]:
    """Return large values, with at most so many values in each."""

    def repeated(value: str, marks: int, key: str = "") -> str:
        number = min(most // marks, (MAX_BODY - 1000) // (len(value) + len(key) + 8))
        return ",".join(key % each + value if key else value for each in range(number))

    marks = {value: 1 + value.count("[") + value.count("{") for value in VALUES}
    lists = [f"[{repeated(value, marks[value])}]" for value in VALUES]
    objects = ["{" + repeated(value, marks[value], '"k%d":') + "}" for value in VALUES]
    return [*lists, *objects, *(f'"{part * ((MAX_BODY - 1000) // len(part))}"' for part in LONG)]


def with_meta(params: str) -> str:
    meta = json.dumps(MODERN)[1:-1]
    return (
        params.replace('"_meta":{', f'"_meta":{{{meta},')
        if '"_meta":{' in params
        else f'{params[:-1]},"_meta":{{{meta}}}}}'
    )


async def status(app: Any, method: str, body: bytes, *, modern: bool) -> int:
    """Return the status of the answer to a request."""
    named = {"tools/call": b"execute_query", "prompts/get": b"find"}.get(method, b"")
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    headers += [(b"accept", b"application/json, text/event-stream"), (b"content-length", str(len(body)).encode())]
    version = "2026-07-28" if modern else "2025-11-25"
    headers += [(b"mcp-protocol-version", version.encode())]
    headers += [(b"mcp-method", method.encode()), (b"mcp-name", named)] if modern else []
    messages = [{"type": "http.request", "body": body, "more_body": False}]
    told: list[int] = []

    async def receive() -> Any:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        told.append(message.get("status", 0))

    scope = {"type": "http", "method": "POST", "path": "/mcp", "raw_path": b"/mcp", "http_version": "1.1"}
    await app({**scope, "query_string": b"", "headers": headers, "client": ("127.0.0.1", 1)}, receive, send)
    return told[0] if told else 0


@pytest.mark.timeout(300)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("modern", [False, True], ids=["2025", "2026"])
@pytest.mark.parametrize("most", [MOST_VALUES - 100, 10**6], ids=["as many values as may be", "more"])
async def test_large_messages_hold_nobody_up(app: Any, method: str, modern: bool, most: int) -> None:
    limit, wrong = LONGEST * unit(), list[str]()
    for where, params in filled(method).items():
        for number, shape in enumerate(shapes(most)):
            filled_in = with_meta(params % shape) if modern else params % shape
            request = "1.5" if number % 4 == 1 else "1"
            body = f'{{"jsonrpc":"2.0","id":{request},"method":"{method}","params":{filled_in}}}'.encode()
            longest = await shortest_pause(app, method, body, limit, modern=modern)
            if longest > limit:
                wrong.append(f"{where} {shape[:30]} id {request}: {longest * 1000:.0f} ms")
    assert not wrong


async def shortest_pause(app: Any, method: str, body: bytes, limit: float, *, modern: bool) -> float:
    """Return the longest pause of a request, measured again while it exceeds the limit."""
    longest = float("inf")
    for _ in range(MEASUREMENTS):
        if longest > limit:
            longest = min(longest, (await paused(status(app, method, body, modern=modern)))[1])
    return longest
