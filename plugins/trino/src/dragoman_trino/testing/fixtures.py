"""pytest fixtures: one server per run, shared by every test."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterator
from functools import cache

import pytest

from dragoman_trino.testing.server import ENVIRONMENT, Server


@pytest.fixture(scope="session")
def trino_server() -> Iterator[Server]:
    """A server with the catalogs tpch and memory. In memory, each test uses a schema of its own."""
    if os.environ.get(ENVIRONMENT):
        yield Server.at(os.environ[ENVIRONMENT])
        return
    yield shared_server()


@cache
def shared_server() -> Server:
    """Start the server of this process, once for every `conftest.py` that imports `trino_server`. Both end together."""
    running = start_server(long="CI" in os.environ)  # where whole lanes share it
    atexit.register(running.stop)
    return running


def start_server(**given: object) -> Server:
    """Start a server for tests. If there is none, CI fails and everybody else skips, with the reason."""
    try:
        return Server.start(**given)  # type: ignore[arg-type]
    except (RuntimeError, OSError) as error:
        if "CI" in os.environ:
            raise
        pytest.skip(f"no Trino server: {error}")
