"""The demo's database lives while somebody uses it, and wakes when it is asked again."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import asyncpg
import pytest
from dragoman import Gateway
from dragoman_postgres import embedded
from dragoman_postgres.demo import build
from dragoman_postgres.testing import Server, installations

pytestmark = pytest.mark.skipif(not installations(), reason="no PostgreSQL server can be started here")

PROGRAM = """
import asyncio, sys
from dragoman import Database, Gateway

async def main():
    database = Database(name="support", dialect="postgres", host=sys.argv[1], database="support", user="reader",
                        options={"embedded": sys.argv[1]})
    async with Gateway.open([database]) as gateway:
        result = await gateway.query(None, "SELECT count(*) FROM ticket")
        print(result.rows[0][0], flush=True)
        if len(sys.argv) > 2:
            sys.stdin.read()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def support(tmp_path_factory):
    (database,) = build(tmp_path_factory.mktemp("demo"))
    folder = database.options["embedded"]
    yield database
    if folder in embedded._running:
        embedded._running.pop(folder).stop()
    shutil.rmtree(folder)


async def is_awake(folder):
    try:
        connection = await asyncpg.connect(host=folder, user="reader", database="support")
    except (OSError, asyncpg.PostgresError):
        return False
    connection.terminate()  # without a word to the server, which may be ending
    return True


async def falls_asleep(folder):
    limit = time.monotonic() + 30
    while await is_awake(folder):
        assert time.monotonic() < limit, "the server goes on"
    return True


def asked(folder, *more):
    command = [sys.executable, "-c", PROGRAM, folder, *more]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


async def test_it_is_asleep_until_it_is_asked_and_sleeps_again_afterwards(support):
    folder = support.options["embedded"]
    assert not await is_awake(folder)
    with asked(folder) as process:
        assert process.communicate(timeout=60)[0] == "600\n"
    assert await falls_asleep(folder)


async def test_it_ends_with_a_process_that_is_killed_and_another_wakes_it_again(support):
    folder = support.options["embedded"]
    with asked(folder, "stay") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "600\n"
        with asked(folder) as second:
            assert second.communicate(timeout=60)[0] == "600\n"
        assert await is_awake(folder)
        os.kill(process.pid, signal.SIGKILL)
    assert await falls_asleep(folder)
    with asked(folder) as process:
        assert process.communicate(timeout=60)[0] == "600\n"
    assert await falls_asleep(folder)


async def test_it_tells_what_postgres_can(support):
    async with Gateway.open([support]) as gateway:
        table = await gateway.database().catalog.find("ticket")
        result = await gateway.query(None, "SELECT state, count(*) FROM ticket GROUP BY 1 ORDER BY 1")
        agent = await gateway.query(None, "SELECT * FROM agent ORDER BY id LIMIT 1")
    assert {key.references.name for key in table.foreign_keys} == {"product", "agent"}
    assert [row[0] for row in result.rows] == ["open", "waiting", "solved"]
    assert agent.rows == [[1, "Yusuf", ["en", "tr"], "[6,15)"]]


def test_its_data_is_gone_with_the_folder_of_the_demo():
    with tempfile.TemporaryDirectory(prefix="dragoman-demo-") as folder:
        (database,) = build(Path(folder))
        data = database.options["embedded"]
        assert Path(data).parent == Path(folder)
        with asked(data) as process:
            assert process.communicate(timeout=60)[0] == "600\n"
        assert not Path(data, "data", "postmaster.pid").exists(), "the process waits for the end of its server"
    assert not Path(folder).exists()


def test_a_server_that_does_not_start_leaves_nothing_behind(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(RuntimeError, match="does not start"):
        Server.start(settings={"no_such_setting": "1"})
    assert not list(Path(tmp_path).iterdir())
