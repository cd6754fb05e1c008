import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

SET_PIPE_SIZE = 1031  # F_SETPIPE_SZ
ENDLESS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


def dragoman(*argv: str, **options: Any) -> subprocess.Popen[str]:
    """Start a command as a process of its own."""
    command = [sys.executable, "-m", "dragoman", *argv]
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, **pipes, text=True, preexec_fn=heed_interrupts, **options)


def heed_interrupts() -> None:
    """As in a terminal: who is started in the background of a script inherits that SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def children(pid: int) -> set[int]:
    """Return the processes below `pid`."""
    listed = subprocess.run(["ps", "-A", "-o", "pid=,ppid="], capture_output=True, text=True, check=True).stdout
    pairs = [tuple(map(int, line.split())) for line in listed.splitlines()]
    direct = {child for child, parent in pairs if parent == pid}
    return direct.union(*(children(child) for child in direct))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.usefixtures("folder")
def test_a_signal_ends_the_query_and_its_worker(number: signal.Signals) -> None:
    process = dragoman("query", "sqlite:///shop.db", ENDLESS, "--timeout", "25")
    with process:
        deadline = time.monotonic() + 20
        while not (workers := children(process.pid)) and time.monotonic() < deadline:
            assert process.poll() is None
        process.send_signal(number)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert "Traceback" not in err
    assert workers
    while any(map(alive, workers)):
        assert time.monotonic() < deadline


@pytest.mark.usefixtures("folder")
def test_a_reader_that_leaves_is_no_traceback() -> None:
    process = dragoman("query", "sqlite:///shop.db", "SELECT hex(zeroblob(1000000))", "--format", "csv")
    assert process.stdout
    assert process.stderr
    with process:
        process.stdout.close()
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 1


@pytest.mark.usefixtures("folder")
def test_serve_answers_over_stdio_and_ends_with_its_input() -> None:
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
    process = dragoman("serve", "sqlite:///shop.db")
    out, err = process.communicate(json.dumps(request) + "\n", timeout=60)
    assert process.returncode == 0, err
    assert json.loads(out)["result"]["serverInfo"]["name"] == "dragoman"


@pytest.mark.usefixtures("folder")
def test_logs_are_json_lines_on_stderr_when_asked_for(folder: Path) -> None:
    environ = {**os.environ, "DRAGOMAN_SERVER__LOG_LEVEL": "info"}
    process = dragoman("query", "sqlite:///shop.db", "SELECT 'hunter2' AS x", "--json", env=environ)
    out, err = process.communicate(timeout=60)
    assert json.loads(out)["rows"] == [["hunter2"]]
    lines = [json.loads(line) for line in err.splitlines()]
    call = next(line["call"] for line in lines if line["message"] == "call")
    assert (call["tool"], call["database"], call["outcome"]) == ("execute_query", "shop", "ok")
    assert "hunter2" not in err


@pytest.mark.parametrize("closed", [0, 1, 2])
@pytest.mark.usefixtures("folder")
def test_a_stream_that_nobody_opened_is_no_failure(closed: int) -> None:
    command = [sys.executable, "-m", "dragoman", "query", "sqlite:///shop.db", "SELECT 41 + 1 AS sum"]
    done = subprocess.run(command, capture_output=True, text=True, preexec_fn=lambda: os.close(closed), check=False)
    assert done.returncode == 0
    assert ("42" in done.stdout) is (closed != 1)
    assert done.stderr == ""


@pytest.mark.usefixtures("folder")
def test_serve_answers_where_nobody_opened_stderr() -> None:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    sent = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    command = [sys.executable, "-m", "dragoman", "serve", "sqlite:///shop.db"]
    done = subprocess.run(
        command, input=f"{sent}\n", stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.close(2), check=False
    )
    assert done.returncode == 0
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "dragoman"


@pytest.mark.usefixtures("folder")
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux makes a pipe small")
def test_a_client_that_never_reads_stderr_is_answered() -> None:
    errors, log = os.pipe()
    fcntl.fcntl(log, SET_PIPE_SIZE, 8192)
    command = [sys.executable, "-m", "dragoman", "serve", "sqlite:///shop.db"]
    with (
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True) as process,
        os.fdopen(errors, "rb") as read,
    ):
        os.close(log)
        assert process.stdin is not None
        assert process.stdout is not None

        def call(number: int, method: str, params: dict[str, Any]) -> Any:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            process.stdin.flush()
            return json.loads(process.stdout.readline())

        client = {"name": "test", "version": "1"}
        call(0, "initialize", {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client})
        query = {"name": "execute_query", "arguments": {"sql": "SELECT 1"}}
        assert all("result" in call(number, "tools/call", query) for number in range(1, 100))
        told = os.read(errors, 1 << 16)
        call(100, "tools/call", query)
        process.stdin.close()
        told += read.read()
    lines = [json.loads(line)["message"] for line in told.splitlines()]
    assert sum("lines are left out here: nobody read stderr" in line for line in lines) == 1
