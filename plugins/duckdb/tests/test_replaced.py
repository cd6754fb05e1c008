"""A file that is replaced while the gateway runs: roles follow what it now holds, however busy the workers are."""

import asyncio
import dataclasses
import os
from pathlib import Path

import duckdb
import pytest
from dragoman import Database, Gateway
from dragoman.catalog.watch import CONFIRMED
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import Principal
from dragoman.tools import Toolbox
from dragoman_duckdb.files import identity

ANN = Principal("ann", subject="ann")
TABLES = """
CREATE TABLE shown AS SELECT 'a' AS name;
CREATE TABLE zyx AS SELECT 'marked' AS name;
CREATE TABLE b (pin INTEGER);
"""
BEFORE = TABLES + "CREATE VIEW telling AS SELECT * FROM shown"
AFTER = {
    "a view over a denied table": TABLES + "CREATE VIEW telling AS SELECT * FROM zyx",
    "a view over a view over one": TABLES
    + "CREATE VIEW a AS SELECT * FROM zyx; CREATE VIEW telling AS SELECT * FROM a",
    "a denied column": TABLES + "CREATE TABLE telling AS SELECT 'a' AS name, 'marked' AS pin",
    "a macro over a denied table": TABLES
    + "CREATE MACRO m() AS TABLE (SELECT * FROM zyx); CREATE VIEW telling AS SELECT * FROM m()",
}
ENDLESS = "SELECT count(*) FROM range(1000000000) AS a, range(1000000000) AS b"


def _replace(path: Path, script: str) -> None:
    with duckdb.connect(path.with_suffix(".new")) as connection:
        connection.execute(script)
    os.replace(path.with_suffix(".new"), path)


def _configured(folder: Path, **fields: object) -> Configuration:
    database = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=folder)
    grant = Grant(
        database="shop", tables=("main.*",), deny=("main.zyx",), deny_columns=("*.pin",), key="roles.r.grants.0"
    )
    role = Role(name="r", principals=frozenset({"ann"}), grants=(grant,))
    return Configuration(databases={"shop": dataclasses.replace(database, **fields)}, roles={"r": role})


async def _ask(gateway: Gateway) -> str:
    sql = {"sql": "SELECT * FROM telling"}
    return (await Toolbox(gateway, profile="full").call("execute_query", sql, principal=ANN)).text


@pytest.fixture
def path(tmp_path: Path) -> Path:
    _replace(tmp_path / "shop.duckdb", BEFORE)
    return tmp_path / "shop.duckdb"


@pytest.mark.parametrize("script", AFTER.values(), ids=AFTER)
async def test_what_a_replaced_file_denies_is_gone_within_a_second(path: Path, script: str) -> None:
    async with Gateway.open(_configured(path.parent)) as gateway:
        assert '"rows":[["a"]]' in await _ask(gateway)
        _replace(path, script)
        await asyncio.sleep(CONFIRMED + 0.1)
        assert "marked" not in await _ask(gateway)


async def test_queries_that_hold_every_worker_do_not_keep_a_view_open(path: Path) -> None:
    async with Gateway.open(_configured(path.parent, pool_size=1, timeout=4)) as gateway:
        assert '"rows":[["a"]]' in await _ask(gateway)
        busy = asyncio.create_task(gateway.query("shop", ENDLESS, principal=ANN))
        await asyncio.sleep(CONFIRMED + 0.1)
        waiting = asyncio.create_task(_ask(gateway))  # asks whether the file has changed
        await asyncio.wait([busy, waiting])
        assert busy.exception() is not None
        _replace(path, AFTER["a view over a denied table"])
        await asyncio.sleep(CONFIRMED + 0.1)
        assert "marked" not in await _ask(gateway)


async def test_a_log_beside_the_file_is_a_change(path: Path) -> None:
    async with Gateway.open(_configured(path.parent)) as gateway:
        inspector = gateway.database("shop").inspector
        before = await inspector.fingerprint()
        assert before == await inspector.fingerprint()
        Path(f"{path}.wal").write_bytes(b"changes")
        assert before != await inspector.fingerprint()


def _write(path: Path, columns: str) -> None:
    """Write a Parquet file where another one is, without replacing it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    other = path.with_suffix(".new")
    with duckdb.connect() as connection:
        connection.execute(f"COPY (SELECT {columns}) TO '{other}' (FORMAT parquet)")
    path.write_bytes(other.read_bytes())
    other.unlink()


@pytest.mark.parametrize(
    "where", ["telling.parquet", "telling/a.parquet", "telling/day=1/a.parquet", "telling/a/b.parquet"]
)
async def test_a_denied_column_of_a_file_that_is_written_over_is_gone_within_a_second(
    tmp_path: Path, where: str
) -> None:
    lake = tmp_path / "lake"
    _write(lake / where, "'a' AS name")
    _write(lake / "zyx.parquet", "'marked' AS pin")
    async with Gateway.open(_configured(tmp_path, database="lake")) as gateway:
        assert '"a"' in await _ask(gateway)
        _write(lake / where, "'a' AS name, 'marked' AS pin")
        await asyncio.sleep(CONFIRMED + 0.1)
        assert "COLUMN_NOT_FOUND" in await _ask(gateway)
        _write(lake / where, "'b' AS name")
        await asyncio.sleep(CONFIRMED + 0.1)
        assert '"b"' in await _ask(gateway)


def test_a_file_of_the_same_size_and_time_is_another(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("id,nam\n")
    status, before = file.stat(), identity(str(tmp_path))
    file.write_text("id,pin\n")
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert identity(str(tmp_path)) != before
