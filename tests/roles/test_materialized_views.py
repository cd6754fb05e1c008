"""A materialized view holds what its query found when it was last refreshed, whatever the query would find now."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

from .conftest import ALL_BUT_ZYX, ANALYST

MADE = """
CREATE SCHEMA {schema};
SET search_path = {schema};
CREATE TABLE zyx (id integer, pin text);
INSERT INTO zyx VALUES (1, 'marked');
CREATE TABLE shown (id integer, pin text);
INSERT INTO shown VALUES (2, 'open');
CREATE VIEW between AS SELECT id, pin FROM zyx;
CREATE VIEW above AS SELECT * FROM between;
CREATE MATERIALIZED VIEW kept AS SELECT id, pin FROM {read};
CREATE MATERIALIZED VIEW again AS SELECT * FROM kept;
CREATE VIEW over_kept AS SELECT * FROM kept;
CREATE OR REPLACE VIEW between AS SELECT id, pin FROM shown;
"""
DIRECT = "CREATE MATERIALIZED VIEW {schema}.direct AS SELECT id, pin FROM {schema}.shown"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server.start()
    yield server
    server.stop()


@asynccontextmanager
async def _opened(server: Server, folder: Path, schema: str) -> AsyncIterator[Toolbox]:
    database = server.configure("postgres")
    url = f"postgresql://{database.user}@/postgres?host={database.host}"
    (folder / "dragoman.toml").write_text(f'[databases.shop]\nurl = "{url}"\n{ALL_BUT_ZYX.format(schema=schema)}')
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        yield Toolbox(gateway, profile="full")


@pytest.mark.parametrize("read", ["between", "above", "(SELECT * FROM shown UNION ALL SELECT * FROM between) AS q"])
async def test_rows_of_a_view_that_was_replaced_are_not_shown(server: Server, tmp_path: Path, read: str) -> None:
    schema = f"kept_{len(read)}"
    await server.run(MADE.format(schema=schema, read=read))
    await server.run(DIRECT.format(schema=schema))
    async with _opened(server, tmp_path, schema) as toolbox:
        told = {
            name: (
                await toolbox.call("execute_query", {"sql": f"SELECT pin FROM {schema}.{name}"}, principal=ANALYST)
            ).text
            for name in ("kept", "again", "over_kept", "between", "direct")
        }
    assert not [name for name, text in told.items() if "marked" in text], told
    assert "open" in told["between"]
    assert "open" in told["direct"]


LEARNED = """
CREATE SCHEMA learned;
SET search_path = learned;
CREATE TABLE zyx AS SELECT n AS id, 'marked' AS state FROM generate_series(1, 100) AS n;
CREATE TABLE shown AS SELECT n AS id, 'open' AS state FROM generate_series(1, 100) AS n;
CREATE MATERIALIZED VIEW kept AS SELECT id, state FROM zyx;
"""
REMADE = """
DROP MATERIALIZED VIEW learned.kept;
CREATE MATERIALIZED VIEW learned.kept AS SELECT id, state FROM learned.shown;
"""


async def test_values_that_were_learned_of_another_materialized_view_are_not_shown(server: Server, tmp_path: Path):
    await server.run(LEARNED)
    await server.run("ANALYZE")
    async with _opened(server, tmp_path, "learned") as toolbox:
        learned = await toolbox.gateway.database("shop").catalog.snapshot()
        assert "marked" in str(await toolbox.gateway.database("shop").insights(learned.listed))
        await server.run(REMADE)
        calls = {
            "describe_table": {"table_name": "learned.kept", "detail": "full"},
            "search_catalog": {"query": "marks marked"},
            "execute_query": {"sql": "SELECT id FROM learned.kept WHERE state = 'opne'"},
        }
        told = [(await toolbox.call(name, given, principal=ANALYST)).text for name, given in calls.items()]
    assert "state" in told[0]
    assert "marked" not in "".join(told).replace("marks marked", ""), told
