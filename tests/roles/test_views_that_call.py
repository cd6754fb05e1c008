"""A view that calls what may read or tell of anything needs a grant by its own name, whatever tables it names."""

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import duckdb
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.tools import Toolbox
from dragoman_postgres.plugin import plugin as postgres
from dragoman_postgres.testing import Server

from .conftest import ALL_BUT_ZYX, ANALYST

MADE = """
CREATE TABLE shown (id INTEGER, name VARCHAR(10));
INSERT INTO shown VALUES (1, 'a');
CREATE TABLE zyx (pin VARCHAR(10));
INSERT INTO zyx VALUES ('marked');
CREATE VIEW plain AS SELECT lower(name) AS low, id + 1 AS more FROM shown;
"""
OF_DUCKDB = """
query('FROM zyx')|query_table('zyx')|query_table(['zyx'])|duckdb_tables()|duckdb_columns()|duckdb_views()
pragma_table_info('zyx')|pragma_storage_info('zyx')|pragma_show('zyx')|duckdb_dependencies()|duckdb_settings()
duckdb_databases()|pragma_database_size()|glob('*')|sql_auto_complete('SELECT * FROM z')
"""
OF_POSTGRES = """
query_to_xml('SELECT * FROM zyx', true, true, '')|table_to_xml('zyx', true, true, '')|pg_relation_size('zyx')
to_regclass('zyx')|obj_description('zyx'::regclass)|has_table_privilege('zyx', 'select')
pg_describe_object(1259, 'zyx'::regclass, 0)|pg_get_viewdef('behind')|pg_total_relation_size('zyx')
col_description('zyx'::regclass, 1)|to_regtype('zyx')
"""
UNARY = "SELECT {}(NULL) AS told"


@contextlib.asynccontextmanager
async def _opened(folder: Path, url: str, schema: str) -> AsyncIterator[Toolbox]:
    (folder / "dragoman.toml").write_text(f'[databases.shop]\nurl = "{url}"\n{ALL_BUT_ZYX.format(schema=schema)}')
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        yield Toolbox(gateway, profile="full")


def _split(text: str) -> list[str]:
    return [each for line in text.strip().split("\n") for each in line.split("|")]


async def _ask(toolbox: Toolbox, sql: str) -> str:
    return (await toolbox.call("execute_query", {"sql": sql}, principal=ANALYST)).text


async def _check(toolbox: Toolbox, made: dict[str, str]) -> None:
    """No view is there whose query a caller could not send."""
    closed = {view for view, query in made.items() if '"error"' in await _ask(toolbox, query)}
    assert len(closed) > 0.9 * len(made)
    for view in closed:
        told = await _ask(toolbox, f"SELECT * FROM {view}")
        assert "TABLE_NOT_FOUND" in told, (made[view], told)
    listed = json.loads((await toolbox.call("list_tables", {}, principal=ANALYST)).text)
    assert not closed & {name for names in listed["views"].values() for name in names}
    assert '"rows":[["a",2]]' in await _ask(toolbox, "SELECT * FROM plain")


async def test_on_duckdb(tmp_path: Path) -> None:
    made: dict[str, str] = {}
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute(MADE)
        for number, call in enumerate(_split(OF_DUCKDB)):
            with contextlib.suppress(duckdb.Error):
                query = f"SELECT 1 AS told FROM {call}"
                connection.execute(f"CREATE VIEW telling{number} AS {query}")
                made[f"telling{number}"] = query
    assert len(made) > 10
    async with _opened(tmp_path, "duckdb:///shop.duckdb", "main") as toolbox:
        await _check(toolbox, made)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = Server.start()
    yield server
    server.stop()


async def test_on_postgres(server: Server, tmp_path: Path) -> None:
    await server.run(MADE + "CREATE VIEW behind AS SELECT pin FROM zyx")
    made = {"behind": "SELECT pin FROM zyx"}
    rules = postgres.dialect.loaded_rules
    unary = [UNARY.format(name) for name in sorted(rules.telling) if name.replace("_", "").isalnum()]
    for number, body in enumerate([f"SELECT {call} AS told" for call in _split(OF_POSTGRES)] + unary):
        with contextlib.suppress(Exception):  # there is none with one argument
            await server.run(f"CREATE VIEW telling{number} AS {body}")
            made[f"telling{number}"] = body
    assert len(made) > 60
    database = server.configure("postgres")
    url = f"postgresql://{database.user}@/postgres?host={database.host}"
    async with _opened(tmp_path, url, "public") as toolbox:
        await _check(toolbox, made)
