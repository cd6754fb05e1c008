"""The adapter in memory, in both eras of the protocol."""

import asyncio
import json
from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import pytest
from contents import text_of
from dragoman.mcp.calls import Calls
from dragoman.mcp.server import build
from mcp import Client, MCPError


@pytest.fixture
def toolbox(standin: ModuleType) -> Any:
    return standin.StandIn()


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, toolbox: Any) -> AsyncIterator[Client]:
    async with Client(build(toolbox), mode=request.param) as client:
        yield client


async def test_every_tool_is_listed_as_read_only(client: Client, toolbox: Any) -> None:
    listed = (await client.list_tools()).tools
    assert [tool.name for tool in listed] == [tool.name for tool in toolbox.tools]
    for tool in listed:
        hints = tool.annotations
        assert hints is not None
        assert (hints.read_only_hint, hints.idempotent_hint, hints.open_world_hint) == (True, True, False)


async def test_both_halves_of_an_answer_and_its_meta_arrive(client: Client) -> None:
    result = await client.call_tool("echo", {"a": [1, None, "é"]})
    assert result.structured_content == {"arguments": {"a": [1, None, "é"]}, "who": "local"}
    assert json.loads(text_of(result)) == result.structured_content
    assert result.meta is not None
    assert result.meta["dragoman/elapsed_ms"] == 1.5
    assert not result.is_error


async def test_a_call_without_arguments_reaches_the_toolbox_as_an_empty_object(client: Client) -> None:
    result = await client.call_tool("echo")
    assert result.structured_content is not None
    assert result.structured_content["arguments"] == {}


async def test_an_error_carries_its_text_only(client: Client) -> None:
    result = await client.call_tool("fail")
    assert result.is_error
    assert result.structured_content is None
    assert json.loads(text_of(result)) == {"error": {"code": "QUERY_ERROR"}}


async def test_a_crash_becomes_an_internal_error_that_tells_nothing(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    result = await client.call_tool("crash")
    assert result.is_error
    error = json.loads(text_of(result))
    assert (error["error"]["code"], error["tool_name"]) == ("INTERNAL_ERROR", "crash")
    assert "hunter2" not in result.model_dump_json()
    assert "the toolbox failed on crash" in caplog.text


async def test_an_unknown_tool_is_a_protocol_error(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.call_tool("drop_table")
    assert caught.value.error.code == -32602
    assert "drop_table" in caught.value.error.message


async def test_progress_reaches_a_client_that_asks_for_it(client: Client) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    await client.call_tool("count", progress_callback=note)
    assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]


async def test_a_call_the_client_gives_up_is_cancelled(client: Client, toolbox: Any) -> None:
    call = asyncio.create_task(client.call_tool("wait"))
    await _until(lambda: toolbox.log == ["waiting"])
    call.cancel()
    await _until(lambda: toolbox.log == ["waiting", "cancelled"])


async def test_many_calls_run_at_once(client: Client) -> None:
    results = await asyncio.gather(*(client.call_tool("echo", {"n": n}) for n in range(50)))
    answers = [result.structured_content for result in results]
    assert [answer["arguments"]["n"] for answer in answers if answer] == list(range(50))


async def test_a_server_that_stops_answers_the_calls_it_ends(toolbox: Any) -> None:
    calls = Calls(toolbox)
    async with Client(build(toolbox, calls)) as client:
        call = asyncio.create_task(client.call_tool("wait"))
        await _until(lambda: toolbox.log == ["waiting"])
        calls.stop()
        result = await call
        late = await client.call_tool("wait")
    assert toolbox.log == ["waiting", "cancelled"]
    for answer in (result, late):
        assert answer.is_error
        assert json.loads(text_of(answer))["error"]["code"] == "QUERY_CANCELLED"


async def test_the_tools_may_be_cached_by_this_client_only(toolbox: Any) -> None:
    async with Client(build(toolbox)) as client:
        listed = await client.list_tools()
    assert (listed.ttl_ms, listed.cache_scope) == (60_000, "private")


async def _until(condition: Any) -> None:
    async with asyncio.timeout(30):
        while not condition():
            await asyncio.sleep(0)
