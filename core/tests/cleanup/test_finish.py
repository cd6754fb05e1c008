"""Clean-up holds against every way a caller can be cancelled."""

import asyncio

import anyio
import pytest
from dragoman import finish

pytestmark = pytest.mark.anyio


class CleanUp:
    """Clean-up that ends when it is let, and knows whether it came to its end."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.may_end = asyncio.Event()
        self.ended = False

    async def run(self) -> None:
        self.begun.set()
        await self.may_end.wait()
        self.ended = True


async def test_a_caller_cancelled_again_and_again_waits_for_it() -> None:
    clean_up = CleanUp()
    caller = asyncio.create_task(finish(clean_up.run()))
    await clean_up.begun.wait()
    for _ in range(5):
        caller.cancel()
        await asyncio.sleep(0)
        assert not caller.done()
    clean_up.may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert clean_up.ended


async def test_a_cancelled_scope_waits_for_it() -> None:
    clean_up = CleanUp()
    with anyio.CancelScope() as scope:
        scope.cancel()
        asyncio.get_running_loop().call_soon(clean_up.may_end.set)
        await finish(clean_up.run())
    assert clean_up.ended


async def test_what_does_not_end_is_given_up(caplog: pytest.LogCaptureFixture) -> None:
    clean_up = CleanUp()
    await finish(clean_up.run(), 0.01)
    assert not clean_up.ended
    assert "abandoned" in caplog.text


async def test_its_error_is_the_callers() -> None:
    async def fail() -> None:
        raise OSError("the connection is gone")

    with pytest.raises(OSError, match="is gone"):
        await finish(fail())
