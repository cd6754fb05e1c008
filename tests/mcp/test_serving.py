"""`dragoman serve` on a real database: what ends a query, and what is left of it."""

import asyncio
import json
import signal
import socket
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from dragoman.errors import ConfigurationError
from dragoman.mcp.http import listen

PATIENCE = 60
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT count(*) FROM c"
COUNT = "SELECT count(*) AS n FROM orders"

SHOP = """
CREATE TABLE orders (id INTEGER PRIMARY KEY, note TEXT);
INSERT INTO orders (note) VALUES ('a'), ('b'), ('c');
"""

MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
HEADERS = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Serve = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def shop(tmp_path: Path) -> str:
    path = tmp_path / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture
def serve(run: Any, shop: str) -> Serve:
    """`async with serve(*options) as peer`: the shop, served."""

    @asynccontextmanager
    async def start(*options: str) -> AsyncIterator[Any]:
        async with run(sys.executable, "-m", "dragoman", "serve", shop, *options) as peer:
            yield peer

    return start


@pytest.fixture
async def stdio(serve: Serve) -> AsyncIterator[Any]:
    async with serve() as peer:
        await peer.handshake()
        yield peer


@pytest.fixture
async def http(serve: Serve) -> AsyncIterator[tuple[Any, str]]:
    async with serve("--transport", "http", "--port", "0") as peer:
        yield peer, (await peer.logged(r"serving on (http://[^\s\"]+)"))[1]


def processes() -> list[tuple[int, int, str]]:
    """Return process id, parent's id and state of every process; from /proc where it is, since slim images lack ps."""
    if Path("/proc/self/stat").exists():
        return [entry for path in Path("/proc").glob("[0-9]*/stat") if (entry := _entry(path))]
    listing = subprocess.run(["ps", "-A", "-o", "pid=,ppid=,stat="], capture_output=True, text=True, check=True)
    rows = (line.split() for line in listing.stdout.splitlines())
    return [(int(pid), int(parent), state) for pid, parent, state in rows]


def _entry(path: Path) -> tuple[int, int, str] | None:
    try:
        state, parent, *_ = path.read_text().rpartition(")")[2].split()
    except OSError:
        return None  # it ended between the listing and the look
    return int(path.parent.name), int(parent), state


def alive() -> set[int]:
    """Return the ids of all processes that have not ended, whether or not anyone has asked for their exit status."""
    return {pid for pid, _, state in processes() if not state.startswith("Z")}


def descendants(root: int) -> dict[int, str]:
    """Return the states of all processes below `root`, by id."""
    found: dict[int, str] = {}
    everything = processes()
    parents = {root}
    while parents:
        children = {pid: state for pid, parent, state in everything if parent in parents}
        found |= children
        parents = set(children)
    return found


def busy(root: int) -> bool:
    return any(state.startswith("R") for state in descendants(root).values())


async def until(condition: Callable[[], bool]) -> None:
    """Wait for what can only be seen from outside."""
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.01)


async def idle(root: int) -> None:
    """Wait until nothing below `root` computes; a process that does is running whenever one looks."""
    await until(lambda: not any(busy(root) for _ in range(3)))


def call(request_id: int, tool: str, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}


def rows(answer: dict[str, Any]) -> Any:
    return answer["result"]["structuredContent"]["rows"]


@pytest.mark.parametrize("modern", [False, True])
async def test_a_cancelled_query_ends_in_the_database(serve: Serve, modern: bool) -> None:
    envelope = {"_meta": MODERN} if modern else {}
    async with serve() as peer:
        if not modern:
            await peer.handshake()
        endless, count = call(1, "execute_query", sql=ENDLESS), call(2, "execute_query", sql=COUNT)
        endless["params"] |= envelope
        count["params"] |= envelope
        await peer.send(endless)
        await until(lambda: busy(peer.process.pid))
        await peer.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1} | envelope})
        await peer.logged("CANCELLED")
        await idle(peer.process.pid)
        await peer.send(count)
        assert rows(await peer.receive()) == [[3]]


