"""Watching a server that runs: what Prometheus reads, what a collector gets, what the log tells of slow queries."""

import asyncio
import importlib.util
import json
import signal
import socket
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, Server
from dragoman.mcp.reloading import Looks
from dragoman.tools import Toolbox
from prometheus_client.parser import text_string_to_metric_families
from serving import client_of

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"
HTTP_TRACE = "0af7651916cd43dd8448eb211c80319c"
MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
JSON = {"accept": "application/json, text/event-stream", "content-type": "application/json"}
CONFIGURATION = """
[server]
metrics = true
slow_query = 0.000001
[audit]
path = "calls.jsonl"
[databases.shop]
url = "sqlite:///shop.db"
"""

Serve = Callable[..., AbstractAsyncContextManager[Any]]


@pytest.fixture
def collector() -> Iterator[Any]:
    spec = importlib.util.spec_from_file_location("collector", Path(__file__).with_name("collector.py"))
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.Collector()
    yield made
    made.close()


@pytest.fixture
def serve(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Serve:
    """`async with serve(transport, more, **settings) as (peer, url)`; `more`: further sections."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (2);")
    connection.close()

    @asynccontextmanager
    async def start(transport: str, more: str = "", **settings: str) -> AsyncIterator[Any]:
        added = "".join(f"{name} = {value}\n" for name, value in settings.items())
        (tmp_path / "dragoman.toml").write_text(CONFIGURATION.replace("[server]\n", f"[server]\n{added}") + more)
        options = ("--config", str(tmp_path / "dragoman.toml"), "--transport", transport)
        if transport == "http":
            options += ("--port", "0")
        async with run(sys.executable, "-m", "dragoman", "serve", *options) as peer:
            url = (await peer.logged(r"serving on (http://\S+?)/mcp"))[1] if transport == "http" else ""
            yield peer, url

    return start


def call(sql: str, **meta: str) -> dict[str, Any]:
    params = {"name": "execute_query", "arguments": {"sql": sql}, "_meta": {**MODERN, **meta}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


async def ask(
    client: httpx2.AsyncClient, url: str, sql: str, headers: dict[str, str] | None = None, **meta: str
) -> Any:
    own = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/call", "mcp-name": "execute_query"}
    answer = await client.post(f"{url}/mcp", json=call(sql, **meta), headers={**JSON, **own, **(headers or {})})
    return answer.json()


def samples(text: str) -> dict[str, float]:
    """Return what Prometheus reads, by name and labels."""
    return {
        f"{sample.name}{json.dumps(sample.labels, sort_keys=True)}": sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_a_file_that_is_being_written_is_not_taken_before_it_stays_as_it_is() -> None:
    def taken(*contents: bytes) -> list[bytes]:
        looks = Looks(b"old")
        return [content for content in contents if looks.is_news(content)]

    assert taken(b"old", b"old") == []
    assert taken(b"half", b"whole", b"whole", b"whole") == [b"whole"]
    assert taken(b"half", b"", b"half", b"whole", b"old") == [], "it is never the same twice"
    assert taken(b"half", b"old", b"old") == [], "it is again what it was"
    assert taken(b"new", b"new", b"", b"", b"new", b"new") == [b"new"], "it was away for a while"
    assert taken(b"new", b"new", b"half", b"newer", b"newer", b"old", b"old") == [b"new", b"newer", b"old"]


async def test_not_even_the_most_detailed_log_has_values(serve: Serve) -> None:
    """Whichever way a request takes: some are answered by libraries, which log what they send."""
    way = {"mcp-protocol-version": "2025-11-25", "accept": "text/event-stream, application/json"}
    asked = [
        call("SELECT 'SECRET' AS v")["params"] | {"_meta": {}},
        call("SELECT 'SECRET' AS v")["params"] | {"_meta": {"progressToken": 1}},
        {"name": "export_result", "arguments": {"sql": "SELECT 'SECRET' AS v"}},
        {"name": "execute_query", "arguments": {"sql": "SELECT 'SECRET' AS v", "keep": "kept"}},
    ]
    calls = [{"jsonrpc": "2.0", "id": 8, "method": "tools/call", "params": params} for params in asked]
    read = {"jsonrpc": "2.0", "id": 8, "method": "resources/read", "params": {"uri": "dragoman://results/kept"}}
    async with serve("http", log_level='"debug"', tools='"full"') as (peer, url):
        async with httpx2.AsyncClient(headers={**JSON, **way}) as client:
            sent = [(each, extra) for each in (*calls, read) for extra in ({}, {"mcp-param-x": "any"})]
            answers = [(await client.post(f"{url}/mcp", json=each, headers=more)).text for each, more in sent]
        assert sum("SECRET" in answer for answer in answers) >= 6
    told = "\n".join(peer.log)
    assert "execute_query" in told
    assert "SECRET" not in told
    assert "signature=" not in told


async def test_prometheus_reads_what_was_called_and_never_who_called(serve: Serve) -> None:
    async with serve("http") as (_, url), httpx2.AsyncClient() as client:
        await ask(client, url, "SELECT id FROM orders")
        await ask(client, url, "SELECT id FROM orders")
        await ask(client, url, "DELETE FROM orders")
        answer = await client.get(f"{url}/metrics")
        found = samples(answer.text)
    labels = '"database": "shop", "outcome": "{}", "tool": "execute_query"'
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert found[f"dragoman_calls_total{{{labels.format('ok')}}}"] == 2
    assert found[f"dragoman_calls_total{{{labels.format('WRITE_OPERATION_DENIED')}}}"] == 1
    both = '"database": "shop", "tool": "execute_query"'
    assert found[f"dragoman_call_duration_seconds_count{{{both}}}"] == 3
    assert (
        found['dragoman_call_duration_seconds_bucket{"database": "shop", "le": "+Inf", "tool": "execute_query"}'] == 3
    )
    assert found[f"dragoman_result_rows_total{{{both}}}"] == 4
    assert found['dragoman_refused_total{"reason": "WRITE_OPERATION_DENIED"}'] == 1
    assert found['dragoman_pool_in_use{"database": "shop"}'] == 0
    assert found['dragoman_database_up{"database": "shop"}'] == 1
    assert found["dragoman_config_version{}"] == 1
    assert "anonymous" not in answer.text


async def test_metrics_are_served_only_where_they_are_configured(serve: Serve) -> None:
    async with serve("http") as (_, url), httpx2.AsyncClient() as client:
        assert (await client.post(f"{url}/metrics")).status_code == 405


@pytest.mark.parametrize("transport", ["http", "stdio"])
async def test_a_collector_gets_spans_under_the_caller_s_trace(
    serve, collector, monkeypatch, transport, tmp_path
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_SERVICE_NAME", "gateway-7")
    async with serve(transport) as (peer, url):
        if transport == "http":
            async with httpx2.AsyncClient() as client:
                linked = {"traceparent": f"00-{HTTP_TRACE}-00f067aa0ba902b7-01"}
                await ask(client, url, "SELECT id FROM orders", linked, traceparent=PARENT, tracestate="v=1")
                await ask(client, url, "SELECT nix FROM orders", linked)
        else:
            await peer.send(call("SELECT id FROM orders", traceparent=PARENT, tracestate="v=1"))
            await peer.answer(7)
        peer.process.send_signal(signal.SIGTERM)
        assert await peer.ended(30) == 0
    first, *more = [span for span in collector.spans if span["kind"] == 2]
    statement = next(span for span in collector.spans if span["kind"] == 3)
    assert (first["name"], first["trace"], first["parent"]) == ("tools/call execute_query", TRACE, "00f067aa0ba902b7")
    assert first["state"] == "v=1"
    told = first["attributes"]
    assert told["mcp.method.name"] == "tools/call"
    assert told["mcp.protocol.version"] == "2026-07-28"
    assert (told["gen_ai.operation.name"], told["gen_ai.tool.name"]) == ("execute_tool", "execute_query")
    assert (told["jsonrpc.request.id"], told["network.transport"]) == ("7", "tcp" if transport == "http" else "pipe")
    assert "error.type" not in told
    assert (statement["name"], statement["trace"], statement["parent"]) == ("SELECT orders", TRACE, first["span"])
    about = statement["attributes"]
    assert (about["db.system.name"], about["db.namespace"], about["db.collection.name"]) == ("sqlite", "shop", "orders")
    assert about["db.operation.name"] == "SELECT"
    assert 0 < statement["nanoseconds"] <= first["nanoseconds"]
    assert collector.service["service.name"] == "gateway-7"
    assert collector.metrics >= {"mcp.server.operation.duration", "db.client.operation.duration"}
    if transport == "http":
        assert first["links"] == [HTTP_TRACE]
        # Without a trace in the message the request's own is the parent.
        assert (more[0]["trace"], more[0]["links"], more[0]["error"]) == (HTTP_TRACE, [], True)
        assert more[0]["attributes"]["error.type"] == "tool_error"
    recorded = [json.loads(line) for file in tmp_path.glob("calls-*") for line in file.read_text().splitlines()]
    assert [record["trace"] for record in recorded if record.get("sql") == "SELECT id FROM orders"] == [TRACE]


async def test_the_log_and_the_audit_carry_the_caller_s_trace_without_a_collector(serve: Serve, tmp_path: Path) -> None:
    async with serve("stdio") as (peer, _):
        await peer.send(call("SELECT id FROM orders", traceparent=PARENT))
        await peer.answer(7)
        found = await peer.logged(r'"call":\{.*"trace":"([0-9a-f]{32})"')
        slow = await peer.logged('"message":"slow query"')
    assert found[1] == TRACE
    line = json.loads(slow.string)
    assert (line["query"]["database"], line["query"]["trace"], line["level"]) == ("shop", TRACE, "warning")
    assert "orders" not in slow.string


async def test_a_collector_that_is_gone_neither_delays_answers_nor_the_end(serve, collector, monkeypatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    collector.close()
    async with serve("stdio") as (peer, _):
        await peer.send(call("SELECT id FROM orders"))
        assert "result" in await peer.answer(7)
        peer.close_stdin()
        assert await peer.ended(30) == 0
    monkeypatch.setattr(collector, "close", lambda: None)


async def test_a_server_that_stops_says_so_first_and_answers_until_then(serve: Serve) -> None:
    async with serve("http", drain="4") as (peer, url), httpx2.AsyncClient() as client:
        assert (await client.get(f"{url}/ready")).status_code == 200
        peer.process.send_signal(signal.SIGTERM)
        while (ready := await client.get(f"{url}/ready")).status_code == 200:
            pass
        answer = await ask(client, url, "SELECT count(*) FROM orders")
        assert (ready.status_code, ready.json()) == (503, {"status": "stopping"})
        assert answer["result"]["structuredContent"]["rows"] == [[2]]
        assert (await client.get(f"{url}/health")).status_code == 200
        assert await peer.ended(30) == 0


async def test_a_database_that_does_not_answer_keeps_nobody_waiting_for_readiness(serve: Serve, tmp_path: Path) -> None:
    """Load balancers and Kubernetes give up after a second unless they are told otherwise."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        frozen = f'\n[databases.frozen]\nurl = "postgresql://reader@127.0.0.1:{port}/shop"\n'
        async with serve("http", more=frozen) as (_, url), httpx2.AsyncClient(timeout=60) as client:
            answers = [await client.get(f"{url}/ready") for _ in range(5)]
    assert {answer.text for answer in answers} == {'{"status":"ready","databases":{"shop":"ready","frozen":"unknown"}}'}
    assert min(answer.elapsed.total_seconds() for answer in answers) < 0.9


@asynccontextmanager
async def reloading(folder: Path) -> AsyncIterator[tuple[Toolbox, Callable[..., Any]]]:
    """Yield a server's tools, and what waits until the database `frozen` is asked and then configures these alone."""
    sqlite3.connect(folder / "shop.db").close()
    asked = asyncio.Event()

    async def say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.set()
        await reader.read()
        writer.close()

    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder)
        port = silent.sockets[0].getsockname()[1]
        frozen = Database(name="frozen", dialect="postgresql", host="127.0.0.1", port=port, database="x", timeout=1)
        known = {"shop": shop, "other": replace(shop, name="other"), "frozen": frozen}
        before = Configuration(databases={"frozen": frozen, "shop": shop}, server=Server(transport="http"))
        async with Gateway.open(before) as gateway:
            toolbox = Toolbox(gateway, profile="full")

            async def take(*names: str) -> None:
                await asked.wait()
                await toolbox.reload(replace(before, databases={name: known[name] for name in names}))

            yield toolbox, take


