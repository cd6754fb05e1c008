"""A server of ours goes with us, whatever ends us, and one that cannot start says why."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from dragoman_trino.testing import Server

PROGRAM = """
from dragoman_trino.testing import Server
server = Server.start(catalogs={"tpch": {"connector.name": "tpch"}})
print(server.origin, server.folder, flush=True)
input()
"""


@pytest.mark.full
@pytest.mark.timeout(400)
def test_a_server_is_gone_when_who_started_it_is_killed():
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    origin, folder = process.stdout.readline().split()
    assert Server.at(origin).ready
    process.kill()
    process.communicate()
    deadline = time.monotonic() + 30
    while Path(folder).exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not Path(folder).exists()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"{origin}/v1/info")


def test_a_server_that_cannot_start_says_why():
    with pytest.raises(RuntimeError, match=r"no\.such\.setting"):
        Server.start(settings={"no.such.setting": "1"})


def test_a_connector_that_is_not_there_is_told_without_naming_a_host(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    from dragoman_trino.testing.installing import install

    with pytest.raises(RuntimeError, match="trino-no-such-connector 476 could not be downloaded") as raised:
        install("no-such-connector")
    assert "://" not in str(raised.value)
    assert not list((tmp_path / "dragoman" / "trino").iterdir())


def test_a_download_opens_nothing_in_the_process_that_asked_for_it(tmp_path):
    asking = (
        "import sys\n"
        "from dragoman_trino.testing.installing import install\n"
        "try:\n    install('no-such-connector')\nexcept RuntimeError:\n    pass\n"
        "print([name for name in sys.modules if name.partition('.')[0] in ('jgo', 'requests', 'urllib3')])\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", asking], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


@pytest.mark.nightly
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("attempt", range(3))
def test_a_server_is_fetched_into_an_empty_cache_each_time(tmp_path, attempt):
    fetching = (
        "from dragoman_trino.testing.installing import install\n"
        "print([bool(list(install(part).iterdir())) for part in ('server-core', 'tpch')])\n"
    )
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "PYTHONWARNINGS": "error::ResourceWarning"}
    done = subprocess.run([sys.executable, "-c", fetching], env=environment, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("[True, True]\n", "")
