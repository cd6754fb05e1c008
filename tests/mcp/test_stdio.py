"""The stdio transport, spoken to in bytes: whatever comes in, the process survives and says what was wrong."""

import asyncio
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from itertools import product
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60.0
"""Seconds against hanging on a busy machine; that three are enough is tested with a real database."""

PING = {"jsonrpc": "2.0", "id": 99, "method": "ping"}
CALL = b'"jsonrpc":"2.0","method":"tools/call"'
UNITS = ["".join(unit) for size in (1, 2, 3) for unit in product('"\\{[', repeat=size)]
DEEP = b"[" * 5000 + b"]" * 5000
DEEPEST = b"[" * 100_000 + b"]" * 100_000

MALFORMED: dict[str, tuple[bytes, Any, int]] = {
    "no JSON": (b"hello", None, -32700),
    "half a message": (b'{"jsonrpc":"2.0","id":1', None, -32700),
    "invalid UTF-8": (b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', 1, -32700),
    "a lone surrogate for an id": (b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}', "\ud800", -32700),
    "a lone surrogate": (b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"x":"\\ud800"}}', 8, -32700),
    "a control character": (b'{"jsonrpc":"2.0","id":1,"method":"pi\x01ng"}', 1, -32700),
    "nothing but NUL": (b"\x00\x00\x00", None, -32700),
    "deep nesting": (b'{"id":1,%b,"params":%b}' % (CALL, DEEP), 1, -32700),
    "the deepest nesting after the id": (b'{"id":1,%b,"params":%b}' % (CALL, DEEPEST), 1, -32700),
    "the deepest nesting before the id": (b'{%b,"params":%b,"id":"z"}' % (CALL, DEEPEST), "z", -32700),
    "an answer of the deepest nesting": (b'{"id":1,"result":%b}' % DEEPEST, None, -32700),
    "a batch": (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', None, -32600),
    "a number": (b"42", None, -32600),
    "null": (b"null", None, -32600),
    "an empty object": (b"{}", None, -32600),
    "another version": (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', 1, -32600),
    "a method that is no text": (b'{"jsonrpc":"2.0","id":"a","method":7}', "a", -32600),
    "params that are no object": (b'{"jsonrpc":"2.0","id":3,"method":"ping","params":[1]}', 3, -32600),
    "an id that is null": (b'{"jsonrpc":"2.0","id":null,"method":"ping"}', None, -32600),
    "an id that is a fraction": (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', None, -32600),
    "an id that is true": (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', None, -32600),
    "an unknown method": (b'{"jsonrpc":"2.0","id":4,"method":"drop"}', 4, -32601),
    "a call without a name": (b'{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{}}', 5, -32602),
    "arguments that are no object": (
        b'{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"echo","arguments":"x"}}',
        6,
        -32602,
    ),
    "an unknown tool": (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"x"}}', 7, -32602),
}


@pytest.mark.parametrize("case", MALFORMED)
async def test_malformed_input_gets_the_protocols_error_and_the_server_goes_on(steady: Any, case: str) -> None:
    line, request_id, code = MALFORMED[case]
    await steady.send(line)
    answer = await steady.receive()
    assert (answer["id"], answer["error"]["code"]) == (request_id, code)
    await steady.send(PING)
    assert (await steady.receive())["result"] == {}


@pytest.mark.parametrize("line", [b"", b"   ", b"\r", b'{"jsonrpc":"2.0","method":"no/such/notification"}'])
async def test_what_needs_no_answer_gets_none(steady: Any, line: bytes) -> None:
    await steady.send(line, PING)
    assert (await steady.receive())["id"] == PING["id"]


async def test_garbage_before_the_handshake_does_no_harm(peer: Any) -> None:
    await peer.send(b"garbage", b"\xff", b"{}")
    assert [(await peer.receive())["error"]["code"] for _ in range(3)] == [-32700, -32700, -32600]
    assert (await peer.handshake())["result"]["serverInfo"]["name"] == "dragoman"


@pytest.mark.parametrize("method", ["ping", "resources/list"])
async def test_a_request_is_answered_once_that_has_the_id_of_a_failed_handshake(peer: Any, method: str) -> None:
    await peer.handshake()
    await peer.send({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}})
    assert (await peer.receive())["error"]["code"] == -32602
    await peer.send({"jsonrpc": "2.0", "id": 1, "method": method})
    assert "result" in await peer.receive()
    await peer.send(PING)
    assert (await peer.receive())["id"] == PING["id"]


async def test_a_megabyte_in_one_message_passes(steady: Any) -> None:
    answer = await steady.call(1, "echo", sql="x" * 1_000_000)
    assert len(answer["result"]["structuredContent"]["arguments"]["sql"]) == 1_000_000


async def test_an_overlong_line_is_refused_and_skipped(steady: Any) -> None:
    await steady.send(b"x" * (9 * 1024 * 1024), PING)
    assert (await steady.receive())["error"]["code"] == -32600
    assert (await steady.receive())["id"] == PING["id"]


@pytest.mark.parametrize("order", [("id", "method", "params"), ("method", "params", "jsonrpc", "id")])
async def test_an_overlong_request_is_answered_by_its_id(steady: Any, order: tuple[str, ...]) -> None:
    request = {"jsonrpc": "2.0", "method": "ping", "params": {"id": 5, "text": "x" * (9 * 1024 * 1024)}, "id": "long"}
    await steady.send(json.dumps({name: request[name] for name in order}).encode(), PING)
    assert (await steady.receive())["id"] == "long"
    assert (await steady.receive())["id"] == PING["id"]


@pytest.mark.parametrize("unit", UNITS)
async def test_the_id_of_an_unreadable_line_is_found_in_one_pass(steady: Any, unit: str) -> None:
    await steady.send(b'{"jsonrpc":"2.0","id":5,"method":' + unit.encode() * (1_000_000 // len(unit)), PING)
    assert (await steady.receive())["id"] in (5, None)
    assert (await steady.receive())["id"] == PING["id"]


async def test_windows_line_ends_are_fine(steady: Any) -> None:
    await steady.send(json.dumps(PING).encode() + b"\r")
    assert (await steady.receive())["id"] == PING["id"]


async def test_a_stray_print_does_not_reach_the_client(peer: Any) -> None:
    await peer.handshake()
    assert (await peer.call(1, "echo"))["result"]["structuredContent"]["who"] == "local"
    peer.close_stdin()
    await peer.ended(PATIENCE)
    assert "a stray print" in peer.log


async def test_an_answer_of_megabytes_waits_for_a_slow_reader(steady: Any) -> None:
    for number in range(5):
        await steady.send(_call(number + 1, "big", bytes=2_000_000))
    await steady.send(PING)
    answers = [await steady.receive() for _ in range(6)]
    sizes = {a["id"]: len(a["result"]["content"][0]["text"]) for a in answers if a["id"] != PING["id"]}
    assert sizes == dict.fromkeys(range(1, 6), 2_000_000)


@pytest.mark.parametrize("member", ['"result":{}', '"error":{"code":1,"message":"x"}'])
@pytest.mark.parametrize("method", ["false", '"ping"', "null"])
async def test_a_request_with_a_member_of_an_answer_is_answered(peer: Any, method: str, member: str) -> None:
    await peer.handshake()
    await peer.send(f'{{"jsonrpc":"2.0","id":77,"method":{method},{member}}}'.encode())
    assert (await peer.receive())["id"] == 77


async def test_a_cancelled_call_ends_at_once_and_is_never_answered(peer: Any) -> None:
    await peer.handshake()
    await peer.send(_call(1, "wait"))
    await peer.logged("waiting")
    await peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    await peer.logged("cancelled")
    await peer.send(PING)
    assert (await peer.receive())["id"] == PING["id"]


class _Lines:
    """Lines for the SDK that came all at once."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self._lines = [json.dumps({"jsonrpc": "2.0", **message}).encode() for message in messages]

    async def next_line(self) -> bytes | None:
        return self._lines.pop(0) if self._lines else None

    def set_version(self, version: str) -> None:
        """No handshake is among them."""


async def test_the_sdk_hears_of_a_cancellation_only_when_something_is_owed() -> None:
    from dragoman.mcp.streams import Incoming, Replay
    from dragoman.mcp.wire import Wire

    cancel = {"method": "notifications/cancelled", "params": {"requestId": 5}}
    same = {"method": "notifications/cancelled", "params": {"requestId": "5", "reason": "late"}}
    lines = _Lines(cancel, {"id": 5, "method": "tools/list"}, same, cancel, same, PING)
    source, sink = os.pipe()
    wire = Wire(source, sink)
    heard: list[Any] = [each async for each in Incoming(wire, lines, Replay([], bool))]
    assert [each.message.method for each in heard] == ["tools/list", "notifications/cancelled", "ping"]
    await wire.aclose(0)
    os.close(source)


async def test_calls_in_flight_at_the_end_of_input_are_still_answered(peer: Any) -> None:
    await peer.handshake()
    await peer.send(_call(1, "wait", seconds=0.1))
    peer.close_stdin()
    assert "result" in await peer.receive()
    assert await peer.ended(PATIENCE) == 0


async def test_the_end_of_input_ends_a_long_call_and_the_process(peer: Any) -> None:
    await peer.handshake()
    await peer.send(_call(1, "wait"))
    await peer.logged("waiting")
    peer.close_stdin()
    assert await peer.ended(PATIENCE) == 0
    assert "cancelled" in peer.log
    assert await peer.process.stdout.read() == b"", "clients of SDK 1 fail over an answer that comes while they close"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_ends_a_long_call_and_the_process(peer: Any, number: signal.Signals) -> None:
    await peer.handshake()
    await peer.send(_call(1, "wait"))
    await peer.logged("waiting")
    peer.process.send_signal(number)
    assert await peer.ended(PATIENCE) == 0
    assert "cancelled" in peer.log


async def test_a_signal_ends_a_server_whose_answers_nobody_reads(peer: Any) -> None:
    await peer.handshake()
    await peer.send(*(_call(number, "big", bytes=2_000_000) for number in range(1, 20)), _call(20, "wait"))
    await peer.logged("waiting")
    peer.process.send_signal(signal.SIGTERM)
    assert await peer.ended(PATIENCE) == 0


async def test_a_signal_ends_a_server_nobody_spoke_to(peer: Any) -> None:
    await peer.send(PING)
    await peer.receive()
    peer.process.send_signal(signal.SIGTERM)
    assert await peer.ended(PATIENCE) == 0


async def test_a_client_that_stops_reading_ends_the_server(run: Any, standin: Any, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, standin.__file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.close()
        process.stdin.write(json.dumps(PING).encode() + b"\n")
        process.stdin.close()
        assert await asyncio.to_thread(process.wait, PATIENCE) == 0


async def test_input_and_output_may_be_files(standin: Any, tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_text(json.dumps(PING))
    with source.open() as stdin, sink.open("w") as stdout:
        process = await asyncio.create_subprocess_exec(
            sys.executable, standin.__file__, stdin=stdin, stdout=stdout, stderr=subprocess.DEVNULL
        )
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    assert json.loads(sink.read_text()) == {"jsonrpc": "2.0", "id": 99, "result": {}}


async def test_calls_do_not_wait_for_one_another(peer: Any) -> None:
    await peer.handshake()
    await peer.send(_call(1, "wait", seconds=30))
    await peer.logged("waiting")
    begun = time.monotonic()
    assert "result" in await peer.call(2, "echo")
    assert time.monotonic() - begun < 10


def _call(request_id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": request_id,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has mapped")
async def test_the_sdk_is_loaded_for_a_client_that_asks_more_than_tools(run: Any, tmp_path: Path, way: str) -> None:
    sqlite3.connect(tmp_path / "shop.db").close()
    command = [sys.executable, "-m", "dragoman", "serve", "--url", f"shop=sqlite:///{tmp_path / 'shop.db'}"]
    async with run(*command) as peer:

        def has_sdk() -> bool:
            return "pydantic_core" in Path(f"/proc/{peer.process.pid}/maps").read_text()

        await peer.handshake()
        assert (await peer.request(1, "tools/list"))["result"]["tools"]
        assert (await peer.call(2, "execute_query", database="shop", sql="SELECT 1 AS n"))["result"][
            "structuredContent"
        ]
        assert has_sdk() == (way == "sdk")
        assert "resources" in (await peer.request(3, "resources/list"))["result"]
        assert has_sdk()
