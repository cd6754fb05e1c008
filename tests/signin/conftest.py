"""An issuer of tokens for each test."""

from collections.abc import AsyncIterator

import pytest
from issuer import Issuer, running


@pytest.fixture
async def issuer(anyio_backend: str) -> AsyncIterator[Issuer]:
    async with running() as issuer:
        yield issuer
