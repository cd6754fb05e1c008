"""Administrators add, change and remove databases while the server runs; nobody else sees that they could."""

import asyncio
import json
import stat
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from dragoman import ConfigurationError, Gateway
from dragoman.audit import records
from dragoman.config import load, lock_state
from dragoman.model import Principal
from dragoman.tools import Toolbox, administration
from dragoman.tools.surfaces import Change

from .conftest import ANALYST, ask

ADMIN = Principal("root", subject="root", groups=frozenset({"admins"}))
BOTH = Principal("boss", subject="boss", groups=frozenset({"admins", "analysts"}))
SETTINGS = """
[server]
tools = ["standard", "admin"]
state_dir = "state"
[audit]
path = "audit/calls.jsonl"
[databases.shop]
url = "sqlite:///shop.db"
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.*"]
[roles.operator]
groups = ["admins"]
tools = ["list_databases", "admin"]
"""
Serve = Callable[[], AbstractAsyncContextManager[Toolbox]]


@pytest.fixture
def serve(shop: Path) -> Serve:
    (shop / "dragoman.toml").write_text(SETTINGS)

    @asynccontextmanager
    async def served() -> AsyncIterator[Toolbox]:
        def read():
            return load(shop / "dragoman.toml", environ={"SECRET": "hush"}, folder=shop)

        configuration = read()
        async with Gateway.open(configuration) as gateway:
            yield Toolbox(gateway, profile=configuration.server.tools, reread=read)

    return served


def names(toolbox: Toolbox, principal: Principal) -> set[str]:
    return {tool.name for tool in toolbox.show_to(principal).tools}


async def test_only_who_has_a_role_that_lists_them_sees_the_tools(serve: Serve):
    admin = {"add_database", "edit_database", "remove_database", "reload"}
    async with serve() as toolbox:
        assert names(toolbox, ADMIN) == {"list_databases", *admin}
        assert not names(toolbox, ANALYST) & admin
        assert admin | {"execute_query"} <= names(toolbox, BOTH)


async def test_a_role_without_grants_of_its_own_gets_one(serve: Serve):
    async with serve() as toolbox:
        told = await ask(toolbox, "add_database", ADMIN, name="more", url="sqlite:///shop.db", roles=["operator"])
        assert told == {"name": "more", "status": "ready"}
    async with serve() as toolbox:
        assert "more" in str(await ask(toolbox, "list_databases", ADMIN))


async def test_a_database_is_added_changed_and_removed_and_survives_a_restart(serve: Serve, shop: Path):
    async with serve() as toolbox:
        url = "sqlite:///shop.db"
        told = await ask(toolbox, "add_database", ADMIN, name="more", url=url, roles=["analyst"], max_rows=2)
        assert told == {"name": "more", "status": "ready"}
        assert len((await ask(toolbox, "execute_query", database="more", sql="SELECT * FROM orders"))["rows"]) == 2
        await ask(toolbox, "edit_database", ADMIN, name="more", max_rows=1)
    file = shop / "state" / "databases.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    async with serve() as toolbox:
        assert len((await ask(toolbox, "execute_query", database="more", sql="SELECT * FROM orders"))["rows"]) == 1
        assert await ask(toolbox, "remove_database", ADMIN, name="more") == {"changed": ["more"]}
        gone = await ask(toolbox, "execute_query", database="more", sql="SELECT 1")
        assert gone["error"]["code"] == "UNKNOWN_DATABASE"
    noted = [each.detail for each in records(shop / "audit" / "calls.jsonl") if each.event == "change"]
    assert noted == [f"database more {what} by root" for what in ("added", "changed", "removed")]


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_database", {"name": "other", "url": "sqlite:///shop.db", "roles": ["operator"]}),
        ("edit_database", {"name": "more", "description": "changed"}),
        ("remove_database", {"name": "more"}),
        ("reload", {}),
    ],
)
async def test_a_change_that_cannot_be_recorded_is_not_made(
    serve: Serve, shop: Path, tool: str, arguments: dict[str, str]
):
    async with serve() as toolbox:
        await ask(toolbox, "add_database", ADMIN, name="more", url="sqlite:///shop.db", roles=["operator"])
        kept = (shop / "state" / "databases.json").read_text()
        listed = await ask(toolbox, "list_databases", ADMIN)
        (shop / "dragoman.toml").write_text(SETTINGS + '[databases.third]\nurl = "sqlite:///shop.db"\n')
        (shop / "audit").rename(shop / "elsewhere")
        assert (await ask(toolbox, tool, ADMIN, **arguments))["error"]["code"] == "INTERNAL_ERROR"
        (shop / "elsewhere").rename(shop / "audit")
        assert (shop / "state" / "databases.json").read_text() == kept
        assert await ask(toolbox, "list_databases", ADMIN) == listed
        assert toolbox.gateway.names == ("shop", "more")
    noted = [each.detail for each in records(shop / "audit" / "calls.jsonl") if each.event == "change"]
    assert noted == ["database more added by root"]


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("add_database", {"name": "shop", "url": "sqlite:///shop.db"}, "already"),
        ("add_database", {"name": "odd name", "url": "sqlite:///shop.db"}, "cannot have this name"),
        ("add_database", {"name": "x", "url": "nonsense://host/x"}, "nonsense"),
        ("add_database", {"name": "x", "url": "postgresql://u:${SECRET}@host/x"}, "not replaced"),
        ("add_database", {"name": "x", "url": "sqlite:///shop.db", "roles": ["nobody"]}, "no such role"),
        ("edit_database", {"name": "nowhere", "max_rows": 1}, "no database"),
        ("remove_database", {"name": "shop"}, "No administrator's change of 'shop'"),
    ],
)
async def test_what_is_wrong_is_refused_and_changes_nothing(tool, arguments, words, serve: Serve, shop: Path):
    async with serve() as toolbox:
        error = (await ask(toolbox, tool, ADMIN, **arguments))["error"]
        assert words in error["message"]
        assert toolbox.gateway.names == ("shop",)
    assert not (shop / "state" / "databases.json").exists()
    async with serve() as toolbox:
        assert toolbox.gateway.names == ("shop",)


