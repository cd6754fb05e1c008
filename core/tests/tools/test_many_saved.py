"""Many saved queries: others are served while they are judged, and callers cannot save any number."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from dragoman import Gateway, Principal
from dragoman.config import Configuration, Server
from dragoman.config.roles import Grant, Role
from dragoman.saved import SavedQueries
from dragoman.tools import Toolbox, saved_queries
from dragoman.tools.surfaces import Surfaces

MANY = 40
PART = Principal("ada", issuer="x", subject="ada")
SAVED = "-- database: shop\n{exposed}SELECT {n} FROM users"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    for n in range(MANY):
        exposed = "-- expose: tool\n" if n % 2 else ""
        (folder / f"q{n}.sql").write_text(SAVED.format(n=n, exposed=exposed))
    return folder


@pytest.fixture
async def gateway(database, scripts, folder) -> AsyncIterator[Gateway]:
    role = Role(
        name="part",
        principals=frozenset({"*"}),
        tools=("full",),
        grants=(Grant(database="shop", tables=("main.users",), key="roles.part.grants.0"),),
    )
    configuration = Configuration(
        databases={"shop": database("shop", scripts["shop"])},
        server=Server(queries_dir=folder, save_queries=True),
        roles={"part": role},
    )
    async with Gateway.open(configuration) as opened:
        yield opened


WAYS = {
    "resources": lambda gateway: Surfaces(gateway).resources(PART),
    "list_queries": lambda gateway: Toolbox(gateway, profile="full").call("list_queries", {}, principal=PART),
    "tools": lambda gateway: Toolbox(gateway, profile="full").hidden_tools(PART),
}


@pytest.mark.parametrize("way", WAYS)
async def test_others_are_served_while_saved_queries_are_judged(gateway, monkeypatch, way):
    """What is judged was judged before, so that nothing waits for a database."""
    await WAYS[way](gateway)
    monkeypatch.setattr("dragoman.cooperative.SLICE", -1.0)
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(other())
    await WAYS[way](gateway)
    task.cancel()
    assert turns >= MANY // 2


async def test_no_file_is_read_on_the_event_loop(gateway, monkeypatch):
    """A role that lists tools is asked for the tool of each resource, and again for everybody who listens."""
    real, here = SavedQueries.read, threading.get_ident()

    def read(folder: Path) -> SavedQueries:
        assert threading.get_ident() != here
        return real(folder)

    monkeypatch.setattr(SavedQueries, "read", read)
    surfaces = Surfaces(gateway)
    assert surfaces.templates(PART)
    assert surfaces.may_read("queries://q3", PART)
    assert surfaces.may_read("schema://shop", PART)
    assert await surfaces.resources(PART)
    assert (await surfaces.read("queries://q3", PART)).text


async def test_no_other_query_is_judged_for_one(gateway, monkeypatch):
    judged = []

    async def note(gateway, query, principal):
        judged.append(query.name)

    monkeypatch.setattr(saved_queries, "_judge", note)
    await Surfaces(gateway).read("queries://q3", PART)
    assert await saved_queries.hidden_tools(gateway, ["q5"], PART) == frozenset()
    assert judged == ["q3", "q5"]


async def test_callers_save_no_more_than_a_folder_may_hold(gateway, ask, fail, folder, monkeypatch):
    monkeypatch.setattr("dragoman.tools.saving.MAX_SAVED", MANY + 1)
    toolbox = Toolbox(gateway, profile="full")
    query = {"sql": "SELECT 1", "database": "shop"}
    assert await ask(toolbox, "save_query", name="last", **query) == {"saved": "last"}
    assert (await fail(toolbox, "save_query", {"name": "more", **query}))["code"] == "BUSY"
    assert len(list(folder.iterdir())) == MANY + 1
