import json
import os
import re
import shlex
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from dragoman.cli.demo import write_configuration
from dragoman.config import load
from dragoman.model import Database, DeclaredKey, Secret

CALL = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "list_databases", "arguments": {}}},
    )
)
README = Path(__file__).parents[3] / "README.md"
COMMAND = [sys.executable, "-m", "dragoman", "demo"]


def tour(text: str) -> list[str]:
    """Return the lines of the tour from its second step on, without what differs from run to run."""
    shown = text[text.index("\n2. ") : text.index("\n8. ")]
    return [re.sub(r" \(\d+ ms\)$| ~\{.*?\}", "", line) for line in shown.splitlines()]


@pytest.fixture
def environ(folder: Path) -> dict[str, str]:
    """An environment whose temporary files go away with the test, and whose configuration must not be seen."""
    (folder / "dragoman.toml").write_text("broken")
    return {**os.environ, "TMPDIR": str(folder), "DRAGOMAN_DEFAULT_DATABASE": "nosuch"}


def test_the_demo_shows_the_whole_tour_and_ends_with_a_client_configuration_that_works(
    environ: dict[str, str], folder: Path
) -> None:
    shown = subprocess.run(COMMAND, capture_output=True, text=True, env=environ, timeout=100)
    assert (shown.returncode, shown.stderr) == (0, "")
    titles = re.findall(r"^(\d)\. (.*) \(\d+ ms\)$", shown.stdout, re.MULTILINE)
    assert [number for number, _ in titles] == list("12345678")
    for words in ("WRITE_OPERATION_DENIED", "truncated: ", "ran as:", "from postgres to sqlite", "shop", "warehouse"):
        assert words in shown.stdout
    assert tour(README.read_text(encoding="utf-8")) == tour(shown.stdout), "the README shows what the demo shows"
    snippet = json.loads(shown.stdout[shown.stdout.index("{\n") : shown.stdout.index("\n}\n") + 2])
    server = snippet["mcpServers"]["dragoman"]
    command = [server["command"], *server["args"]]
    assert shlex.join(command) in shown.stdout
    served = subprocess.run(command, input=CALL, capture_output=True, text=True, env=environ, timeout=100, check=True)
    answers = [json.loads(line) for line in served.stdout.splitlines()]
    assert "shop" in next(answer for answer in answers if answer.get("id") == 2)["result"]["content"][0]["text"]
    assert not list(folder.glob("dragoman-demo-*")), "the demo leaves nothing behind"


def test_the_demo_can_serve_on_http(environ: dict[str, str]) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--serve", "--port", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environ
    )
    with process:
        assert process.stderr
        line = next(line for line in process.stderr if "serving on" in line)
        address = line.split("serving on ")[1].split("/mcp")[0]
        with urllib.request.urlopen(f"{address}/health", timeout=20) as answer:
            assert json.load(answer) == {"status": "ok"}
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
    assert process.returncode == 0


def test_the_tour_can_be_taken_on_a_configuration_of_ones_own(folder: Path) -> None:
    (folder / "own.toml").write_text('[databases.a]\nurl = "sqlite:///${FILE}"\n')
    command = [*COMMAND, "--config", "own.toml", "--url", "gone=sqlite:///gone.db"]
    shown = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "FILE": "shop.db"}, timeout=100, check=True
    )
    assert 'find_join_path(database="a", from_table="orders", to_table="customers")' in shown.stdout
    assert "unreachable" in shown.stdout


def test_a_written_configuration_means_the_same_databases(tmp_path: Path) -> None:
    database = Database(
        name="a",
        dialect="x",
        host="h",
        port=5,
        password=Secret('p"\\ä'),
        options={"n": 1, "deep": {"er": [True, "t"]}},
        folder=tmp_path,
        schemas=("s",),
        keys=(DeclaredKey("t", ("c",), "u", ("d",)), DeclaredKey("u", ("d",))),
        max_rows=7,
        default_rows=7,
    )
    path = write_configuration(tmp_path, [database])
    assert path.stat().st_mode & 0o077 == 0
    read = load(path, environ={}, folder=tmp_path).databases["a"]
    fields = ("dialect", "host", "port", "password", "options", "schemas", "keys", "max_rows")
    assert [getattr(read, field) for field in fields] == [getattr(database, field) for field in fields]
