"""What the tests of knowledge share: a Postgres server."""

from collections.abc import Iterator

import pytest
from dragoman_postgres.testing import Server


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    running = Server.start()
    yield running
    running.stop()
