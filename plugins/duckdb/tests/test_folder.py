"""A folder of Parquet and CSV files as a database: its files and nothing else, as they are now."""

import json
import os
import subprocess
import sys

import duckdb
import pytest
from dragoman import (
    ConnectionFailed,
    Database,
    DragomanError,
    Gateway,
    PermissionDenied,
    QueryError,
    Request,
    TableNotFound,
    UnsafeSql,
)
from dragoman.gateway.breaker import FAILURES
from dragoman.workers import Worker
from dragoman_duckdb.executor import DuckDBExecutor


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio
send = Worker.send


@pytest.fixture
def lake(tmp_path) -> Database:
    folder = tmp_path / "lake"
    (folder / "events" / "day=2026-01-01").mkdir(parents=True)
    orders = (
        "SELECT r AS id, r::DECIMAL(30, 4) / 3 AS third, CAST(r + 0.5 AS DECIMAL(12, 2)) AS total FROM range(3) t(r)"
    )
    duckdb.sql(
        f"COPY ({orders}) TO '{folder}/orders.parquet' (KV_METADATA {{'dragoman:types': '{{\"id\": \"oid\"}}'}})"
    )
    duckdb.sql(f"COPY (SELECT 7 AS n) TO '{folder}/events/day=2026-01-01/a.parquet'")
    (folder / "it's odd.csv").write_text("a,b\n1,x\n2,\n")
    (folder / "notes.txt").write_text("no table")
    (tmp_path / "secret.csv").write_text("a\n1\n")
    return Database(name="lake", dialect="duckdb", database="lake", folder=tmp_path)


async def test_every_file_and_folder_of_files_is_a_table(lake):
    async with Gateway.open([lake]) as gateway:
        snapshot = await gateway.database().catalog.snapshot()
        tables = {table.relation.name: table for table in snapshot.visible}
        assert sorted(tables) == ["events", "it's odd", "orders"]
        assert {table.type for table in tables.values()} == {"table"}
        assert [table.definition for table in tables.values()] == [None] * 3
        assert tables["orders"].columns[0].comment == "oid, as exact text"
        assert (await gateway.query(None, "SELECT id, total FROM orders")).rows == [
            [0, "0.50"],
            [1, "1.50"],
            [2, "2.50"],
        ]
        assert (await gateway.query(None, 'SELECT b FROM "it\'s odd" ORDER BY a')).rows == [["x"], [None]]
        assert (await gateway.query(None, "SELECT n, day FROM events")).rows == [[7, "2026-01-01"]]


async def test_files_of_a_table_that_differ_in_columns_are_told(lake):
    events = lake.folder / "lake" / "events"
    (events / "day=2026-01-02").mkdir()
    duckdb.sql(f"COPY (SELECT 7 AS n, 8 AS more) TO '{events}/day=2026-01-01/a.parquet'")
    duckdb.sql(f"COPY (SELECT 9 AS n) TO '{events}/day=2026-01-02/a.parquet'")
    async with Gateway.open([lake]) as gateway:
        with pytest.raises(QueryError) as failed:
            await gateway.query(None, "SELECT * FROM events")
        assert 'column "more" was read from' in failed.value.message
        assert str(lake.folder) not in failed.value.message
        assert "name the columns" in (failed.value.suggestion or "")
        assert (await gateway.query(None, "SELECT n FROM events ORDER BY n")).rows == [[7], [9]]


async def test_links_that_lead_nowhere_or_in_circles_are_left_out(lake):
    (lake.folder / "lake" / "gone.parquet").symlink_to("nowhere.parquet")
    (lake.folder / "lake" / "round.csv").symlink_to("round.csv")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[3]]


