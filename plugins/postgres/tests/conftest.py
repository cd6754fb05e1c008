"""What the tests of this distribution share."""

import pytest

pytest_plugins = ["dragoman_postgres.testing.fixtures"]


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"
