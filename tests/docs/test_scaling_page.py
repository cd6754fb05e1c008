"""docs/scaling.md, followed: several processes behind one address, what they say, and one of them that ends."""

import json
import os
import re
import signal
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

import httpx2
import pytest
from prometheus_client.parser import text_string_to_metric_families

PAGE = (Path(__file__).parents[2] / "docs" / "scaling.md").read_text(encoding="utf-8")
JSON = {"accept": "application/json, text/event-stream"}
ROLES = """
[databases.shop]
url = "sqlite:///shop.db"
[roles.counted]
principals = ["*"]
[[roles.counted.grants]]
database = "shop"
tables = ["main.*"]
[roles.counted.limits]
calls_per_minute = 3
"""


def shown(language: str) -> str:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)[0]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    own = 'port = 0\nmetrics = true\nlog_format = "text"\n'
    (tmp_path / "dragoman.toml").write_text(shown("toml") + own + ROLES)
    return tmp_path


@contextmanager
def serving(folder: Path) -> Iterator[tuple[Popen[str], str, dict[int, int]]]:
    """Run the page's command; yield the process, its address, and its workers' processes by number."""
    (command,) = re.findall(r"\$ dragoman (.*)\n", shown("console"))
    words = [sys.executable, "-m", "dragoman", *command.split()]
    with Popen(words, cwd=folder, stderr=PIPE, text=True) as process:
        try:
            address = logged(process, r"serving on (http://\S+)/mcp")[1]
            begun = [logged(process, r"worker (\d) serves, process (\d+)") for _ in range(4)]
            yield process, address, {int(each[1]): int(each[2]) for each in begun}
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=60)


def logged(process: Popen[str], pattern: str) -> re.Match[str]:
    assert process.stderr is not None
    return next(found for line in process.stderr if (found := re.search(pattern, line)))


def ask(address: str) -> dict[str, Any]:
    """Ask over a connection of its own: any worker may get it."""
    params = {"name": "execute_query", "arguments": {"sql": "SELECT count(*) FROM orders"}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    response = httpx2.post(f"{address}/mcp", json=message, headers=JSON, timeout=60)
    assert response.status_code == 200
    body = response.text
    return dict(json.loads(body[body.index("{") :]))["result"]


def test_the_page_s_workers_count_a_caller_together_and_one_that_ends_is_replaced(folder: Path) -> None:
    with serving(folder) as (process, address, workers):
        assert sorted(workers) == [0, 1, 2, 3]
        answers = [ask(address) for _ in range(4)]
        assert [answer["isError"] for answer in answers] == [False, False, False, True]
        assert "QUOTA_EXCEEDED" in str(answers[3])
        text = httpx2.get(f"{address}/metrics", timeout=60).text
        up = {
            int(sample.labels["worker"]): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
            if sample.name == "dragoman_worker_up"
        }
        assert up == dict.fromkeys(range(4), 1.0)
        os.kill(workers[2], signal.SIGKILL)
        number, new = logged(process, r"worker (\d) serves, process (\d+)").groups()
        assert (int(number), int(new) != workers[2]) == (2, True)
        assert httpx2.get(f"{address}/health", timeout=60).status_code == 200
    assert process.returncode == 0
