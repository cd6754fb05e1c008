"""Several hosts: a primary and its standby, of which either may stop while queries go on; nothing of ours restarts."""

import asyncio
import os
import shutil

import anyio
import asyncpg
import pytest
from dragoman import Column, ConnectionFailed, DragomanError, Gateway, Kind
from dragoman.gateway import breaker
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.testing import Server, installations

pytestmark = pytest.mark.skipif(not installations(), reason="no PostgreSQL server can be started here")

IS_STANDBY = "SELECT pg_is_in_recovery()"


@pytest.fixture
async def primary(anyio_backend):
    server = Server.start()
    yield server
    server.stop()


@pytest.fixture
async def standby(primary):
    """A server that follows the primary: made of a copy of its data."""
    server = Server.start()
    for each in (primary, server):
        each.halt()
    assert server.folder is not None
    data = server.folder / "data"
    shutil.rmtree(data)
    shutil.copytree(primary.folder / "data", data)
    settings = {"unix_socket_directories": server.folder, "primary_conninfo": f"host={primary.folder} user=postgres"}
    with (data / "postgresql.conf").open("a") as file:
        file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
    (data / "standby.signal").touch()
    owner = server.folder.stat()
    for path in (data, *data.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    for each in (primary, server):
        each.resume()
    yield server
    server.stop()


def over(servers, kind):
    """An executor that may choose among servers, and takes one of a kind."""
    hosts = ",".join(str(server.folder) for server in servers)
    return PostgresExecutor(servers[0].configure("postgres", host=hosts, options={"target_session_attrs": kind}))


async def until(executor, sql, wanted):
    """Ask until the answer is the one that is wanted; failing to connect is no answer."""
    with anyio.fail_after(20):
        while True:
            try:
                if await value_of(executor, sql) == wanted:
                    return
            except ConnectionFailed:
                await asyncio.sleep(0.05)


async def until_one_sleeps(server):
    connection = await asyncpg.connect(server.address("postgres"))
    with anyio.fail_after(20):
        while not await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'"):
            await asyncio.sleep(0.01)
    await connection.close()


async def test_a_standby_that_is_promoted_takes_over(primary, standby):
    executor = over([standby, primary], "primary")
    assert await value_of(executor, IS_STANDBY) is False
    primary.halt()
    error = await failure_of(executor, "SELECT 1")
    assert isinstance(error, ConnectionFailed)
    assert str(primary.folder) not in error.message + error.suggestion
    await standby.run("SELECT pg_promote()")
    await until(executor, IS_STANDBY, False)
    assert await value_of(executor, "SHOW transaction_read_only") == "on"
    await executor.aclose()


@pytest.mark.parametrize(("kind", "standbys"), [("read-write", False), ("read-only", True)])
async def test_a_writer_is_told_by_what_it_is_and_not_by_our_own_read_only_session(primary, standby, kind, standbys):
    executor = over([standby, primary] if kind == "read-write" else [primary, standby], kind)
    assert await value_of(executor, IS_STANDBY) is standbys
    assert await value_of(executor, "SHOW default_transaction_read_only") == "on"
    await executor.aclose()


async def test_what_prefers_a_standby_goes_to_the_primary_when_it_stops_and_comes_back(primary, standby):
    executor = over([primary, standby], "prefer-standby")
    assert await value_of(executor, IS_STANDBY) is True
    running = asyncio.ensure_future(failure_of(executor, "SELECT pg_sleep(60)"))
    await until_one_sleeps(standby)
    standby.halt()
    assert isinstance(await running, ConnectionFailed)
    assert await value_of(executor, IS_STANDBY) is False
    standby.resume()
    await executor.aclose()
    fresh = over([primary, standby], "prefer-standby")
    await until(fresh, IS_STANDBY, True)
    await fresh.aclose()


async def test_what_is_written_is_read_from_the_standby(primary, standby):
    executor = over([primary, standby], "standby")
    await primary.run("CREATE TABLE written AS SELECT 7 AS n")
    with anyio.fail_after(20):
        connection = await asyncpg.connect(standby.address("postgres"))
        while not await connection.fetchval("SELECT to_regclass('written') IS NOT NULL"):
            await connection.execute("SELECT pg_sleep(0.02)")
        await connection.close()
    assert await value_of(executor, "SELECT n FROM written") == 7
    await executor.aclose()


def of_a_caller(gateway, sql):
    """Ask as a call of its own."""
    return asyncio.create_task(gateway.query("postgres", sql))


REFUSED = {"refused": "DELETE FROM t", "failed": "SELECT 1 / 0"}


@pytest.mark.parametrize("sql", REFUSED.values(), ids=REFUSED)
async def test_a_statement_that_does_not_answer_keeps_no_other_caller_from_a_server_that_is_back(
    primary, monkeypatch, sql
):
    monkeypatch.setattr(breaker, "PAUSE", 0.3)
    async with Gateway.open([primary.configure("postgres", host=str(primary.folder))]) as gateway:
        primary.halt()
        for _ in range(breaker.FAILURES):
            with pytest.raises(ConnectionFailed):
                await gateway.query("postgres", "SELECT 1")
        primary.resume()
        with anyio.fail_after(20):
            while True:
                with pytest.raises(DragomanError) as failed:
                    await of_a_caller(gateway, sql)
                if not isinstance(failed.value, ConnectionFailed):
                    break
                await asyncio.sleep(0.02)
        assert [*(await of_a_caller(gateway, "SELECT 1")).rows] == [[1]]


async def test_types_of_another_server_that_answers_at_the_address_are_its_own(primary):
    """Servers that were not made of the same data give one number to different types."""
    other = Server.start()
    try:
        await primary.run(" ".join(f"CREATE TYPE label{n} AS ENUM ('{n}');" for n in range(30)))
        await other.run(" ".join(f"CREATE TYPE pair{n} AS (a integer, b integer);" for n in range(30)))
        labels, pairs = await numbers_of(primary, "label%"), await numbers_of(other, "pair%")
        number = min(set(labels) & set(pairs))
        await primary.run(f"CREATE TABLE held AS SELECT enum_first(NULL::{labels[number]}) AS v")
        await other.run(f"CREATE TABLE held AS SELECT ROW(1, 2)::{pairs[number]} AS v")
        executor = over([primary, other], "any")
        assert (await ask(executor, "SELECT v FROM held"))[0] == [Column("v", labels[number], Kind("text"))]
        primary.halt()
        await until(executor, "SELECT v FROM held", {"a": 1, "b": 2})
        assert [column.type for column in (await ask(executor, "SELECT v FROM held"))[0]] == [pairs[number]]
        await executor.aclose()
    finally:
        other.stop()


async def numbers_of(server, pattern):
    """Types by their numbers in the catalog."""
    connection = await asyncpg.connect(server.address("postgres"))
    sql = "SELECT oid, typname FROM pg_type WHERE typname LIKE $1"
    found = dict(map(tuple, await connection.fetch(sql, pattern)))
    await connection.close()
    return found


BUILT = """
CREATE TABLE shown AS SELECT 'a'::text AS name; CREATE TABLE hid AS SELECT 'marked'::text AS name;
CREATE VIEW t AS SELECT name FROM {source}; CREATE TABLE r AS SELECT 'a'::text AS {column};
"""


async def test_a_server_that_the_same_script_made_is_not_taken_for_the_one_before(primary, tmp_path):
    other, link = Server.start(), tmp_path / "sockets"
    await primary.create(BUILT.format(source="shown", column="name"), name="shop")
    await other.create(BUILT.format(source="hid", column="pin"), name="shop")
    link.symlink_to(primary.folder)
    try:
        database = primary.configure("shop", host=str(link))
        async with Gateway.open([database]) as gateway:
            inspector = gateway.database().inspector
            before = await inspector.fingerprint()
            link.unlink()
            link.symlink_to(other.folder)
            primary.halt()
            assert await inspector.fingerprint() != before
    finally:
        other.stop()


async def test_the_catalog_is_not_read_from_another_cluster_than_queries(primary, tmp_path):
    other, link = Server.start(), tmp_path / "sockets"
    link.symlink_to(primary.folder)
    try:
        async with Gateway.open([primary.configure("postgres", host=str(link))]) as gateway:
            opened = gateway.database()
            before = [await value_of(opened.executor, "SELECT 1"), await opened.inspector.fingerprint()]
            link.unlink()
            link.symlink_to(other.folder)
            for session in vars(opened.executor)["_connections"].idle:
                session.spent = True
            assert [await value_of(opened.executor, "SELECT 1"), await opened.inspector.fingerprint()] != before
    finally:
        other.stop()


async def test_standbys_of_one_cluster_are_one_server(primary, standby):
    told = set()
    for number in (1, 2):
        async with Gateway.open([standby.configure("postgres", name=f"of_{number}")]) as gateway:
            told.add(await gateway.database().inspector.fingerprint())
        standby.halt()
        standby.resume()
    assert len(told) == 1


async def test_a_standby_that_is_promoted_is_not_taken_for_the_one_before(primary, standby):
    async with Gateway.open([standby.configure("postgres")]) as gateway:
        inspector = gateway.database().inspector
        before = await inspector.fingerprint()
        primary.halt()
        await standby.run("SELECT pg_promote()")
        assert await inspector.fingerprint() != before
