"""The TypeScript SDKs cancel a query: it ends in the database, in both eras and over both transports."""

import asyncio
import json
import os
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from dragoman_postgres.testing.server import Server, installations

HERE = Path(__file__).parent
ENDLESS = "SELECT count(*) AS endless FROM generate_series(1, 1000000000000)"
COUNT = "SELECT count(*) FROM generate_series(1, 3)"
PATIENCE = 60

pytestmark = [pytest.mark.full, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def postgres() -> Any:
    server = Server.start(max(installations()))
    yield server
    server.stop()


@pytest.fixture
async def watch(postgres: Server) -> AsyncIterator[Any]:
    """`await watch(n)` waits until n endless queries run in the database."""
    connection = await asyncpg.connect(postgres.address("postgres"))

    async def wait_for(running: int) -> None:
        counting = (
            "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%generate_series(1, 1000%'"
        )
        async with asyncio.timeout(PATIENCE):
            while await connection.fetchval(counting + " AND pid <> pg_backend_pid()") != running:
                await asyncio.sleep(0.02)

    yield wait_for
    await connection.close()


@pytest.fixture(params=["stdio", "http"])
async def target(request: pytest.FixtureRequest, postgres: Server) -> AsyncIterator[tuple[str, str]]:
    """A transport, and where the client finds the server."""
    serve = [sys.executable, "-m", "dragoman", "serve", postgres.address("postgres")]
    if request.param == "stdio":
        yield "stdio", json.dumps(serve)
        return
    with tempfile.TemporaryFile() as log:
        process = await asyncio.create_subprocess_exec(*serve, "--transport", "http", "--port", "0", stderr=log)
        try:
            async with asyncio.timeout(PATIENCE):
                while not (found := re.search(rb"serving on (http://[^\s\"]+)", os.pread(log.fileno(), 65536, 0))):
                    await asyncio.sleep(0.05)
            yield "http", found[1].decode()
        finally:
            process.terminate()
            await process.wait()


@pytest.mark.parametrize("kind", ["v1", "v2-legacy", "v2-auto"])
async def test_a_cancelled_query_ends_in_the_database(
    kind: str, target: tuple[str, str], node: str, watch: Any, packages: Path
) -> None:
    assert packages.parent == HERE, "Node looks for packages beside the program"
    program = HERE / "cancel.mjs"
    client = await asyncio.create_subprocess_exec(
        node, str(program), kind, *target, ENDLESS, COUNT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE
    )
    try:
        await watch(1)
        said, _ = await asyncio.gather(asyncio.wait_for(client.communicate(b"cancel\n"), PATIENCE), watch(0))
    finally:
        if client.returncode is None:
            client.kill()
            await client.wait()
    assert said[0].decode().split() == ["cancelled", "[[3]]"]