async def test_no_reload_meets_a_change_that_is_refused(serve: Serve, monkeypatch: pytest.MonkeyPatch):
    """Otherwise whoever sends wrong changes could keep a withdrawn token alive."""
    written: list[object] = []
    monkeypatch.setattr(administration, "write_state", lambda folder, state: written.append(state))
    async with serve() as toolbox:
        for url in ("sqlite:///shop.db?mode=rwc", "nonsense://host/x", "javascript:1", ""):
            assert "error" in await ask(toolbox, "add_database", ADMIN, name="x", url=url)
            assert written == []
            await ask(toolbox, "reload", ADMIN)
        await ask(toolbox, "add_database", ADMIN, name="x", url="sqlite:///shop.db")
        assert len(written) == 1


THIRD = '[databases.third]\nurl = "sqlite:///shop.db"\n'
OPENED = '[roles.visitor]\ngroups = ["visitors"]\n'


@pytest.mark.parametrize(
    ("more", "tool", "arguments"),
    [
        (THIRD, "edit_database", {"name": "third", "description": "changed"}),
        (THIRD, "edit_database", {"name": "third", "roles": ["analyst"]}),
        (OPENED, "add_database", {"name": "third", "url": "sqlite:///shop.db", "roles": ["visitor", "analyst"]}),
        (OPENED, "edit_database", {"name": "shop", "roles": ["visitor"]}),
    ],
)
async def test_no_change_keeps_what_it_was_about_in_the_configuration(
    more: str, tool: str, arguments: dict[str, object], serve: Serve, shop: Path
):
    """Otherwise it would keep a withdrawn token alive, too, and the server from starting."""
    (shop / "dragoman.toml").write_text(SETTINGS + more)
    async with serve() as toolbox:
        assert (await ask(toolbox, tool, ADMIN, **arguments))["status"] == "ready"
        (shop / "dragoman.toml").write_text(SETTINGS)
        assert "error" not in await ask(toolbox, "reload", ADMIN)
        left = toolbox.gateway.names
    async with serve() as toolbox:
        assert toolbox.gateway.names == left
        assert left == (("shop", "third") if tool == "add_database" else ("shop",))
        (warning,) = (each for each in toolbox.gateway.configuration.warnings if "state_dir" in each)
        assert ("roles.visitor" if more is OPENED else "databases.third") in warning


async def test_what_was_given_to_a_few_is_not_open_when_no_role_is_left(serve: Serve, shop: Path):
    async with serve() as toolbox:
        await ask(toolbox, "add_database", ADMIN, name="more", url="sqlite:///shop.db", roles=["analyst"])
    (shop / "dragoman.toml").write_text(SETTINGS.partition("[roles")[0])
    with pytest.raises(ConfigurationError, match="no such role"):
        load(shop / "dragoman.toml", environ={}, folder=shop)


async def test_a_change_that_cannot_be_kept_is_not_applied(serve: Serve, shop: Path):
    async with serve() as toolbox:
        (shop / "state" / "databases.json").mkdir(parents=True)
        error = (await ask(toolbox, "add_database", ADMIN, name="x", url="sqlite:///shop.db"))["error"]
        assert "databases.json cannot be read" in error["message"]
        assert toolbox.gateway.names == ("shop",)


