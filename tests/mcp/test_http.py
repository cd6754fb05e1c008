"""The HTTP face on a real socket: who may come in, what is answered, and how calls end."""

import asyncio
import json
import signal
import socket
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from requests_of import ERAS, HEADERS, answer, legacy


@pytest.fixture(scope="module")
async def open_door(anyio_backend: str, serve_standin: Any) -> AsyncIterator[str]:
    async with serve_standin() as (_, url):
        yield url


@pytest.fixture(scope="module")
async def locked_server(anyio_backend: str, serve_standin: Any) -> AsyncIterator[str]:
    async with serve_standin("s3crét") as (_, url):
        yield url


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD", "OPTIONS", "PATCH"])
async def test_only_post_carries_calls(open_door: str, method: str) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.request(method, f"{open_door}/mcp", headers={"accept": "text/event-stream"})
    assert response.status_code == 405
    assert "POST" in response.headers["allow"]


@ERAS
async def test_a_call_is_answered_in_either_era(open_door: str, request_of: Any) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", **request_of("echo", a=1))
    result = answer(response)["result"]
    assert result["structuredContent"] == {"arguments": {"a": 1}, "who": "anonymous"}
    assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
    assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize(
    ("given", "challenge"),
    [
        (None, "Bearer"),
        ("Bearer wrong", 'Bearer error="invalid_token"'),
        ("Bearer s3cré", 'Bearer error="invalid_token"'),
        ("Bearer", 'Bearer error="invalid_token"'),
        ("Basic s3crét", 'Bearer error="invalid_token"'),
        ("s3crét", 'Bearer error="invalid_token"'),
    ],
)
async def test_a_missing_or_wrong_token_is_turned_away(locked_server: str, given: str | None, challenge: str) -> None:
    request = legacy("echo")
    request["headers"] |= {"authorization": given.encode()} if given is not None else {}
    async with httpx2.AsyncClient() as client:
        for path in ("/mcp", "/mcp/"):
            response = await client.post(locked_server + path, **request)
            assert (response.status_code, response.headers["www-authenticate"]) == (401, challenge)
            assert "s3cr" not in response.text


@ERAS
@pytest.mark.parametrize("scheme", ["Bearer", "bearer"])
async def test_the_right_token_opens(locked_server: str, request_of: Any, scheme: str) -> None:
    request = request_of("echo")
    request["headers"] |= {"authorization": f"{scheme} s3crét".encode()}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{locked_server}/mcp", **request)
    assert answer(response)["result"]["structuredContent"]["who"] == "token"


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("host", "evil.example", 421),
        ("host", "evil.example:80", 421),
        ("host", "localhost.evil.example", 421),
        ("host", "gw.example", 200),
        ("host", "gw.example:443", 200),
        ("host", "localhost:1", 200),
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
        ("origin", "http://localhost.evil.example", 403),
        ("origin", "http://localhost:3000", 200),
        ("content-type", "text/plain", 400),
        ("accept", "text/html", 406),
    ],
)
@ERAS
async def test_headers_that_do_not_fit_are_refused(
    open_door: str, request_of: Any, header: str, value: str, status: int
) -> None:
    request = request_of("echo")
    request["headers"] |= {header: value}
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", **request)
    assert response.status_code == status


@pytest.mark.parametrize("size", [1024 * 1024 + 1, 5 * 1024 * 1024])
@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_over_a_mebibyte_is_too_large(open_door: str, size: int, chunked: bool) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(0, size, 65536):
            yield b"x" * 65536

    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", headers=HEADERS, content=pieces() if chunked else b"x" * size)
    assert response.status_code == 413


@pytest.mark.parametrize("values", ["[],", '{"a":1},', "0,", '"a",'])
async def test_a_body_with_too_many_values_is_refused_before_it_is_parsed(open_door: str, values: str) -> None:
    body = '{"jsonrpc":"2.0","id":1.5,"method":"ping","params":{"a":[%s0' % (values * 24_000)
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", headers=HEADERS, content=body.encode())
    assert response.status_code == 413
    assert "24000 JSON values" in response.json()["message"]


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 5000, -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":1}', -32600),
    ],
)
@ERAS
async def test_a_malformed_body_gets_an_error_and_the_server_goes_on(
    open_door: str, request_of: Any, body: bytes, code: int
) -> None:
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", headers=request_of("echo")["headers"], content=body)
        assert response.status_code == 400
        assert answer(response)["error"]["code"] in (code, -32602)
        assert (await client.get(f"{open_door}/health")).status_code == 200