@pytest.mark.parametrize(("place", "code"), [(100, "CONNECTION_ERROR"), (-1_900, "TABLE_NOT_FOUND")])
async def test_a_file_that_is_damaged_while_it_is_served_is_an_error_without_its_path(lake, place, code):
    file = lake.folder / "lake" / "long.parquet"
    duckdb.sql(f"COPY (SELECT r, md5(r::VARCHAR) AS t FROM range(50000) t(r)) TO '{file}'")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM long")).rows == [[50_000]]
        with file.open("r+b") as opened:
            opened.seek(place, os.SEEK_END if place < 0 else os.SEEK_SET)
            opened.write(b"\xff" * 1_900)
        with pytest.raises(DragomanError) as caught:
            await gateway.query(None, "SELECT sum(r) FROM long")
    assert caught.value.code == code
    assert str(lake.folder) not in f"{caught.value.message} {caught.value.suggestion}"


async def test_a_damaged_file_keeps_nobody_from_the_others(lake):
    file = lake.folder / "lake" / "long.parquet"
    duckdb.sql(f"COPY (SELECT r, md5(r::VARCHAR) AS t FROM range(50000) t(r)) TO '{file}'")
    with file.open("r+b") as opened:
        opened.seek(100)
        opened.write(b"\xff" * 1_900)
    async with Gateway.open([lake]) as gateway:
        for _ in range(2 * FAILURES):
            with pytest.raises(ConnectionFailed, match="its file cannot be read"):
                await gateway.query(None, "SELECT sum(r) FROM long")
            assert gateway.database().health.known.state != "unreachable"
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[3]]


async def test_a_file_that_comes_or_goes_is_seen_by_the_next_query(lake):
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[3]]
        (lake.folder / "lake" / "late.csv").write_text("n\n1\n")
        assert (await gateway.query(None, "SELECT n FROM late")).rows == [[1]]
        (lake.folder / "lake" / "orders.parquet").unlink()
        with pytest.raises(TableNotFound):
            await gateway.query(None, "SELECT count(*) FROM orders")


@pytest.mark.parametrize("sql", ["SELECT * FROM read_csv('{}')", "SELECT * FROM '{}'", "SELECT * FROM glob('{}')"])
async def test_nothing_outside_of_the_folder_is_read(lake, sql):
    outside = lake.folder / "secret.csv"
    async with Gateway.open([lake]) as gateway:
        with pytest.raises(UnsafeSql):
            await gateway.query(None, sql.format(outside))
        for path in (outside, lake.folder / "lake" / ".." / "secret.csv"):
            with pytest.raises(PermissionDenied):
                async with gateway.database().executor.open(Request(statement=sql.format(path))):
                    pass


