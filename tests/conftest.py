"""What every test beside the distributions shares."""

import pytest


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"
