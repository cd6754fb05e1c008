"""Resources, prompts and completions over the protocol, in both eras."""

from collections.abc import AsyncIterator
from types import ModuleType
from typing import Any

import anyio
import mcp_types as types
import pytest
from contents import text_in
from dragoman.mcp import subscriptions
from dragoman.mcp.calls import Calls
from dragoman.mcp.refusals import Refused
from dragoman.mcp.server import build
from dragoman.model import LOCAL, Principal
from dragoman.tools.surfaces import Change
from mcp import Client, MCPError
from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated
from mcp.shared.exceptions import MCPDeprecationWarning


@pytest.fixture
def toolbox(standin: ModuleType) -> Any:
    return standin.StandIn()


@pytest.fixture(params=["auto", "legacy"])
async def client(request: pytest.FixtureRequest, toolbox: Any) -> AsyncIterator[Client]:
    async with Client(build(toolbox), mode=request.param) as client:
        yield client


async def test_resources_templates_and_prompts_are_listed_with_their_tags(client: Client) -> None:
    assert [str(each.uri) for each in (await client.list_resources()).resources] == [
        "test://static-text",
        "test://static-binary",
    ]
    template, _ = (await client.list_resource_templates()).resource_templates
    assert (template.uri_template, template.meta) == ("test://template/{id}/data", {"tags": ["test"]})
    simple, asking = (await client.list_prompts()).prompts
    assert simple.arguments is None
    assert [(each.name, each.required) for each in asking.arguments or ()] == [("arg1", True), ("arg2", True)]


async def test_lists_are_filtered_by_tags(client: Client) -> None:
    meta: Any = {"tags": ["test"]}
    assert [each.name for each in (await client.list_prompts(meta=meta)).prompts] == ["test_prompt_with_arguments"]
    templates = (await client.list_resource_templates(meta=meta)).resource_templates
    assert [each.name for each in templates] == ["template"]
    assert (await client.list_resources(meta=meta)).resources == []


async def test_a_resource_is_read_as_text_or_bytes(client: Client) -> None:
    (text,) = (await client.read_resource("test://template/7/data")).contents
    assert isinstance(text, types.TextResourceContents)
    assert (text.text, text.mime_type) == ('{"id": "7", "templateTest": true}', "application/json")
    (blob,) = (await client.read_resource("test://static-binary")).contents
    assert isinstance(blob, types.BlobResourceContents)


async def test_an_unknown_resource_is_an_error_of_its_era(client: Client, request: pytest.FixtureRequest) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource("test://nothing")
    modern = request.node.callspec.params["client"] == "auto"
    assert caught.value.error.code == (-32602 if modern else -32002)
    assert caught.value.error.data == {"uri": "test://nothing"}


async def test_what_cannot_be_read_now_says_why_and_a_crash_tells_nothing(client: Client) -> None:
    with pytest.raises(MCPError) as caught:
        await client.read_resource("test://busy")
    assert caught.value.error.data == {"code": "BUSY", "suggestion": "Wait."}
    with pytest.raises(MCPError) as caught:
        await client.read_resource("test://crash")
    assert caught.value.error.code == -32603
    assert "hunter2" not in str(caught.value.error)


async def test_a_prompt_is_filled_and_a_missing_argument_or_an_unknown_prompt_is_refused(client: Client) -> None:
    filled = await client.get_prompt("test_prompt_with_arguments", {"arg1": "a", "arg2": "{arg1}"})
    assert [text_in(message.content) for message in filled.messages] == [
        "Prompt with arguments: arg1='a', arg2='{arg1}'"
    ]
    for name, arguments in (("test_prompt_with_arguments", {"arg1": "a"}), ("nothing", {})):
        with pytest.raises(MCPError) as caught:
            await client.get_prompt(name, arguments)
        assert caught.value.error.code == -32602


async def test_the_lists_may_be_kept_by_this_client_for_a_moment(toolbox: Any) -> None:
    async with Client(build(toolbox)) as client:
        for listed in (await client.list_resources(), await client.list_prompts()):
            assert (listed.ttl_ms, listed.cache_scope) == (5_000, "private")


async def test_a_client_of_2026_hears_what_it_listens_to_and_nothing_else(toolbox: Any) -> None:
    changes = toolbox.surfaces.changes
    async with Client(build(toolbox)) as client:
        asked = ["test://a", "secret://b"]
        async with client.listen(resource_subscriptions=asked, resources_list_changed=True) as heard:
            assert heard.honored.resource_subscriptions == changes.watched == ["test://a"]
            for change in (
                Change("resource", "secret://b"),
                Change("tools"),
                Change("resources"),
                Change("resource", "test://a"),
            ):
                changes.tell(change)
            with anyio.fail_after(30):
                first, second = await anext(heard), await anext(heard)
        assert isinstance(first, ResourcesListChanged)
        assert isinstance(second, ResourceUpdated)
        assert second.uri == "test://a"
        with anyio.fail_after(30):
            while changes.watched or changes.listeners:
                await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("answer", [Refused(401, "invalid_token", "No."), Principal("another", subject="another")])