async def test_a_worker_can_write_no_file_even_where_every_other_check_is_gone(lake, tmp_path):
    """The setup of a real worker, and DuckDB asked to write inside the folder it may read."""
    program = """
import duckdb, sys
from dragoman.workers.serving import limit_resources
from dragoman_duckdb.frames import Setup
from dragoman_duckdb.worker.opening import open_sealed
limit_resources(4 << 30, 0)
connection = open_sealed(Setup(path=sys.argv[1], memory=200, threads=1))
try:
    connection.execute(f"COPY (SELECT 1) TO '{sys.argv[1]}/out.csv'")
except duckdb.Error as error:
    print(type(error).__name__)
"""
    folder = lake.folder / "lake"
    done = subprocess.run([sys.executable, "-c", program, str(folder)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "IOException"
    assert not (folder / "out.csv").exists() or (folder / "out.csv").stat().st_size == 0


async def test_a_worker_that_heeds_no_interrupt_is_killed_and_the_next_query_runs(lake, monkeypatch):
    async with Gateway.open([lake]) as gateway:
        executor = gateway.database().executor
        assert isinstance(executor, DuckDBExecutor)
        monkeypatch.setattr(
            Worker, "send", lambda self, order: None if type(order).__name__ == "Cancel" else send(self, order)
        )
        endless = "SELECT count(*) FROM range(10000000) a, range(10000000) b, range(1000) c"
        async with executor._pool.lend(60) as worker:
            worker.send(executor.order(Request(statement=endless)))
        assert not worker.alive
        assert (await gateway.query(None, "SELECT 1 AS n")).rows == [[1]]


async def test_the_plan_shows_no_path(lake):
    async with Gateway.open([lake]) as gateway:
        plan = await gateway.explain(None, "SELECT * FROM orders WHERE id = 1")
        assert str(lake.folder) not in json.dumps(plan.plan)


@pytest.mark.parametrize("stem", ["own[1]", "own*", "own?", "own[", "*", "[!x]wn1", "own**", "o[vwx]n1"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
async def test_a_file_whose_name_reads_as_a_pattern_is_read_alone(tmp_path, stem, suffix):
    place = tmp_path / "lake"
    place.mkdir()
    for name, text in ((stem, "own"), ("own1", "other"), ("ownx", "other")):
        write_table(place / f"{name}{suffix}", text)
    async with Gateway.open([Database(name="lake", dialect="duckdb", database=str(place))]) as gateway:
        assert (await gateway.query(None, f'SELECT * FROM "{stem}"')).rows == [["own"]]


@pytest.mark.parametrize("name", ["own[1]", "own*", "own?", "*"])
async def test_a_folder_whose_name_reads_as_a_pattern_is_read_alone(tmp_path, name):
    place = tmp_path / name
    for folder, text in ((name, "own"), ("own1", "other"), ("ownx", "other")):
        for above in (tmp_path, place):
            (above / folder).mkdir(parents=True)
            write_table(above / folder / "part.parquet", text)
    write_table(place / "one.csv", "own")
    async with Gateway.open([Database(name="lake", dialect="duckdb", database=str(place))]) as gateway:
        for table in (name, "one"):
            assert (await gateway.query(None, f'SELECT * FROM "{table}"')).rows == [["own"]]


async def test_a_link_that_leads_out_of_the_folder_is_no_table(lake):
    (lake.folder / "lake" / "out.csv").symlink_to("../secret.csv")
    (lake.folder / "lake" / "in.csv").symlink_to("it's odd.csv")
    (lake.folder / "lake" / "deep" / "day=1").mkdir(parents=True)
    duckdb.sql(f"COPY (SELECT 1 AS secret) TO '{lake.folder / 'secret.parquet'}'")
    (lake.folder / "lake" / "deep" / "day=1" / "out.parquet").symlink_to(lake.folder / "secret.parquet")
    async with Gateway.open([lake]) as gateway:
        snapshot = await gateway.database().catalog.snapshot()
        assert sorted(table.relation.name for table in snapshot.visible) == ["events", "in", "it's odd", "orders"]
        assert (await gateway.query(None, 'SELECT count(*) FROM "in"')).rows == [[2]]


@pytest.mark.parametrize(
    "told",
    [
        *("[1]", "{", '"x"', "7", "[" * 2_000, '{"id": {"a": 1}}', '{"gone": "oid"}', "\\xFF"),
        *(r'{"\x5Cud800": "oid"}', r'{"id": "\x5Cud800"}'),
    ],
)
async def test_a_file_with_other_metadata_of_our_name_is_read_and_closes_no_other(lake, told):
    file = lake.folder / "lake" / "theirs.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS id) TO '{file}' (KV_METADATA {{'dragoman:types': '{told}'::BLOB}})")
    async with Gateway.open([lake]) as gateway:
        for table, rows in (("orders", 3), ("theirs", 1)):
            assert (await gateway.query(None, f"SELECT count(*) FROM {table}")).rows == [[rows]]


async def test_a_file_whose_name_is_not_unicode_is_left_out_and_closes_no_other(lake):
    (lake.folder / "lake" / os.fsdecode(b"\xff.csv")).write_text("id\n1\n")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[3]]


def write_table(path, text):
    if path.suffix == ".parquet":
        duckdb.sql(f"COPY (SELECT '{text}' AS t) TO '{path}'")
    else:
        path.write_text(f"t\n{text}\n")