@pytest.mark.parametrize("kept", ["[]", "null", '{"third": 1}', '"text"', "{"])
async def test_a_kept_file_of_another_kind_stops_the_start_in_words(shop: Path, kept: str):
    (shop / "dragoman.toml").write_text(SETTINGS)
    (shop / "state").mkdir()
    (shop / "state" / "databases.json").write_text(kept)
    with pytest.raises(ConfigurationError, match=r"databases\.json cannot be read"):
        load(shop / "dragoman.toml", environ={}, folder=shop)


async def test_changes_of_two_workers_are_all_kept(serve: Serve, shop: Path):
    async with serve() as one, serve() as other:
        added = (
            ask(worker, "add_database", ADMIN, name=f"{name}{number}", url="sqlite:///shop.db")
            for number in range(8)
            for name, worker in (("a", one), ("b", other))
        )
        answers = await asyncio.gather(*added)
        assert [answer["name"] for answer in answers if "error" not in answer] == [each["name"] for each in answers]
    kept = json.loads((shop / "state" / "databases.json").read_text())
    assert kept.keys() == {f"{name}{number}" for number in range(8) for name in "ab"}


async def test_a_database_that_another_worker_removed_is_not_said_to_be_in_the_file(serve: Serve):
    async with serve() as one:
        await ask(one, "add_database", ADMIN, name="more", url="sqlite:///shop.db")
        async with serve() as other:
            assert await ask(one, "remove_database", ADMIN, name="more") == {"changed": ["more"]}
            error = (await ask(other, "remove_database", ADMIN, name="more"))["error"]
            assert error["message"] == "No administrator's change of 'more' is there to remove."


async def test_a_change_waits_for_another_worker_only_for_a_while(
    serve: Serve, shop: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(administration, "TURN", 0)
    async with serve() as toolbox:
        with lock_state(shop / "state") as locked:
            assert locked
            error = (await ask(toolbox, "add_database", ADMIN, name="x", url="sqlite:///shop.db"))["error"]
            assert error["code"] == "BUSY"
        assert (await ask(toolbox, "add_database", ADMIN, name="x", url="sqlite:///shop.db"))["status"] == "ready"


async def test_what_auditors_read_is_not_replaced(serve: Serve, shop: Path):
    auditors = '[roles.auditor]\ngroups = ["auditors"]\n[[roles.auditor.grants]]\ndatabase = "audit"\ntables = ["*"]\n'
    settings = SETTINGS.replace("[audit]", '[audit]\nurl = "sqlite:///audit.db"') + auditors
    (shop / "dragoman.toml").write_text(settings)
    async with serve() as toolbox:
        for tool in ("add_database", "edit_database"):
            error = (await ask(toolbox, tool, ADMIN, name="audit", url="sqlite:///shop.db"))["error"]
            assert error["message"] == "'audit' is the record of this server's calls."


async def test_the_name_of_kept_results_is_not_taken(serve: Serve, shop: Path):
    async with serve() as toolbox:
        error = (await ask(toolbox, "add_database", ADMIN, name="results", url="sqlite:///shop.db"))["error"]
        assert error["message"] == "'results' is the database of kept results."
        assert toolbox.gateway.names == ("shop",)


async def test_a_password_in_an_address_is_kept_in_no_record(serve: Serve, shop: Path):
    async with serve() as toolbox:
        url = "postgresql://reader:s3cret@127.0.0.1:1/nowhere"
        answer = await toolbox.call("add_database", {"name": "far", "url": url}, principal=ADMIN)
        assert json.loads(answer.text)["status"] == "unreachable"
        assert "s3cret" not in answer.text
    assert "s3cret" not in "".join(file.read_text() for file in (shop / "audit").iterdir())


async def test_who_listens_hears_of_a_database_that_was_added(serve: Serve):
    heard: list[Change] = []
    async with serve() as toolbox:
        with toolbox.surfaces.changes.listening(heard.append):
            await ask(toolbox, "add_database", ADMIN, name="more", url="sqlite:///shop.db")
    assert heard == [Change("tools"), Change("resources"), Change("prompts")]


async def test_reload_takes_the_file_as_it_is_now(serve: Serve, shop: Path):
    async with serve() as toolbox:
        (shop / "dragoman.toml").write_text(SETTINGS + '[databases.third]\nurl = "sqlite:///shop.db"\n')
        assert await ask(toolbox, "reload", ADMIN) == {"changed": ["third"]}
        (shop / "dragoman.toml").write_text("[databases.third]\nurl = 7\n")
        error = (await ask(toolbox, "reload", ADMIN))["error"]
        assert "databases.third.url" in error["message"]
        assert toolbox.gateway.names == ("shop", "third")
    noted = [each.detail for each in records(shop / "audit" / "calls.jsonl") if each.event == "change"]
    assert noted == ["configuration reloaded by root"]
