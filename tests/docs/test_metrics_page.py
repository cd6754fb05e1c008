"""docs/metrics.md, followed: a gateway as the page configures it, what a scraper and a collector get, and its log."""

import importlib.util
import json
import os
import re
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
    "traceparent": f"00-{TRACE}-00f067aa0ba902b7-01",
}
HEADERS = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "execute_query",
}
OWN = """transport = "http"
port = 0
slow_query = 0.000001
[databases.shop]
url = "sqlite:///shop.db"
[audit]
path = "calls.jsonl"
"""


def shown(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    (tmp_path / "dragoman.toml").write_text(shown("toml") + OWN)
    return tmp_path


@contextmanager
def serving(folder: Path, **variables: str) -> Iterator[tuple[httpx2.Client, list[dict[str, Any]]]]:
    """Serve the folder; yield a client and the lines of the log, all of them once the server has ended."""
    command = [sys.executable, "-m", "dragoman", "serve"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")} | variables
    with Popen(command, cwd=folder, env=environment, stderr=PIPE, text=True) as process:
        assert process.stderr is not None
        log: list[dict[str, Any]] = []
        found = None
        while found is None:
            line = process.stderr.readline()
            assert line
            found = re.search(r"serving on (http://\S+)/mcp", line)
        with httpx2.Client(base_url=found[1], timeout=60) as client:
            yield client, log
        process.terminate()
        log += [json.loads(line) for line in process.stderr if line.startswith("{")]


def ask(client: httpx2.Client, sql: str) -> dict[str, Any]:
    params = {"name": "execute_query", "arguments": {"sql": sql}, "_meta": META}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    return dict(client.post("/mcp", json=message, headers=HEADERS).json())


def test_a_scraper_reads_every_metric_of_the_page_and_no_other(folder: Path) -> None:
    with serving(folder) as (client, _):
        assert "result" in ask(client, "SELECT id FROM orders")
        assert ask(client, "DELETE FROM orders")["result"]["isError"]
        assert (client.get("/health").status_code, client.get("/ready").status_code) == (200, 200)
        families = list(text_string_to_metric_families(client.get("/metrics").text))
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `dragoman_")]
    page = {
        name: set(re.findall(r"`(\w+)`", labels)) for names, labels in rows for name in re.findall(r"`(\w+)`", names)
    }
    page.pop("dragoman_worker_up")  # of several processes
    counted = {family.name + "_total" * (family.type == "counter"): family for family in families}
    own = {name: family for name, family in counted.items() if name.startswith("dragoman_")}
    assert own.keys() == page.keys()
    for name, family in own.items():
        assert {label for sample in family.samples for label in sample.labels} - {"le"} == page[name], name


def test_the_page_s_scraper_asks_where_the_metrics_are() -> None:
    (job,) = yaml.safe_load(shown("yaml"))["scrape_configs"]
    assert job.get("metrics_path", "/metrics") == "/metrics"
    assert job["static_configs"] == [{"targets": ["gateway:8080"]}]


def test_a_collector_gets_what_the_page_s_command_sends(folder: Path) -> None:
    spec = importlib.util.spec_from_file_location("collector", ROOT / "tests" / "mcp" / "collector.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    collector = module.Collector()
    settings = dict(re.findall(r"(OTEL_\w+)=(\S+)", shown("console")))
    settings["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    try:
        with serving(folder, **settings) as (client, _):
            assert "result" in ask(client, "SELECT id FROM orders WHERE id = 4711")
    finally:
        collector.close()
    spans = {span["name"]: span for span in collector.spans}
    assert {"tools/call execute_query", "SELECT orders"} <= spans.keys()
    assert {span["trace"] for span in collector.spans} == {TRACE}
    assert "4711" not in str(collector.spans)
    assert collector.metrics >= set(re.findall(r"`((?:mcp|db)\.\w+\.operation\.duration)`", PAGE))
    assert collector.service["service.name"] == settings["OTEL_SERVICE_NAME"]


def test_a_call_is_found_again_and_a_slow_one_is_told(folder: Path) -> None:
    with serving(folder) as (client, log):
        assert "result" in ask(client, "SELECT id FROM orders")
    lines = [json.dumps(line) for line in log if line.get("message") == "slow query"]
    assert len(lines) == 1
    assert '"database": "shop"' in lines[0]
    assert "FROM orders" not in lines[0]
    recorded = [json.loads(line) for file in folder.glob("calls-*") for line in file.read_text().splitlines()]
    (record,) = [each for each in recorded if each.get("sql") == "SELECT id FROM orders"]
    assert record["trace"] == TRACE
    assert TRACE in lines[0]
    assert record["hash"] in lines[0]
