"""Whatever a server can say something in is bounded: names, types, errors, plans, values of every width and depth."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

import pytest
from dragoman import Busy, Database, DragomanError, ExplainOptions, Gateway, QueryTimeout
from dragoman.testing.asking import ask
from dragoman.testing.memory import within_memory
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.protocol import Exchange, TooMuch

MOST_BYTES = 20_000
MOST_MEMORY = 64 * 1024 * 1024
"""Of our process beyond what it had, whatever is said."""
NAME = "n" * 20_000


def times(count: int) -> str:
    """Return a join of `a` with itself."""
    return ", ".join(f"a a{n}" for n in range(count))


LONG = "rpad('x', 20000000, 'x')"
MANY = "UNNEST(sequence(1, 1000)) a (n), UNNEST(sequence(1, 1000)) b (m)"
NESTED = ", ".join(f"w{n} AS (SELECT ARRAY[x] AS x FROM w{n - 1})" for n in range(1, 60))
FIELDS = ", ".join(f"field_{n} bigint" for n in range(700))
CHANNELS = {
    "names that come many times": f'WITH a AS (SELECT 1 AS "{NAME}") SELECT * FROM {times(400)}',
    "types that come many times": f"WITH a AS (SELECT CAST(NULL AS ROW({FIELDS})) AS x) SELECT * FROM {times(60)}",
    "an error's message": f"SELECT CAST({LONG} AS integer)",
    "an error that quotes a name": f'SELECT "{NAME}"',
    "a long value": f"SELECT {LONG}",
    "long values": f"SELECT {LONG} FROM UNNEST(sequence(1, 20))",
    "rows of values that are each short enough": f"SELECT rpad('x', 15000, 'x') FROM {MANY}",
    "a long value after short ones": f"SELECT IF(n < 9, 'x', {LONG}) FROM UNNEST(sequence(1, 20)) a (n)",
    "rows of fixed width": f"SELECT n, m, n, m FROM {MANY}",
    "rows of nothing": f"SELECT {', '.join(['NULL'] * 200)} FROM {MANY}",
    "an array": "SELECT sequence(1, 10000)",
    "arrays in arrays": f"WITH w0 AS (SELECT 1 AS x), {NESTED} TABLE w59",
    "deep JSON": "SELECT json_parse(rpad('', 900, '[') || rpad('', 900, ']'))",
}  # fmt: skip


@pytest.fixture(scope="module")
async def gateway(trino_server, anyio_backend: str) -> AsyncGenerator[Gateway]:
    async with Gateway.open([trino_server.configure("tpch", "tiny", pool_size=1)]) as gateway:
        for _ in range(3):
            await gateway.query(None, "SELECT 1")
        yield gateway


async def said(gateway: Gateway, sql: str) -> int:
    """Return how many bytes an answer has, or an error."""
    try:
        result = await gateway.query(None, sql, max_bytes=MOST_BYTES, timeout=5)
    except DragomanError as error:
        return len(str(error.as_dict())) if error.code not in ("DIALECT_ERROR", "INTERNAL_ERROR") else MOST_MEMORY
    return len(result.rows_json) + sum(len(column.name) + len(column.type) for column in result.columns)


@pytest.mark.parametrize("sql", CHANNELS.values(), ids=CHANNELS)
async def test_nothing_that_is_said_is_unbounded_and_the_next_query_is_answered(gateway: Gateway, sql: str):
    async with asyncio.timeout(90), within_memory(MOST_MEMORY):
        assert await said(gateway, sql) <= 2 * MOST_BYTES
        assert (await gateway.query(None, "SELECT 1")).rows == [[1]]


@pytest.mark.parametrize("format", ["text", "json"])
async def test_a_plan_is_bounded(gateway: Gateway, format: Literal["text", "json"]):
    sql = f'SELECT 1 AS "{NAME}" FROM nation WHERE name IN ({", ".join(f"{chr(39)}{n}{chr(39)}" for n in range(2000))})'
    async with asyncio.timeout(90), within_memory(MOST_MEMORY):
        try:
            told = str((await gateway.explain(None, sql, options=ExplainOptions(format=format))).plan)
        except DragomanError as error:
            told = error.message
        assert len(told) < 2_000_000
        assert (await gateway.query(None, "SELECT 1")).rows == [[1]]


class Server(BaseHTTPRequestHandler):
    """A server that says what it is told to say, as long as it is told to."""

    body = b""
    hold = threading.Event()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.hold.wait(30)
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        try:
            self.wfile.write(self.body)
        except OSError:
            return

    def do_DELETE(self) -> None:
        self.send_response(204)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(body: bytes) -> Iterator[int]:
    """Serve answers of our own making; yields the port."""
    Server.body = body
    Server.hold.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        Server.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()


FILL = b"x" * 1_000_000
HEAD = b'{"id":"q","infoUri":"http://x/","nextUri":"http://x/next"'
SHAPES = {
    "columns": HEAD + b',"columns":[{"name":"' + FILL + b'"}],"data":[[1]]}',
    "statistics": HEAD + b',"stats":{"state":"' + FILL + b'"}}',
    "warnings": HEAD + b',"stats":{},"warnings":["' + FILL + b'"]}',
    "an error": b'{"id":"q","stats":{},"error":{"message":"' + FILL + b'"}}',
    "an id": b'{"id":"' + FILL + b'"}',
    "nothing that is known": FILL,
}


@pytest.mark.parametrize("body", SHAPES.values(), ids=SHAPES)
def test_an_answer_that_is_too_long_before_its_rows_is_not_read(body: bytes):
    import requests

    with serving(body) as port:
        exchange = Exchange(
            connect=requests.Session,
            url=f"http://127.0.0.1:{port}/v1/statement",
            sql="SELECT 1",
            most=10_000,
            connect_timeout=5,
        )
        with pytest.raises(TooMuch):
            exchange.page()


async def test_a_place_is_given_back_when_the_server_has_answered():
    """Who gave up waiting leaves a statement behind that nobody can end yet: its place stays occupied."""
    with serving(b'{"id":"q","stats":{}}') as port:
        Server.hold.clear()
        database = Database(
            name="slow", dialect="trino", host="127.0.0.1", port=port, pool_size=1, options={"transactions": False},
            accept_unenforced=True,
        )  # fmt: skip
        executor = TrinoExecutor(database)
        async with asyncio.timeout(60):
            with pytest.raises(QueryTimeout):
                await ask(executor, "SELECT 1", timeout=0.1)
            with pytest.raises(Busy):
                await ask(executor, "SELECT 1", timeout=0.1)
            Server.hold.set()
            while True:
                try:
                    await ask(executor, "SELECT 1", timeout=1)
                    break
                except Busy:
                    continue
        await executor.aclose()