OTHER_NAMES = pytest.mark.parametrize("names", [("shop",), ("shop", "other", "frozen"), ("other", "shop"), ("other",)])


@OTHER_NAMES
async def test_readiness_names_what_was_asked_although_a_reload_changes_the_databases(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    async with reloading(tmp_path) as (toolbox, take):
        async with client_of(Server(transport="http"), toolbox=toolbox) as client:
            answer = asyncio.create_task(client.get("/ready"))
            await take(*names)
            ready = await answer
    assert ready.status_code == 200
    states = {"frozen": "unknown", "shop": "ready"}
    assert ready.json()["databases"] == {name: states[name] for name in names if name in states}


@OTHER_NAMES
@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("list_databases", {}),
        ("search_catalog", {"query": "orders"}),
        ("search_catalog", {"query": "orders", "kinds": ["table", "value"]}),
        ("search_catalog", {"query": ""}),
        ("read_resource", {"uri": "databases://list"}),
    ],
)
async def test_a_call_about_all_databases_ends_although_a_reload_removes_some(
    tmp_path: Path, names: tuple[str, ...], tool: str, arguments: dict[str, Any]
) -> None:
    async with reloading(tmp_path) as (toolbox, take):
        call = asyncio.create_task(toolbox.call(tool, arguments))
        await take(*names)
        answer = await call
    assert not answer.is_error, answer.text
    assert "no database" not in answer.text
    assert "other" not in answer.text


async def test_a_hangup_takes_the_configuration_and_a_wrong_one_changes_nothing(serve: Serve, tmp_path: Path) -> None:
    file = tmp_path / "dragoman.toml"
    async with serve("http") as (peer, url), httpx2.AsyncClient() as client:
        assert (await ask(client, url, "SELECT count(*) FROM orders"))["result"]["isError"] is False
        wrong = file.read_text() + "[databases.other]\nurl = 'nonsense://x'\n"
        file.write_text(wrong)
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged('"the configuration was not applied')
        assert (await ask(client, url, "SELECT count(*) FROM orders"))["result"]["isError"] is False
        file.write_text(wrong.replace("nonsense://x", "sqlite:///shop.db"))
        peer.process.send_signal(signal.SIGHUP)
        await peer.logged('"the configuration was applied; changed: databases.other"')
        listed = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": MODERN}}
        headers = {**JSON, "mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}
        answer = (await client.post(f"{url}/mcp", json=listed, headers=headers)).text
        assert '"enum":["shop","other"]' in answer
        assert samples((await client.get(f"{url}/metrics")).text)["dragoman_config_version{}"] == 2
