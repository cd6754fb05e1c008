"""docs/running.md, followed: a file is edited, `dragoman reload` checks it, and the server takes it."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    sqlite3.connect(tmp_path / "shop.db").execute("CREATE TABLE orders (id INTEGER)").connection.close()
    (tmp_path / "dragoman.toml").write_text('[databases.shop]\nurl = "sqlite:///shop.db"\n')
    return tmp_path


def start(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "dragoman", "serve", "--transport", "http", "--port", "0"]
    return subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def server(folder: Path) -> Iterator[subprocess.Popen[str]]:
    with start(folder) as process:
        yield process
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)


def logged(server: subprocess.Popen[str], words: str) -> str:
    assert server.stderr is not None
    return next(line for line in server.stderr if words in line)


def reload(folder: Path, pid: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", "reload", str(pid), "--config", "dragoman.toml"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_command_checks_the_file_and_the_server_takes_it(folder: Path, server: subprocess.Popen[str]):
    logged(server, "serving on")
    file = folder / "dragoman.toml"
    right = file.read_text()
    file.write_text(right + "[databases.other]\nurl = 7\n")
    wrong = reload(folder, server.pid)
    assert wrong.returncode == 2
    assert "databases.other.url" in wrong.stderr
    file.write_text(right + '[databases.other]\nurl = "sqlite:///shop.db"\n')
    told = reload(folder, server.pid)
    assert (told.returncode, told.stdout.split(",")[0]) == (0, "The configuration is valid")
    assert "changed: databases.other" in logged(server, "configuration was")
    file.write_text(right + "[server]\ngrace = 9\n")
    assert reload(folder, server.pid).returncode == 0
    assert "server.grace cannot change while the server runs" in logged(server, "configuration was")


def test_a_changed_file_is_taken_by_itself_where_the_server_watches_it(folder: Path):
    file = folder / "dragoman.toml"
    right = file.read_text() + "[server]\nwatch = true\n"
    file.write_text(right)
    with start(folder) as server:
        logged(server, "serving on")
        file.write_text(right + '[databases.other]\nurl = "sqlite:///shop.db"\n')
        assert "changed: databases.other" in logged(server, "configuration was")
        server.send_signal(signal.SIGTERM)
        server.communicate(timeout=60)


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_what_is_no_file_neither_blocks_a_server_that_watches_it_nor_its_end(folder: Path, kind: str):
    file = folder / "dragoman.toml"
    right = file.read_text() + "[server]\nwatch = true\n"
    file.write_text(right)
    with start(folder) as server:
        logged(server, "serving on")
        file.rename(folder / "away")
        {"pipe": lambda: os.mkfifo(file), "device": lambda: file.symlink_to("/dev/zero"), "folder": file.mkdir}[kind]()
        time.sleep(2.5)  # it looks once a second
        file.rename(folder / "odd")
        file.write_text(right + '[databases.other]\nurl = "sqlite:///shop.db"\n')
        try:
            assert "changed: databases.other" in logged(server, "configuration was")
            server.send_signal(signal.SIGTERM)
            server.communicate(timeout=20)
        finally:
            server.kill()


def test_a_process_that_is_not_there_is_told(folder: Path):
    assert "is not a `dragoman serve`" in reload(folder, 2**22 + 1).stderr
