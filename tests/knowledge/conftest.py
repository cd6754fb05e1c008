"""What the tests of knowledge share: a Postgres server, and time to find reasons."""

from collections.abc import Iterator

import pytest
from dragoman_postgres.testing import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    running = Server.start()
    yield running
    running.stop()


@pytest.fixture(autouse=True)
def time_for_reasons(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a gateway look for the reason of an empty answer as long as a busy machine takes."""
    monkeypatch.setattr("dragoman.gateway.emptiness.MOST_SECONDS", 60.0)
