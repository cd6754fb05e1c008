"""Sessions of 2025-era clients: a cancel reaches the call it is about, and no other."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from dragoman.config import Server
from serving import client_of

HEADERS = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}
CANCELLED = -32800


class Client:
    """A 2025-era client: its session, and its requests as they go over the wire."""

    def __init__(self, http: httpx2.AsyncClient, url: str) -> None:
        self._http = http
        self._url = f"{url}/mcp"
        self.session: str | None = None

    async def initialize(self) -> None:
        info = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        response = await self.post({"id": 0, "method": "initialize", "params": info})
        self.session = response.headers["mcp-session-id"]

    def _headers(self) -> dict[str, str]:
        return HEADERS | ({"mcp-session-id": self.session} if self.session else {})

    async def post(self, message: dict[str, Any]) -> httpx2.Response:
        return await self._http.post(self._url, headers=self._headers(), json={"jsonrpc": "2.0", **message}, timeout=30)

    async def call(self, request: Any, tool: str, **arguments: Any) -> dict[str, Any]:
        params = {"name": tool, "arguments": arguments}
        response = await self.post({"id": request, "method": "tools/call", "params": params})
        events = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        return json.loads(events[-1] if events else response.text)

    async def cancel(self, request: Any) -> int:
        message = {"method": "notifications/cancelled", "params": {"requestId": request}}
        return (await self.post(message)).status_code

    async def leave(self) -> int:
        return (await self._http.delete(self._url, headers=self._headers())).status_code


@pytest.fixture(scope="module")
async def served(anyio_backend: str, serve_standin: Any) -> AsyncIterator[Any]:
    """One server for all tests of the module; each has clients of its own."""
    async with serve_standin() as (peer, url), httpx2.AsyncClient() as http:
        yield peer, lambda: Client(http, url)


@pytest.fixture
def log(served: Any) -> Any:
    """The server's log of one test: each waits for what it began."""
    served[0].log.clear()
    return served[0]


@pytest.fixture
async def client(served: Any) -> Client:
    client = served[1]()
    await client.initialize()
    return client


@pytest.fixture
async def other(served: Any) -> Client:
    client = served[1]()
    await client.initialize()
    return client


async def test_each_client_gets_a_session_of_its_own(client: Client, other: Client) -> None:
    assert client.session
    assert other.session
    assert len({client.session, other.session}) == 2
    assert len(client.session) >= 22, "128 bits at least"


@pytest.mark.parametrize("told", [7, "7"])
async def test_a_cancel_ends_the_call_and_says_so(client: Client, log: Any, told: Any) -> None:
    call = asyncio.create_task(client.call(7, "wait"))
    await log.logged("waiting")
    assert await client.cancel(told) == 202
    answer = await call
    assert (answer["id"], answer["error"]["code"]) == (7, CANCELLED)
    await log.logged("cancelled")
    assert "result" in await client.call(8, "echo")


async def test_a_cancel_reaches_no_call_of_another_client(client: Client, other: Client, served: Any, log: Any) -> None:
    nameless = served[1]()
    call = asyncio.create_task(client.call(7, "wait", seconds=2))
    await log.logged("waiting")
    assert await other.cancel(7) == 202
    assert await nameless.cancel(7) == 202
    assert await client.cancel(8) == 202
    assert "result" in await call
    assert "cancelled" not in log.log


async def test_a_cancel_that_overtakes_its_call_ends_it(client: Client, log: Any) -> None:
    assert await client.cancel(7) == 202
    assert (await client.call(7, "wait"))["error"]["code"] == CANCELLED
    assert "result" in await client.call(7, "echo")


async def test_a_call_on_a_machine_that_started_just_now_is_answered(monkeypatch: Any) -> None:
    monkeypatch.setattr("dragoman.mcp.sessions._now", lambda: 1.0)  # it counts from the machine's start
    async with client_of(Server(transport="http")) as http:
        client = Client(http, "")
        await client.initialize()
        assert "result" in await client.call(7, "wait", seconds=0.01)


async def test_a_client_that_leaves_ends_its_calls_and_no_others(client: Client, other: Client, log: Any) -> None:
    calls = [asyncio.create_task(client.call(number, "wait")) for number in (1, 2)]
    kept = asyncio.create_task(other.call(1, "wait", seconds=3))
    async with asyncio.timeout(20):
        while log.log.count("waiting") < 3:
            await asyncio.sleep(0.01)
    assert await client.leave() == 204
    assert [(await call)["error"]["code"] for call in calls] == [CANCELLED] * 2
    assert "result" in await kept


async def test_only_sessions_end_by_delete(served: Any) -> None:
    assert await served[1]().leave() == 405


@pytest.mark.parametrize("session", ["x", "x" * 10_000, "1\t2", "'; DROP TABLE sessions", "A" * 40, "é"])
async def test_a_session_that_nobody_was_given_is_not_found(served: Any, session: str) -> None:
    client = served[1]()
    client.session = session.encode() if not session.isascii() else session
    assert (await client.post({"id": 1, "method": "tools/call", "params": {"name": "echo"}})).status_code == 404
    assert (await client.post({"method": "notifications/initialized"})).status_code == 404
    assert await client.leave() == 404
    await client.initialize()
    assert "result" in await client.call(1, "echo")


async def test_a_session_that_has_ended_is_not_found_and_others_go_on(client: Client, other: Client) -> None:
    assert await client.leave() == 204
    assert await client.leave() == 404
    assert (await client.post({"id": 1, "method": "tools/call", "params": {"name": "echo"}})).status_code == 404
    assert "result" in await other.call(1, "echo")


async def test_a_session_outlives_the_server_that_named_it(client: Client, serve_standin: Any) -> None:
    async with serve_standin() as (_, url), httpx2.AsyncClient() as http:
        elsewhere = Client(http, url)
        elsewhere.session = client.session
        assert "result" in await elsewhere.call(1, "echo")


@pytest.mark.parametrize("request_id", [{}, [], None, True, 1.5, "", -1, 2**70, "x" * 100_000])
async def test_a_cancel_of_anything_does_no_harm(client: Client, request_id: Any) -> None:
    assert await client.cancel(request_id) in (202, 400)
    assert "result" in await client.call(1, "echo")


async def test_a_call_that_ends_as_it_is_cancelled_is_answered_once(client: Client) -> None:
    for number in range(50):
        call = asyncio.create_task(client.call(number, "echo"))
        await client.cancel(number)
        assert {"result", "error"} & (await call).keys()
    assert "result" in await client.call(99, "echo")
