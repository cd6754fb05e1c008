"""A database that cannot hold callers to what a role or its identity says does not open; nothing runs unfiltered."""

import json
import re
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest
from dragoman import ConfigurationError, Gateway
from dragoman.config import load
from dragoman.tools import Toolbox

from .conftest import ask


@pytest.mark.parametrize(
    ("extra", "identity", "told"),
    [
        ("filter = \"tenant = 'a'\"", "gateway", "roles.reader.grants.0: duckdb cannot filter rows or mask columns"),
        ('masks = { tenant = "null" }', "gateway", "roles.reader.grants.0: duckdb cannot filter rows or mask columns"),
        ("", "role", "databases.lake.identity: duckdb cannot keep the rights of callers"),
        ("", "session", "databases.lake.identity: duckdb cannot keep the rights of callers"),
        ("", "user", "databases.lake.identity: duckdb cannot keep the rights of callers"),
    ],
)
async def test_what_duckdb_cannot_hold_stops_the_start(tmp_path: Path, extra: str, identity: str, told: str) -> None:
    with duckdb.connect(str(tmp_path / "lake.duckdb")) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER, tenant VARCHAR)")
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f'[databases.lake]\nurl = "duckdb:///lake.duckdb"\nidentity = "{identity}"\n'
        'database_roles = { reader = "reader" }\n'
        '[roles.reader]\ngroups = ["readers"]\n[[roles.reader.grants]]\ndatabase = "lake"\ntables = ["main.*"]\n'
        f"{extra}\n"
    )
    with pytest.raises(ConfigurationError) as raised:
        async with Gateway.open(load(file, environ={}, folder=tmp_path)):
            pass
    assert told in raised.value.message
    assert "dragoman.toml" in raised.value.message


@pytest.mark.parametrize("around", ["FROM part", "WITH p AS MATERIALIZED (FROM part) FROM p"])
def test_a_view_of_duckdb_keeps_no_condition_from_the_rows_it_leaves_out(around: str) -> None:
    """What docs/row-filters.md says of it."""
    with duckdb.connect() as connection:
        rows = "SELECT i AS id, if(i % 2 = 0, '1', 'zyxmark') AS note FROM range(100000) r(i)"
        connection.execute(f"CREATE TABLE orders AS {rows}")
        connection.execute("CREATE VIEW part AS FROM orders WHERE id IN (SELECT 2 * i FROM range(50000) r(i))")
        assert connection.execute(f"{around} WHERE note = 'zyxmark'").fetchall() == []
        with pytest.raises(duckdb.ConversionException, match="zyxmark"):
            connection.execute(f"{around} WHERE CAST(note AS int) > 0").fetchall()


BROKEN = (
    "CREATE TABLE zyx_gone (id INTEGER, zyx_pin INTEGER)",
    "CREATE TABLE zyx_kept (id INTEGER, zyx_pin INTEGER)",
    "CREATE VIEW without_table AS SELECT id FROM zyx_gone",
    "CREATE VIEW without_column AS SELECT id FROM zyx_kept WHERE zyx_pin > 0",
    "CREATE VIEW above AS SELECT id FROM without_column",
    "CREATE VIEW qualified AS SELECT zyx_kept.zyx_pin, zyx_kept.id FROM zyx_kept",
    "CREATE TABLE zyx_more (id INTEGER)",
    "CREATE TABLE zyx_first (zyx_two INTEGER)",
    "CREATE VIEW ambiguous AS SELECT zyx_two AS id FROM zyx_first, zyx_more",
    "CREATE TABLE report (id INTEGER, port INTEGER)",
    "CREATE VIEW port_report AS SELECT id FROM report WHERE port > 0",
    "CREATE TABLE filtered (id INTEGER, tenant TEXT)",
    "DROP TABLE zyx_gone",
    "DROP TABLE zyx_kept",
    "CREATE TABLE zyx_kept (id INTEGER, zyx_other INTEGER)",
    "DROP TABLE zyx_more",
    "CREATE TABLE zyx_more (id INTEGER, zyx_two INTEGER)",
    "DROP TABLE report",
    "CREATE TABLE report (id INTEGER)",
)
"""Views that no longer compile. Of `port_report` even the name has the name of a column in it."""
ALL_BROKEN = ("without_table", "without_column", "above", "qualified", "ambiguous", "port_report")
FILTERED = """
[[roles.reader.grants]]
database = "shop"
tables = ["main.filtered"]
filter = "tenant = 'a'"
"""


OTHER = str.maketrans("aeiouxyz", "eioua123")
"""Makes another name of a guess."""


async def guess_at(toolbox: Toolbox, view: str, name: str) -> Any:
    """Return the answer to a statement in which a caller writes what a broken view may miss."""
    written = " ".join(f'1 AS "{part}",' for part in name.split("."))
    return await ask(toolbox, "execute_query", sql=f"SELECT {written} '{name}', v.* FROM {view} AS v")


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
async def test_no_error_names_what_a_view_misses(tmp_path: Path, dialect: str) -> None:
    connect: Any = duckdb.connect if dialect == "duckdb" else sqlite3.connect
    connection = connect(str(tmp_path / "shop.db"))
    for statement in BROKEN:
        connection.execute(statement)
    connection.close()
    file = tmp_path / "dragoman.toml"
    file.write_text(
        f'[databases.shop]\nurl = "{dialect}:///shop.db"\n[roles.reader]\ngroups = ["analysts"]\n'
        f'[[roles.reader.grants]]\ndatabase = "shop"\ntables = {json.dumps([f"main.{view}" for view in ALL_BROKEN])}\n'
        f"{FILTERED if dialect == 'sqlite' else ''}"
    )
    async with Gateway.open(load(file, environ={}, folder=tmp_path)) as gateway:
        toolbox = Toolbox(gateway)
        beside = ["SELECT v.id FROM {view} AS v, filtered"] if dialect == "sqlite" else []
        for view in ALL_BROKEN:
            for sql in ("SELECT * FROM {view}", "SELECT id FROM {view} WHERE id > 0", *beside):
                for tool in ("execute_query", "explain_query"):
                    answer = await ask(toolbox, tool, sql=sql.format(view=view))
                    assert "error" in answer, (view, sql)
                    assert "zyx" not in str(answer)
                    assert re.search(r"\bport\b", str(answer)) is None
            for guess in ("zyx_gone", "zyx_kept.zyx_pin", "zyx_pin", "main.zyx_gone", "zyx_two", "port"):
                told = [await guess_at(toolbox, view, name) for name in (guess, guess.translate(OTHER))]
                assert told[0] == told[1], (view, guess)
        wrong = await ask(toolbox, "execute_query", sql="SELECT nothing FROM above")
        assert "zyx" not in str(wrong)