ODD_IDS = ["NaN", "-NaN", "Infinity", "1e999", "1.5", "1.0", "true", "null", "{}", "[1]"]


@pytest.mark.parametrize("request_id", ODD_IDS)
@ERAS
async def test_a_request_whose_id_is_none_is_refused_and_not_taken_for_a_notification(
    open_door: str, request_of: Any, request_id: str
) -> None:
    request = request_of("echo")
    body = json.dumps(request["json"]).replace('"id": 1', f'"i\\u0064": {request_id}')
    async with httpx2.AsyncClient() as client:
        response = await client.post(f"{open_door}/mcp", headers=request["headers"], content=body)
    assert response.status_code == 400
    assert answer(response)["error"]["code"] in (-32700, -32600)


@pytest.mark.parametrize("headers", [{"x-long": "a" * 70_000}, {f"x-{n}": "a" * 50 for n in range(1200)}])
async def test_a_head_beyond_64_kb_is_refused_however_it_is_cut_into_pieces(
    open_door: str, headers: dict[str, str]
) -> None:
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    host, port = open_door.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(f"GET /health HTTP/1.1\r\nHost: {host}\r\n{lines}\r\n".encode())
    # The parser refuses what has no end after 64 kB with 400; we refuse a head that came whole with 431.
    assert (await reader.readline()).split()[1] in (b"400", b"431")
    writer.close()


async def test_health_and_readiness_need_no_token(locked_server: str) -> None:
    async with httpx2.AsyncClient() as client:
        health = await client.get(f"{locked_server}/health")
        ready = await client.get(f"{locked_server}/ready")
    assert (health.status_code, health.json()) == (200, {"status": "ok"})
    assert (ready.status_code, ready.json()) == (200, {"status": "ready"})


@ERAS
async def test_a_closed_connection_ends_the_call(serve_standin: Any, request_of: Any) -> None:
    async with serve_standin() as (peer, url), httpx2.AsyncClient() as client:
        call = asyncio.create_task(client.post(f"{url}/mcp", **request_of("wait")))
        await peer.logged("waiting")
        call.cancel()
        await peer.logged("cancelled")
        assert answer(await client.post(f"{url}/mcp", **request_of("echo")))["result"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_sdks_client_lists_and_calls(locked_server: str, mode: Any) -> None:
    async with (
        httpx2.AsyncClient(headers={b"authorization": "Bearer s3crét".encode()}) as http,
        Client(streamable_http_client(f"{locked_server}/mcp", http_client=http), mode=mode) as client,
    ):
        assert "echo" in [tool.name for tool in (await client.list_tools()).tools]
        results = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(20)))
    assert [result.structured_content["arguments"]["n"] for result in results] == list(range(20))  # pyright: ignore


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@ERAS
async def test_a_signal_answers_the_calls_it_ends(serve_standin: Any, request_of: Any, number: Any) -> None:
    async with serve_standin() as (peer, url), httpx2.AsyncClient() as client:
        call = asyncio.create_task(client.post(f"{url}/mcp", **request_of("wait"), timeout=20))
        await peer.logged("waiting")
        peer.process.send_signal(number)
        assert await peer.ended(30) == 0
        result = answer(await call)["result"]
    assert json.loads(result["content"][0]["text"])["error"]["code"] == "QUERY_CANCELLED"
    assert "cancelled" in peer.log
    assert not [line for line in peer.log if "Traceback" in line]


async def test_a_port_that_is_taken_is_a_configuration_error(open_door: str, standin: Any) -> None:
    from dragoman.config import Server
    from dragoman.errors import ConfigurationError
    from dragoman.mcp.http import serve_http

    settings = Server(transport="http", port=int(open_door.rpartition(":")[2]))
    with pytest.raises(ConfigurationError, match=r"server\.port"):
        await serve_http(standin.StandIn(), settings)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
async def test_an_accepted_connection_sends_small_answers_at_once(host: str) -> None:
    from dragoman.mcp.http import listen

    accepted = asyncio.get_running_loop().create_future()
    server = await asyncio.start_server(lambda _, writer: accepted.set_result(writer), sock=listen(host, 0))
    async with server:
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
        there: asyncio.StreamWriter = await accepted
        assert there.get_extra_info("socket").getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        there.close()
        writer.close()
        await asyncio.gather(there.wait_closed(), writer.wait_closed())