async def test_a_query_past_its_deadline_ends_in_the_database(stdio: Any) -> None:
    answer = await stdio.call(1, "execute_query", sql=ENDLESS, timeout_ms=300)
    assert json.loads(answer["result"]["content"][0]["text"])["error"]["code"] == "QUERY_TIMEOUT"
    await idle(stdio.process.pid)
    assert rows(await stdio.call(2, "execute_query", sql=COUNT)) == [[3]]


@pytest.mark.parametrize("queries", [0, 1, 3])
@pytest.mark.parametrize("end", ["EOF", signal.SIGTERM, signal.SIGINT])
async def test_no_process_is_left_after_the_end(stdio: Any, queries: int, end: Any) -> None:
    assert rows(await stdio.call(9, "execute_query", sql=COUNT)) == [[3]]
    await stdio.send(*(call(number, "execute_query", sql=ENDLESS) for number in range(queries)))
    await until(lambda: busy(stdio.process.pid) == bool(queries))
    below = descendants(stdio.process.pid)
    if end == "EOF":
        stdio.close_stdin()
    else:
        stdio.process.send_signal(end)
    async with asyncio.timeout(30):
        assert await stdio.process.wait() == 0
        await until(lambda: not below.keys() & alive())


async def test_workers_die_with_a_server_that_is_killed(stdio: Any) -> None:
    await stdio.send(call(1, "execute_query", sql=ENDLESS))
    await until(lambda: busy(stdio.process.pid))
    below = descendants(stdio.process.pid)
    stdio.process.send_signal(signal.SIGKILL)
    await until(lambda: not below.keys() & alive())


@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
async def test_a_closed_connection_ends_the_query(http: tuple[Any, str], version: str) -> None:
    peer, url = http
    headers = HEADERS | {"mcp-protocol-version": version}
    message = call(1, "execute_query", sql=ENDLESS)
    if version == "2026-07-28":
        headers |= {"mcp-method": "tools/call", "mcp-name": "execute_query"}
        message["params"]["_meta"] = MODERN
    async with httpx2.AsyncClient() as client:
        asked = asyncio.create_task(client.post(url, headers=headers, json=message, timeout=60))
        await until(lambda: busy(peer.process.pid))
        asked.cancel()
        await peer.logged("CANCELLED")
    await idle(peer.process.pid)


async def test_stopping_http_ends_queries_and_workers(http: tuple[Any, str]) -> None:
    peer, url = http
    async with httpx2.AsyncClient() as client:
        message = call(1, "execute_query", sql=ENDLESS)
        asked = asyncio.create_task(client.post(url, headers=HEADERS, json=message, timeout=60))
        await until(lambda: busy(peer.process.pid))
        below = descendants(peer.process.pid)
        peer.process.send_signal(signal.SIGTERM)
        assert await peer.ended(30) == 0
        await until(lambda: not below.keys() & alive())
        assert "QUERY_CANCELLED" in (await asked).text


def test_an_address_that_is_in_use_is_told_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError) as error:
            listen("127.0.0.1", port)
    assert error.value.message.count(str(port)) == 1


async def test_readiness_names_the_databases(http: tuple[Any, str]) -> None:
    url = http[1].removesuffix("/mcp")
    async with httpx2.AsyncClient() as client:
        ready = await client.get(f"{url}/ready")
    assert (ready.status_code, ready.json()) == (200, {"status": "ready", "databases": {"shop": "ready"}})


async def test_a_hundred_calls_at_once_are_all_answered(stdio: Any) -> None:
    await stdio.send(*(call(number, "execute_query", sql=f"SELECT {number} AS n") for number in range(100)))
    answers = [await stdio.receive() for _ in range(100)]
    assert {answer["id"]: rows(answer) for answer in answers} == {number: [[number]] for number in range(100)}


