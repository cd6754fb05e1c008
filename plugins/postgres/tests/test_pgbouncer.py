"""Behind PgBouncer in transaction mode: sessions are shared, so nothing may be left in one or expected of one."""

import asyncio
import os
import shutil
import subprocess
import time

import pytest
from dragoman import ExplainOptions, QueryTimeout, Request
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.testing.server import find_unprivileged_user

PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
pytestmark = pytest.mark.skipif(PROGRAM is None, reason="pgbouncer is not installed")
CONFIGURATION = """
[databases]
* = host={folder} port={port}
[pgbouncer]
listen_addr =
unix_socket_dir = {folder}
listen_port = 6432
auth_type = trust
auth_file = {folder}/users.txt
pool_mode = transaction
default_pool_size = 2
logfile = {folder}/pgbouncer.log
{more}
"""
TOLERANT = "ignore_startup_parameters = " + ", ".join(
    (
        "IntervalStyle",
        "extra_float_digits",
        "bytea_output",
        "default_transaction_read_only",
        "client_connection_check_interval",
    )
)


@pytest.fixture(scope="module", params=["strict", "tolerant"])
def bouncer(request, server):
    """A PgBouncer that refuses settings at the start of a session, and one that swallows them."""
    if server.folder is None:
        pytest.skip("needs a server of our own")
    port = server.configure("x").port
    content = CONFIGURATION.format(
        folder=server.folder, port=port, more=TOLERANT if request.param == "tolerant" else ""
    )
    (server.folder / "pgbouncer.ini").write_text(content)
    (server.folder / "users.txt").write_text('"postgres" ""\n')
    owner = find_unprivileged_user()
    for name in ("pgbouncer.ini", "users.txt"):
        if owner:
            os.chown(server.folder / name, owner.pw_uid, owner.pw_gid)
    assert PROGRAM is not None
    process = subprocess.Popen(
        [PROGRAM, server.folder / "pgbouncer.ini"],
        stderr=subprocess.DEVNULL,
        user=owner.pw_uid if owner else None,
        group=owner.pw_gid if owner else None,
    )
    socket, limit = server.folder / ".s.PGSQL.6432", time.monotonic() + 30
    while not socket.exists():
        assert process.poll() is None
        assert time.monotonic() < limit
        time.sleep(0.02)
    yield server
    process.terminate()
    process.wait(10)


@pytest.fixture
async def pooled(bouncer, database_name):
    executor = PostgresExecutor(bouncer.configure(database_name, port=6432, pool_size=6))
    yield executor
    await executor.aclose()


async def test_the_pooler_is_found_and_values_are_as_ever(pooled):
    for _ in range(3):
        _, rows = await ask(
            pooled,
            "SELECT '1 mon'::interval, '2024-01-01 00:00+02'::timestamptz, 0.1::float8, 'x' AS t, ARRAY[1, NULL]",
        )
        assert rows == [["P1M", "2023-12-31 22:00:00+00", 0.1, "x", [1, None]]]
    assert pooled._connections.connector.pooled


async def test_parameters_of_every_kind_are_bound(pooled):
    for _ in range(3):
        sql = "SELECT $1::numeric, $2::date, $3::int[], $4::jsonb, numrange(1, 2), $5::text"
        _, rows = await ask(pooled, sql, "1.50", "2024-01-01", [1, 2], {"a": 1}, "x")
        assert rows == [["1.50", "2024-01-01", [1, 2], {"a": 1}, "[1,2)", "x"]]


async def test_types_of_every_server_are_asked_for_once_and_others_each_time(pooled):
    """Another server may answer each transaction, with other types of the same numbers."""
    builtin = "SELECT 1.50::numeric(9, 2), ARRAY[1.5], $1::integer, $2::text"
    asked: list[str] = []
    for sql, repeated in ((builtin, False), (f"{builtin}, ARRAY['1'::information_schema.cardinal_number]", True)):
        await ask(pooled, sql, 1, "x")
        (session,) = pooled._connections.idle
        with session.connection.query_logger(lambda told: asked.append(told.query)):
            await ask(pooled, sql, 1, "x")
        assert any("pg_catalog.format_type" in query for query in asked) == repeated


async def test_many_callers_share_two_sessions(pooled):
    answers = await asyncio.gather(*(value_of(pooled, f"SELECT {n} FROM pg_sleep(0.002)") for n in range(40)))
    assert answers == list(range(40))


async def test_everything_is_read_only_and_nothing_is_left(pooled, admin):
    await admin.execute("CREATE TABLE IF NOT EXISTS bounced (n integer)")
    for _ in range(4):
        await failure_of(pooled, "SELECT 1 / 0")
        await ask(pooled, "SELECT set_config('timezone', 'Asia/Tokyo', false)")
        assert await value_of(pooled, "SHOW timezone") == "UTC"
        assert await value_of(pooled, "SHOW transaction_read_only") == "on"
        assert await value_of(pooled, "SELECT count(*) FROM pg_prepared_statements") == 0


async def test_plans_are_told(pooled):
    for _ in range(3):
        plan = await pooled.explain(
            Request(statement="SELECT $1::date", parameters=["2024-01-01"]), ExplainOptions(format="json", analyze=True)
        )
        assert plan.actual_time_ms is not None


async def test_deadlines_and_cancellation_end_the_work(pooled, admin, database_name):
    assert isinstance(await failure_of(pooled, "SELECT pg_sleep(30)", timeout=0.2), QueryTimeout)
    task = asyncio.ensure_future(ask(pooled, "SELECT pg_sleep(30)"))
    await asyncio.wait({task}, timeout=0.3)
    task.cancel()
    await asyncio.wait({task})
    busy = "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND datname = $1"
    began = time.monotonic()
    while await admin.fetchval(busy, database_name):
        assert time.monotonic() - began < 20
        await admin.execute("SELECT pg_sleep(0.02)")
    assert await value_of(pooled, "SELECT 1") == 1
