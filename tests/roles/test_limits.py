"""What a role's limits bound over a while, and what a query may cost."""

import asyncio
import contextlib
import socket
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from dragoman import Database, Gateway
from dragoman.config import load
from dragoman.gateway.breaker import FAILURES
from dragoman.model import Principal
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

from .conftest import ANALYST, ask

GRANT = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["*"]
[roles.analyst.limits]
"""


async def test_a_call_too_many_is_refused_before_it_runs(opened):
    async with opened(GRANT + "calls_per_minute = 2") as toolbox:
        for _ in range(2):
            assert "databases" in await ask(toolbox, "list_databases")
        error = (await ask(toolbox, "execute_query", sql="SELECT 1"))["error"]
        assert error["code"] == "QUOTA_EXCEEDED"
        assert 0 < error["context"]["retry_after"] <= 60
        other = Principal("bob", subject="bob", groups=frozenset({"analysts"}))
        assert "rows" in await ask(toolbox, "execute_query", other, sql="SELECT 1")
        assert 'dragoman_refused_total{reason="QUOTA_EXCEEDED"} 1' in toolbox.gateway.metrics()


async def test_rows_and_bytes_that_were_answered_are_counted(opened):
    async with opened(GRANT + "rows_per_hour = 4\nbytes_per_day = 1000000") as toolbox:
        for _ in range(2):
            assert (await ask(toolbox, "execute_query", sql="SELECT * FROM orders"))["row_count"] == 3
        error = (await ask(toolbox, "execute_query", sql="SELECT * FROM orders"))["error"]
        assert (error["code"], "4 rows an hour" in error["message"]) == ("QUOTA_EXCEEDED", True)


READS = {
    "execute_query": {"sql": "SELECT * FROM orders"},
    "get_sample_rows": {"table_name": "orders"},
    "get_row": {"table_name": "orders", "key": 1, "follow": 1},
    "get_row, from the wide end": {"table_name": "notes", "key": 1, "follow": 3},
    "describe_table": {"table_name": ["orders", "customers"]},
    "search_catalog": {"query": ""},
    "list_tables": {"detail": "full"},
    "read_schema": {},
    "explain_query": {"sql": "SELECT * FROM orders"},
}


@pytest.mark.parametrize("read", READS)
async def test_no_tool_answers_more_bytes_than_the_quota_and_one_answer(opened, shop, read):
    with contextlib.closing(sqlite3.connect(shop / "shop.db")) as made, made:
        made.execute("CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT, order_id INTEGER REFERENCES orders(id))")
        made.execute("INSERT INTO notes VALUES (1, printf('%.2000c', 'x'), 2)")
    roles = GRANT.replace("[[", 'tools = ["full"]\n[[', 1) + "bytes_per_day = 5000"
    async with opened(roles) as small:
        toolbox, answered, longest = Toolbox(small.gateway, profile="full"), 0, 0
        for _ in range(500):
            answer = await toolbox.call(read.partition(",")[0], READS[read], principal=ANALYST)
            if answer.is_error:
                assert "QUOTA_EXCEEDED" in answer.text
                break
            answered, longest = answered + len(answer.text), max(longest, len(answer.text))
        else:
            pytest.fail("no quota")
    # The names of columns, and what surrounds rows, do not count.
    assert answered <= 5 * (5000 + longest), (answered, longest)


FAILING = {
    "execute_query": {"sql": "SELECT * FROM orders WHERE nothing_like_it = 1"},
    "describe_table": {"table_name": "nothing_like_it"},
    "get_sample_rows": {"table_name": "orders", "columns": ["nothing_like_it"]},
}


@pytest.mark.parametrize("read", FAILING)
async def test_errors_are_answers_too_but_for_those_of_the_quota(opened, read):
    """What a database says of an error may hold two thousand characters of values."""
    async with opened(GRANT + "bytes_per_day = 1000") as toolbox:
        codes = [(await ask(toolbox, read, **FAILING[read]))["error"]["code"] for _ in range(30)]
        assert "QUOTA_EXCEEDED" not in codes[:2]
        first = codes.index("QUOTA_EXCEEDED")
        assert set(codes[first:]) == {"QUOTA_EXCEEDED"}


@pytest.mark.parametrize("follow", [0, 1, 2])
async def test_every_row_of_an_answer_counts(opened, follow):
    """An order refers to a customer, and nothing more."""
    roles = GRANT.replace("[[", 'tools = ["full"]\n[[', 1) + "rows_per_hour = 10"
    async with opened(roles) as small:
        toolbox, calls = Toolbox(small.gateway, profile="full"), 0
        while not (
            await toolbox.call("get_row", {"table_name": "orders", "key": 1, "follow": follow}, principal=ANALYST)
        ).is_error:
            calls += 1
    assert calls == (5 if follow else 10)


async def test_the_parts_of_one_call_count_as_one(opened):
    async with opened(GRANT + "calls_per_minute = 1") as toolbox:
        assert (await ask(toolbox, "get_sample_rows", table_name="orders"))["row_count"] == 3
        assert (await ask(toolbox, "get_sample_rows", table_name="orders"))["error"]["code"] == "QUOTA_EXCEEDED"


async def test_where_the_database_tells_no_cost_the_timeout_is_the_bound(opened):
    async with opened(GRANT + "max_cost = 1") as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT * FROM orders"))["row_count"] == 3


@pytest.fixture(scope="module")
def server():
    server = Server.start()
    yield server
    server.stop()


async def test_what_the_database_expects_to_cost_too_much_does_not_run(server, tmp_path):
    database = server.configure("postgres")
    await server.run("CREATE TABLE IF NOT EXISTS orders (id int)")
    (tmp_path / "dragoman.toml").write_text(
        f'[databases.shop]\ndialect = "postgres"\nhost = "{database.host}"\nuser = "{database.user}"\n'
        f'database = "postgres"\n{GRANT}max_cost = 1000'
    )
    configuration = load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)
    cheap, dear = "SELECT 1", "SELECT count(*) FROM generate_series(1, 100000) a, generate_series(1, 100000) b"
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        assert (await ask(toolbox, "execute_query", sql=cheap))["rows"] == [[1]]
        error = (await ask(toolbox, "execute_query", sql=dear))["error"]
        assert error["code"] == "COST_EXCEEDED"
        assert "1000" in error["message"]
        assert (await ask(toolbox, "explain_query", sql=dear))["estimated_cost"] > 1000
        assert (await ask(toolbox, "explain_query", sql=dear, analyze=True))["error"]["code"] == "COST_EXCEEDED"
        async with gateway.stream("shop", cheap, principal=ANALYST) as stream:
            assert [batch async for batch in stream.batches]
        with pytest.raises(Exception, match="expected to cost more"):
            async with gateway.stream("shop", dear, principal=ANALYST):
                pass


async def test_a_sample_costs_what_its_few_rows_do(server, tmp_path):
    await server.run("CREATE TABLE large AS SELECT n AS id, repeat('x', 100) AS note FROM generate_series(1, 50000) n")
    await server.run("ANALYZE large")
    database = server.configure("postgres")
    roles = GRANT.replace('["*"]', '["public.large"]')
    (tmp_path / "dragoman.toml").write_text(
        f'[databases.shop]\ndialect = "postgres"\nhost = "{database.host}"\nuser = "{database.user}"\n'
        f'database = "postgres"\n{roles}max_cost = 100'
    )
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        toolbox = Toolbox(gateway)
        error = (await ask(toolbox, "execute_query", sql="SELECT * FROM large"))["error"]
        assert error["code"] == "COST_EXCEEDED"
        cheap: list[dict[str, Any]] = [{}, {"columns": ["note"]}, {"where_clause": "id > 10"}, {"limit": 20}]
        dear: list[dict[str, Any]] = [{"randomize": True}, {"where_clause": "id > 100000"}]  # these read all of it
        for more in cheap:
            assert "rows" in await ask(toolbox, "get_sample_rows", table_name="large", **more), more
        for more in dear:
            error = (await ask(toolbox, "get_sample_rows", table_name="large", **more))["error"]
            assert error["code"] == "COST_EXCEEDED", more


async def test_a_database_that_is_down_is_not_tried_by_every_caller():
    tries = []

    async def refuse(reader, writer):
        tries.append(1)
        writer.close()

    listener = await asyncio.start_server(refuse, "127.0.0.1", 0, family=socket.AF_INET)
    port = listener.sockets[0].getsockname()[1]
    database = Database(name="shop", dialect="postgres", host="127.0.0.1", port=port, user="ann", database="shop")
    async with listener, Gateway.open([database]) as gateway:
        toolbox = Toolbox(gateway)
        for _ in range(FAILURES):
            error = (await ask(toolbox, "execute_query", sql="SELECT 1"))["error"]
            assert (error["code"], "retry_after" in error.get("context", {})) == ("CONNECTION_ERROR", False)
        tried = len(tries)
        for _ in range(20):
            error = (await ask(toolbox, "execute_query", sql="SELECT * FROM orders"))["error"]
            assert error["code"] == "CONNECTION_ERROR"
            assert error["context"]["retry_after"] > 0
        assert len(tries) == tried


@pytest.mark.parametrize("roles", ["", GRANT.replace('["*"]', '["public.*"]')], ids=["everybody", "roles"])
async def test_a_database_that_is_back_is_found_by_a_query_alone(
    monkeypatch: pytest.MonkeyPatch, server: Server, tmp_path: Path, roles: str
):
    """Judging asks the catalog, as running does the database: both are of the one call that tries."""
    monkeypatch.setattr("dragoman.gateway.breaker.PAUSE", 0.2)
    await server.run("CREATE TABLE IF NOT EXISTS orders (id int)")
    behind = server.configure("postgres")
    back = asyncio.Event()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError), contextlib.closing(writer):
            while data := await reader.read(65536):
                writer.write(data)

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not back.is_set():
            return writer.close()
        path = f"{behind.host}/.s.PGSQL.{behind.port or 5432}"
        further = await asyncio.open_unix_connection(path)
        await asyncio.gather(copy(reader, further[1]), copy(further[0], writer))

    listener = await asyncio.start_server(answer, "127.0.0.1", 0, family=socket.AF_INET)
    port = listener.sockets[0].getsockname()[1]
    url = f"postgresql://{behind.user}@127.0.0.1:{port}/postgres?sslmode=disable"
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "{url}"\n{roles}')
    configuration = load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)
    async with listener, Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        told = [await ask(toolbox, "execute_query", sql="SELECT id FROM orders") for _ in range(FAILURES + 1)]
        assert told[-1]["error"]["context"]["retry_after"] > 0
        back.set()
        async with asyncio.timeout(60):
            while "rows" not in (found := await ask(toolbox, "execute_query", sql="SELECT id FROM orders")):
                await asyncio.sleep(found["error"]["context"].get("retry_after", 0.1))
        assert found["rows"] == []
