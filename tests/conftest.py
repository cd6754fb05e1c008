"""What every test beside the distributions shares."""

import pytest
from dragoman.catalog.watch import Watch


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the database asked at every call whether it has changed."""
    monkeypatch.setattr(Watch, "is_due", True)
