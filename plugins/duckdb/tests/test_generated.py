"""What DuckDB computes from a hidden column is hidden, however the column is called and whatever is made of it."""

from pathlib import Path

import duckdb
import pytest
from dragoman import Database, Gateway, Relation, Scope
from dragoman.access.generated import leave_out_telling
from dragoman.config import load
from dragoman.tools import Toolbox

NAMES = ("secret", "Secret Word", 'a"b', "it's", "[x]", "größe", "select", "a.b", "$x", "lower", "_")
"""What the hidden column of a table is called."""
MADE = ("{} || '!'", "'it''s' || {} || '--'", "lower({})", "CASE WHEN {} IS NULL THEN 'n' ELSE 'y' END", "[{}][1]")
ROLE = """
[databases.shop]
url = "duckdb:///shop.duckdb"
[roles.r]
principals = ["*"]
[[roles.r.grants]]
database = "shop"
tables = ["main.*"]
deny_columns = ["*.secret"]
"""

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A database of a table for each name, `t0` and so on, whose columns but the last two are made of the first."""
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        for number, name in enumerate(NAMES):
            column, text = '"' + name.replace('"', '""') + '"', name.replace("'", "''")
            made = ", ".join(f"made{place} VARCHAR AS ({each.format(column)})" for place, each in enumerate(MADE))
            connection.execute(
                f"CREATE TABLE t{number} ({column} VARCHAR, {made}, further VARCHAR AS (made0 || '?'),"
                f" number INTEGER DEFAULT 3, said VARCHAR DEFAULT '{text}')"
            )
            connection.execute(f"INSERT INTO t{number} ({column}) VALUES ('hush')")
    return tmp_path


async def test_every_generated_column_tells_what_it_is_made_of(folder: Path) -> None:
    database = Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=folder)
    async with Gateway.open([database]) as gateway:
        told = {table.relation: table for table in (await gateway.database().inspector.tables(Scope())).tables}
    for number, name in enumerate(NAMES):
        columns = told[Relation(f"t{number}", "main")].columns
        assert [column.name for column in leave_out_telling(columns, {name}, ())] == [name, "number", "said"], name
        assert [column.default for column in columns if column.generated] == [None] * (len(MADE) + 1)
        assert [column.default for column in columns[-2:]] == ["3", "'" + name.replace("'", "''") + "'"]


@pytest.mark.parametrize("column", ["made0", "made3", "further"])
async def test_what_is_made_of_a_hidden_column_is_not_there(folder: Path, column: str) -> None:
    (folder / "dragoman.toml").write_text(ROLE)
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        box = Toolbox(gateway, profile="full")
        absent = (await box.call("execute_query", {"sql": "SELECT nosuch FROM t0"})).text
        answer = (await box.call("execute_query", {"sql": f"SELECT {column} FROM t0"})).text
        assert answer.replace(column, "nosuch") == absent
        assert "hush" not in (await box.call("get_sample_rows", {"table_name": "t0"})).text
        assert "made" not in (await box.call("describe_table", {"table_name": "t0", "detail": "full"})).text
