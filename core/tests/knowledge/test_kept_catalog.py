"""A catalog outlives the gateway, and is read again as soon as the database says that something has changed."""

import sqlite3
import stat
from pathlib import Path

import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, Server
from dragoman.knowledge.kept_catalog import KeptInspector
from dragoman.model import Scope


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def desk(tmp_path: Path) -> Database:
    _run(tmp_path, "CREATE TABLE tickets (id INTEGER PRIMARY KEY, status TEXT)")
    return Database(name="desk", dialect="sqlite", database="desk.db", folder=tmp_path)


def _run(folder: Path, sql: str) -> None:
    with sqlite3.connect(folder / "desk.db") as connection:
        connection.execute(sql)
    connection.close()


class Counting(KeptInspector):
    """Counts how often the database's catalog is read."""

    looks = 0

    def __init__(self, inner, folder, database) -> None:
        super().__init__(inner, folder, database)
        tables = inner.tables

        async def counted(scope: Scope):
            Counting.looks += 1
            return await tables(scope)

        inner.tables = counted


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Open a gateway; return the tables it lists and how often the catalog was read for that."""
    monkeypatch.setattr("dragoman.gateway.opened.KeptInspector", Counting)

    async def started(database: Database, look_again: bool = False) -> tuple[list[str], int]:
        Counting.looks = 0
        configuration = Configuration(databases={"desk": database}, server=Server(state_dir=tmp_path / "state"))
        async with Gateway.open(configuration) as gateway:
            catalog = gateway.database().catalog
            snapshot = await catalog.refresh() if look_again else await catalog.snapshot()
            if look_again:
                snapshot = await catalog.refresh()
            return [f"{table.relation.name} {len(table.columns)}" for table in snapshot.listed], Counting.looks

    return started


async def test_a_restart_reads_no_catalog(desk, start, tmp_path):
    assert await start(desk) == (["tickets 2"], 1)
    assert await start(desk) == (["tickets 2"], 0)
    (kept,) = (tmp_path / "state").glob("*.catalog")
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


async def test_another_file_in_the_place_of_the_first_is_seen_at_once(desk, start, tmp_path):
    await start(desk)
    (tmp_path / "desk.db").unlink()
    _run(tmp_path, "CREATE TABLE clients (id INTEGER PRIMARY KEY)")  # as many changes of the schema as before
    assert await start(desk) == (["clients 1"], 1)


async def test_ddl_between_two_starts_is_seen_at_once_and_kept(desk, start, tmp_path):
    await start(desk)
    _run(tmp_path, "ALTER TABLE tickets ADD COLUMN owner TEXT")
    assert await start(desk) == (["tickets 3"], 1)
    assert await start(desk) == (["tickets 3"], 0)


async def test_who_looks_again_looks_at_the_database(desk, start):
    await start(desk)
    assert await start(desk, look_again=True) == (["tickets 2"], 1)


async def test_a_damaged_file_is_replaced(desk, start, tmp_path):
    await start(desk)
    (kept,) = (tmp_path / "state").glob("*.catalog")
    kept.write_bytes(b"\x01nothing")
    assert await start(desk) == (["tickets 2"], 1)
    assert await start(desk) == (["tickets 2"], 0)


async def test_other_settings_use_nothing_that_was_kept(desk, start):
    await start(desk)
    other = Database(
        **{**{name: getattr(desk, name) for name in ("name", "dialect", "database", "folder")}, "user": "ada"}
    )
    assert (await start(other))[1] == 1
