"""What users made beside tables is, to who sees a part of a database, as if it were not there.

That is so for types that no visible column has, and for sequences.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.model import Principal
from dragoman.tools import Toolbox

ANN = Principal("ann", subject="ann")
SCRIPT = """
CREATE SEQUENCE zyx_numbers;
CREATE TABLE shown (id INTEGER DEFAULT nextval('zyx_numbers'), kind VARCHAR);
CREATE TABLE hidden (id INTEGER, kind {type});
"""
ROLE = """
[databases.shop]
url = "duckdb:///shop.duckdb"
[roles.r]
principals = ["ann"]
[[roles.r.grants]]
database = "shop"
tables = ["main.shown"]
"""
SHAPES = (
    "SELECT enum_range(NULL::{})",
    "SELECT 'zyx_a'::{}",
    "SELECT TRY_CAST(kind AS {}) FROM shown",
    "SELECT ['zyx_a']::{}[]",
    "SELECT NULL::STRUCT(a {})",
    "SELECT NULL::main.{}",
    'SELECT NULL::"{}"',
    "SELECT NULL::{} FROM shown UNION SELECT NULL",
    "WITH x AS (SELECT enum_first(NULL::{}) AS a) SELECT * FROM x",
    # Arguments too many: DuckDB's error would show the type.
    "SELECT uuid(NULL::{})",
    "SELECT any_value(id, NULL::{}) FROM shown",
    "SELECT map([1], [2], NULL::{})",
    "SELECT ceil(1, 2, [NULL::{}])",
    "SELECT * FROM range(1, 2, 3, NULL::{})",
    "SELECT {} 'zyx_a'",
    "SELECT NULL::UNION(a {})",
    "SELECT NULL::MAP(VARCHAR, {})",
    "SELECT 1 LIMIT (NULL::{})",
    "SELECT sum(1) OVER (ORDER BY id ROWS BETWEEN (NULL::{}) PRECEDING AND CURRENT ROW) FROM shown",
    "SELECT * FROM (VALUES (NULL::{}))",
    "SELECT * REPLACE (NULL::{} AS id) FROM shown",
    "SELECT [NULL::{} FOR x IN [1]]",
    "SELECT 1 ORDER BY (NULL::{})",
    "SELECT id FROM shown QUALIFY (NULL::{}) = id",
    "SELECT sum(id) FILTER (WHERE NULL::{} = id) FROM shown",
    "SELECT sum(id ORDER BY NULL::{}) FROM shown",
)


@pytest.fixture
async def toolbox(tmp_path: Path) -> AsyncIterator[Toolbox]:
    with duckdb.connect(tmp_path / "shop.duckdb") as connection:
        connection.execute("CREATE TYPE zyx_kind AS ENUM ('zyx_a', 'zyx_b')")
        connection.execute(SCRIPT.format(type="zyx_kind"))
    (tmp_path / "dragoman.toml").write_text(ROLE)
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        yield Toolbox(gateway, profile="full")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("tool", ["execute_query", "explain_query"])
async def test_a_hidden_type_is_answered_for_as_one_that_is_not_there(toolbox: Toolbox, tool: str, shape: str) -> None:
    there, absent = [
        (await toolbox.call(tool, {"sql": shape.format(name)}, principal=ANN)).text for name in ("zyx_kind", "zyx_none")
    ]
    assert there.replace("zyx_kind", "zyx_none") == absent
    assert '"error"' in there


async def test_a_default_does_not_tell_the_name_of_a_sequence(toolbox: Toolbox) -> None:
    told = (await toolbox.call("describe_table", {"table_name": "shown", "detail": "full"}, principal=ANN)).text
    assert "zyx" not in told
    assert '"kind"' in told


async def test_types_of_the_engines_own_are_open(toolbox: Toolbox) -> None:
    sql = "SELECT id::UHUGEINT, id::BIGNUM, kind::JSON, NULL::TIMESTAMP_NS, NULL::MAP(VARCHAR, INT[]) FROM shown"
    assert '"error"' not in (await toolbox.call("execute_query", {"sql": sql}, principal=ANN)).text