async def test_a_query_goes_on_while_another_is_cancelled(stdio: Any) -> None:
    await stdio.send(call(1, "execute_query", sql=ENDLESS))
    await until(lambda: busy(stdio.process.pid))
    assert rows(await stdio.call(2, "execute_query", sql=COUNT)) == [[3]]
    await stdio.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    await stdio.logged("CANCELLED")


async def test_a_megabyte_of_sql_is_refused_with_a_code(stdio: Any) -> None:
    answer = await stdio.call(1, "execute_query", sql="SELECT '" + "x" * 1_000_000 + "'")
    assert json.loads(answer["result"]["content"][0]["text"])["error"]["code"] == "INVALID_SQL"
    assert rows(await stdio.call(2, "execute_query", sql=COUNT)) == [[3]]


@pytest.mark.parametrize(
    ("profile", "tools"),
    [
        ("minimal", ["list_databases", "search_catalog", "describe_table", "execute_query"]),
        ("execute_query,list_tables", ["execute_query", "list_tables"]),
    ],
)
async def test_a_profile_says_which_tools_there_are(serve: Serve, profile: str, tools: list[str]) -> None:
    async with serve("--tools", profile) as peer:
        await peer.handshake()
        listed = (await peer.request(1, "tools/list"))["result"]["tools"]
        assert sorted(tool["name"] for tool in listed) == sorted(tools)
        missing = await peer.call(2, "explain_query", sql=COUNT)
        assert missing["error"]["code"] == -32602


@pytest.mark.parametrize(("profile", "shown", "whole"), [("minimal", 1250, 2600), ("standard", 3400, 7000)])
async def test_the_list_of_tools_stays_small_on_the_wire(
    serve: Serve, tmp_path: Path, profile: str, shown: int, whole: int
) -> None:
    sqlite3.connect(tmp_path / "crm.db").close()
    async with serve(f"sqlite:///{tmp_path / 'crm.db'}", "--tools", profile) as peer:
        instructions = (await peer.handshake())["result"]["instructions"]
        tools = (await peer.request(1, "tools/list"))["result"]["tools"]
    seen = [{key: tool[key] for key in ("name", "description", "inputSchema")} for tool in tools]
    assert len(minified(seen)) <= shown
    assert len(minified(tools)) <= whole
    assert len(instructions.encode()) <= 190


def minified(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


async def test_each_call_is_one_line_in_the_log_without_values(stdio: Any) -> None:
    await stdio.call(1, "execute_query", sql="SELECT * FROM orders WHERE note = $1", params=["private"])
    stdio.close_stdin()
    await stdio.ended(30)
    calls = [json.loads(line) for line in stdio.log if '"dragoman.calls"' in line]
    assert len(calls) == 1
    assert calls[0]["call"] | {"ms": 0, "hash": ""} == {
        "who": "local",
        "tool": "execute_query",
        "database": "shop",
        "hash": "",
        "rows": 0,
        "bytes": calls[0]["call"]["bytes"],
        "ms": 0,
        "outcome": "ok",
    }
    assert "private" not in "".join(stdio.log)
    assert "orders" not in "".join(stdio.log)


async def test_serving_sqlite_imports_no_other_driver(run: Any, shop: str) -> None:
    program = (
        "import sys; from dragoman.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "finally: print('LOADED', *sorted({name.partition('.')[0] for name in sys.modules}), file=sys.stderr)"
    )
    async with run(sys.executable, "-c", program, "serve", shop) as peer:
        await peer.handshake()
        assert rows(await peer.call(1, "execute_query", sql=COUNT)) == [[3]]
        peer.close_stdin()
        await peer.ended(30)
    loaded = set(next(line for line in peer.log if line.startswith("LOADED")).split())
    assert "dragoman_sqlite" in loaded
    assert not loaded & {"sqlalchemy", "asyncpg", "psycopg", "trino", "duckdb", "rich", "fastmcp"}
