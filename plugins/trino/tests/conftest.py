"""What the tests of this distribution share."""

from collections.abc import AsyncGenerator

import pytest
from dragoman_trino.client import Client
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.testing.fixtures import trino_server

__all__ = ["trino_server"]


OWN_SERVERS = {"secure_port", "ruled_server"}
"""Fixtures of one module that start a server with settings of its own: half a minute of both processors each."""


def pytest_collection_modifyitems(items):
    # Whichever test comes first waits for the server, at the very first time for its download too.
    for item in items:
        if OWN_SERVERS & set(item.fixturenames) and not item.get_closest_marker("nightly"):
            item.add_marker(pytest.mark.full)
        if "trino_server" in item.fixturenames or "secure_port" in item.fixturenames:
            item.add_marker(pytest.mark.timeout(400))


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def client(trino_server, anyio_backend) -> AsyncGenerator[Client]:
    """Statements of ours."""
    client = Client(trino_server.configure())
    yield client
    await client.aclose()


@pytest.fixture(scope="module")
async def executor(trino_server, anyio_backend) -> AsyncGenerator[TrinoExecutor]:
    """An executor; unqualified tables are those of TPC-H."""
    executor = TrinoExecutor(trino_server.configure("tpch", "tiny"))
    yield executor
    await executor.aclose()
