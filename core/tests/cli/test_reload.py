"""`dragoman reload` signals a server of dragoman's, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest
from dragoman.cli.reload import is_server

from .conftest import Dragoman

SLEEPER = "import sys; print('ready', flush=True); sys.stdin.read()"


@pytest.mark.parametrize(
    "command",
    [
        "/opt/dragoman/bin/python /opt/dragoman/bin/dragoman serve --config x.toml",
        "/usr/bin/python3.11 -m dragoman serve",
        "python3 -I -X dev -W error -m dragoman --color never serve sqlite:///shop.db",
        "dragoman serve",
        "pypy3.11 /bin/dragoman serve",
    ],
)
def test_a_server_is_known_by_its_command(command: str):
    assert is_server(command.split())


@pytest.mark.parametrize(
    "command",
    [
        "",
        "uv run dragoman serve",
        "sudo dragoman serve",
        "vim dragoman serve",
        "python -m dragoman query shop",
        "python -m dragoman_sqlite.worker serve",
        "python script.py dragoman serve",
        "python -c pass dragoman serve",
        "grep dragoman serve",
    ],
)
def test_another_program_is_not_one(command: str):
    assert not is_server(command.split())


@pytest.fixture
def configuration(tmp_path: Path) -> str:
    (tmp_path / "shop.db").touch()
    (tmp_path / "dragoman.toml").write_text('[databases.shop]\nurl = "sqlite:///shop.db"\n')
    return str(tmp_path / "dragoman.toml")


def test_a_process_that_is_no_server_is_left_alone(dragoman: Dragoman, configuration: str):
    command = [sys.executable, "-c", SLEEPER, "dragoman", "serve"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        outcome = dragoman("reload", str(process.pid), "--config", configuration)
        process.stdin.close()
        assert process.wait() == 0
    assert outcome.code == 2
    assert "is not a `dragoman serve`" in outcome.err


@pytest.mark.parametrize("number", ["0", "-1", "+7", "１２", "1_0", " 7", "1.0", "", "99999999999"])
def test_what_is_no_number_of_a_process_is_refused(dragoman: Dragoman, configuration: str, number: str):
    outcome = dragoman("reload", "--config", configuration, "--", number)
    assert outcome.code == 2
    assert "process" in outcome.err
