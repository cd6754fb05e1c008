"""What was learned outlives the gateway, for the same database, settings and columns, and is verified behind."""

import asyncio
import sqlite3
import stat
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway, KnowledgeSettings, Relation
from dragoman.cli import main
from dragoman.config import Configuration, Server
from dragoman.dialect import WrappedInspector
from dragoman.gateway.opened import OpenDatabase
from dragoman.knowledge.knowledge import BEHIND
from dragoman.model import ColumnProfile, ProfileBudget, Table


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _fill(path: Path, word: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS tickets (id INTEGER PRIMARY KEY, status TEXT)")
        connection.execute("DELETE FROM tickets")
        connection.executemany("INSERT INTO tickets VALUES (?, ?)", [(n, (word, "void")[n % 2]) for n in range(100)])
    connection.close()


@pytest.fixture
def desk(tmp_path: Path) -> Database:
    _fill(tmp_path / "desk.db", "open")
    return Database(name="desk", dialect="sqlite", database="desk.db", folder=tmp_path)


@pytest.fixture
def values(tmp_path: Path) -> Callable[..., Any]:
    """Open a gateway with a folder for its state, and return the values of `tickets.status` it knows."""

    async def known(database: Database) -> set[str]:
        server = Server(state_dir=tmp_path / "state")
        async with Gateway.open(Configuration(databases={database.name: database}, server=server)) as gateway:
            return await _values(gateway.database())

    return known


async def _values(opened: OpenDatabase, *, asked: bool = True) -> set[str]:
    (table,) = (await opened.catalog.snapshot()).listed
    insight = (await opened.insights([table]))[table.relation] if asked else opened.knowledge.get_known(table)
    return set(insight.profiles["status"].values) if "status" in insight.profiles else set()


async def test_what_was_learned_is_told_after_a_restart_without_asking(desk, values, tmp_path):
    assert await values(desk) == {"open", "void"}
    _fill(tmp_path / "desk.db", "paid")
    assert await values(desk) == {"open", "void"}
    (kept,) = (tmp_path / "state").glob("*.knowledge")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_another_column_or_another_setting_is_learned_anew(desk, values, tmp_path):
    assert await values(desk) == {"open", "void"}
    _fill(tmp_path / "desk.db", "paid")
    hidden = replace(desk, knowledge=KnowledgeSettings(hide_values=("status",)))
    assert await values(hidden) == set()
    with sqlite3.connect(tmp_path / "desk.db") as connection:
        connection.execute("ALTER TABLE tickets ADD COLUMN extra TEXT")
    connection.close()
    assert await values(desk) == {"paid", "void"}


@pytest.mark.parametrize("content", [b"", b"no state", b"\x93\x01\xa1x\x90"])
async def test_a_file_that_cannot_be_read_is_made_anew(desk, values, tmp_path, content):
    await values(desk)
    (kept,) = (tmp_path / "state").glob("*.knowledge")
    whole = kept.read_bytes()
    kept.write_bytes(content)
    assert await values(desk) == {"open", "void"}
    assert len(kept.read_bytes()) == len(whole)


async def test_what_was_known_of_dropped_tables_does_not_pile_up(desk, tmp_path):
    configuration = Configuration(databases={"desk": desk}, server=Server(state_dir=tmp_path / "state"))
    sizes: list[int] = []
    for first in range(0, 20, 10):
        async with Gateway.open(configuration) as gateway:
            for number in range(first, first + 10):
                _replace_table(tmp_path / "desk.db", number)
                opened = gateway.database()
                await opened.insights((await opened.catalog.refresh()).listed)
        (kept,) = (tmp_path / "state").glob("*.knowledge")
        sizes.append(len(kept.read_bytes()))
    assert sizes[0] == sizes[1] < 1_000


def _replace_table(path: Path, number: int) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"CREATE TABLE fleeting_{number + 1:02} AS SELECT id, status FROM tickets")
        connection.execute(f"DROP TABLE IF EXISTS fleeting_{number:02}")
    connection.close()


async def test_what_is_old_is_told_and_learned_again_behind(desk, tmp_path):
    brief = replace(desk, knowledge=KnowledgeSettings(refresh_interval=1e-9))
    async with Gateway.open([brief]) as gateway:
        opened = gateway.database()
        assert await _values(opened) == {"open", "void"}
        _fill(tmp_path / "desk.db", "paid")
        async with asyncio.timeout(20):
            while await _values(opened) != {"paid", "void"}:
                await asyncio.sleep(0)


class Slow(WrappedInspector):
    """Learns nothing in the seconds that a caller waits, and all of it later, once it `may`."""

    may: asyncio.Event | None = None

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        if budget.seconds < BEHIND:
            await self.end(budget)
            return {}
        if self.may is not None:
            await self.may.wait()
        return await super().profiles(tables, budget)

    async def end(self, budget: ProfileBudget) -> None:
        """Return when the time is up."""
        await asyncio.sleep(budget.seconds)


class Endless(Slow):
    """Does not look at its budget."""

    async def end(self, budget: ProfileBudget) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize("kind", [Slow, Endless])
async def test_what_takes_longer_than_a_caller_waits_is_learned_behind(desk, kind):
    async with Gateway.open([desk]) as gateway:
        opened = gateway.database()
        knowledge = opened.knowledge
        knowledge._inspector = slow = kind(knowledge._inspector)
        slow.may = asyncio.Event()
        (table,) = (await opened.catalog.snapshot()).listed
        assert "status" not in (await knowledge.of([table], 0.05))[table.relation].profiles
        slow.may.set()
        async with asyncio.timeout(20):
            while "status" not in knowledge.get_known(table).profiles:
                await asyncio.sleep(0)


async def test_a_table_that_no_time_was_left_for_stays_unknown(desk):
    async with Gateway.open([desk]) as gateway:
        opened = gateway.database()
        (table,) = (await opened.catalog.snapshot()).listed
        opened.knowledge._inspector = Slow(opened.knowledge._inspector)
        assert not await opened.knowledge.learn([table], ProfileBudget(seconds=0.0))
        assert await opened.knowledge.learn([table], ProfileBudget())
        assert await _values(opened, asked=False) == {"open", "void"}


async def test_without_a_folder_nothing_is_kept(desk, tmp_path):
    async with Gateway.open([desk]) as gateway:
        assert await _values(gateway.database()) == {"open", "void"}
    assert {path.name for path in tmp_path.iterdir()} == {"desk.db"}


def test_learn_builds_it_ahead_and_needs_a_folder(desk, tmp_path, capsys):
    file = tmp_path / "dragoman.toml"
    file.write_text('[databases.desk]\nurl = "sqlite:///desk.db"\n')
    for written, code, words in (
        ("", 2, "server.state_dir is not set"),
        ('[server]\nstate_dir = "state"\n', 0, "desk: 1 relations, values known of 1"),
    ):
        file.write_text(file.read_text() + written)
        with pytest.raises(SystemExit) as ended:
            main(["learn", "--config", str(file)])
        said = capsys.readouterr()
        assert (ended.value.code, words in said.out + said.err) == (code, True)
    assert len(list((tmp_path / "state").glob("*.knowledge"))) == 1
