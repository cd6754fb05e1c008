"""pytest fixtures: one server per run and major version, a fresh database per module."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator

import pytest

from dragoman_postgres.testing.server import ENVIRONMENT, Server, installations


def _servers() -> list[str]:
    if os.environ.get(ENVIRONMENT):
        return ["environment"]
    return [f"postgres{major}" for major in installations()] or ["none"]


@pytest.fixture(scope="session", params=_servers())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server; the tests that use it run on each major version there is."""
    if request.param == "environment":
        yield Server(os.environ[ENVIRONMENT])
        return
    if request.param == "none":
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded] or set " + ENVIRONMENT)
    running = Server.start(int(request.param.removeprefix("postgres")))
    yield running
    running.stop()


@pytest.fixture(scope="module")
async def database_name(server: Server, anyio_backend: str) -> AsyncGenerator[str]:
    """An empty database for the tests of one module."""
    name = await server.create()
    yield name
    await server.drop(name)