async def test_a_client_that_would_not_be_let_in_any_more_hears_nothing(
    toolbox: Any, monkeypatch: pytest.MonkeyPatch, answer: Any
) -> None:
    monkeypatch.setattr(subscriptions, "CHECK", 3600)
    asked: list[Any] = []

    async def again(_: Any) -> Principal:
        asked.append(answer if len(asked) else LOCAL)
        if isinstance(asked[-1], Refused):
            raise asked[-1]
        return asked[-1]

    changes = toolbox.surfaces.changes
    async with Client(build(toolbox, again=again)) as client, client.listen(resources_list_changed=True) as heard:
        with anyio.fail_after(30):
            changes.tell(Change("resources"))
            assert isinstance(await anext(heard), ResourcesListChanged)
            changes.tell(Change("resources"))
            assert [event async for event in heard] == []
    assert len(asked) == 2
    assert not changes.listeners


async def test_a_client_that_does_not_read_is_given_up(toolbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MAX_WAITING", 3)
    changes = toolbox.surfaces.changes
    async with Client(build(toolbox)) as client, client.listen(resources_list_changed=True) as heard:
        for _ in range(5):  # before the stream has its turn
            changes.tell(Change("resources"))
        with anyio.fail_after(30):
            assert [event async for event in heard] == []


@pytest.fixture
def asked(toolbox: Any, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses of which it was asked whether a caller may read them, which a caller may."""
    asked: list[str] = []
    monkeypatch.setattr(toolbox.surfaces, "may_read", lambda uri, principal: asked.append(uri) or True)
    monkeypatch.setattr(subscriptions, "CHECK", 3600)
    return asked


async def test_a_change_of_a_schema_is_checked_once_and_told_for_each_of_its_addresses(
    toolbox: Any, asked: list[str]
) -> None:
    addresses = ["schema://a", *(f"schema://{name}/main/t{number}" for number in range(40) for name in "ab")]
    async with Client(build(toolbox)) as client, client.listen(resource_subscriptions=addresses) as heard:
        asked.clear()
        for name in "abba":  # before the stream has its turn
            toolbox.surfaces.changes.tell(Change("resource", f"schema://{name}"))
        with anyio.fail_after(30):
            told = [await anext(heard) for _ in addresses]
        assert sorted(event.uri for event in told if isinstance(event, ResourceUpdated)) == sorted(addresses)
        assert asked == ["schema://a", "schema://b"]


async def test_of_many_addresses_the_first_hundred_are_looked_at(toolbox: Any, asked: list[str]) -> None:
    addresses = [f"schema://a/main/t{number}" for number in range(5000)]
    async with Client(build(toolbox)) as client, client.listen(resource_subscriptions=addresses) as heard:
        assert heard.honored.resource_subscriptions == addresses[: subscriptions.MAX_ADDRESSES] == asked


async def test_what_others_listen_to_fills_nobodys_stream(toolbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MAX_WAITING", 3)
    changes = toolbox.surfaces.changes
    async with Client(build(toolbox)) as client, client.listen(resources_list_changed=True) as heard:
        for number in range(10):  # before the stream has its turn
            changes.tell(Change("resource", f"schema://{number}"))
        changes.tell(Change("resources"))
        with anyio.fail_after(30):
            assert isinstance(await anext(heard), ResourcesListChanged)


async def test_there_are_only_so_many_streams(toolbox: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscriptions, "MAX_STREAMS", 1)
    async with Client(build(toolbox)) as client, client.listen(tools_list_changed=True):
        with pytest.raises(MCPError, match="limit"):
            async with client.listen(tools_list_changed=True):
                pass


async def test_a_client_of_2025_hears_over_stdio_what_it_subscribed_to(peer: Any) -> None:
    said = await peer.handshake()
    assert said["result"]["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
    assert "error" not in await peer.request(1, "resources/subscribe", uri="test://a")
    assert (await peer.request(2, "resources/subscribe", uri="secret://b"))["error"]["code"] == -32602
    for kind, uri in (("resource", "test://b"), ("prompts", ""), ("resource", "test://a")):
        await peer.send(
            {
                "jsonrpc": "2.0",
                "id": f"{kind} {uri}",
                "method": "tools/call",
                "params": {"name": "touch", "arguments": {"kind": kind, "uri": uri}},
            }
        )
    heard = [message for message in [await peer.receive() for _ in range(5)] if "method" in message]
    assert [(message["method"], message.get("params", {}).get("uri")) for message in heard] == [
        ("notifications/prompts/list_changed", None),
        ("notifications/resources/updated", "test://a"),
    ]
    assert "error" not in await peer.request(3, "resources/unsubscribe", uri="test://a")


async def test_a_stream_ends_when_the_server_does(toolbox: Any) -> None:
    calls = Calls(toolbox)
    async with Client(build(toolbox, calls)) as client, client.listen(tools_list_changed=True) as heard:
        calls.stop()
        with anyio.fail_after(30):
            assert [event async for event in heard] == []


async def test_a_client_of_2025_hears_no_more_of_what_it_may_no_longer_read(
    toolbox: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []

    async def note(message: Any) -> None:
        if isinstance(message, types.ResourceUpdatedNotification | types.ToolListChangedNotification):
            heard.append(message.method)

    changes = toolbox.surfaces.changes
    async with Client(build(toolbox), mode="legacy", message_handler=note) as client:
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("test://a")
        changes.tell(Change("resource", "test://a"))
        monkeypatch.setattr(toolbox.surfaces, "may_read", lambda uri, principal: False)
        changes.tell(Change("resource", "test://a"))
        changes.tell(Change("tools"))
        with anyio.fail_after(30):
            while "notifications/tools/list_changed" not in heard:
                await anyio.lowlevel.checkpoint()
    assert heard == ["notifications/resources/updated", "notifications/tools/list_changed"]
