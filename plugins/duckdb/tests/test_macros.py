"""A macro that users made runs in no query under the name of a function or operator of DuckDB's own, nor behind a view.

A file with a macro of each such name answers as its twin without, or a call of the name is refused.
"""

import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.model import Principal
from dragoman.sql.calls import SYNTAX
from dragoman.tools import Toolbox
from dragoman_duckdb.rules import RULES

ANN = Principal("ann", subject="ann")
MADE = """
CREATE TABLE shown (id INTEGER, name VARCHAR, day DATE, items INTEGER[]);
INSERT INTO shown VALUES (1, 'a', '2026-01-01', [1, 2]), (2, 'b', NULL, []);
CREATE TABLE zyx (pin VARCHAR);
INSERT INTO zyx VALUES ('marked');
"""
ROLE = """
[databases.shop]
url = "duckdb:///shop.duckdb"
[roles.r]
principals = ["ann"]
[[roles.r.grants]]
database = "shop"
tables = ["main.*"]
deny = ["main.zyx"]
"""
SCALAR, TABLE = "AS (SELECT pin FROM zyx)", "AS TABLE (SELECT pin FROM main.zyx)"
# What calls functions without their names, and syntax of calls.
SHAPES = """
1 + 1|1 - 1|2 * 3|4 / 2|5 // 2|5 % 2|2 ^ 3|2 ** 3|-id|+id|@id|~id|id & 1|id | 1|id << 1|id >> 1|'a' || name
name LIKE 'a%'|name ILIKE 'A%'|name GLOB 'a*'|name SIMILAR TO 'a'|name NOT LIKE 'a' ESCAPE '$'|name ~ 'a'
id IN (1, 2)|id IN [1, 2]|id BETWEEN 0 AND 1|id IS DISTINCT FROM 1|id = ANY (SELECT 1)|name[1]|items[1]|items[1:2]
[1, 2]|{'a': 1}|MAP {'a': 1}|(1, 'a')|[x + 1 FOR x IN items IF x > 1]|list_transform(items, lambda x: x + 1)
CAST(id AS VARCHAR)|id::DOUBLE|TRY_CAST(name AS INTEGER)|DATE '2026-01-01' + 1|INTERVAL '1' DAY|INTERVAL (id) DAY
EXTRACT(year FROM day)|day AT TIME ZONE 'UTC'|substring(name FROM 1 FOR 1)|position('a' IN name)
trim(BOTH 'a' FROM name)|overlay(name PLACING 'x' FROM 1)|CASE id WHEN 1 THEN 2 END|coalesce(NULL, 1)
nullif(1, 2)|ifnull(NULL, 1)|if(id = 1, 2, 3)|(1).abs()|main.abs(-1)|system.main.abs(-1)|"abs"(-1)|ABS(-1)|abs (-1)
main.lower('A')|'{"a": 1}'::JSON -> 'a'|'{"a": 1}'::JSON ->> 'a'|current_date IS NULL|sum(id) OVER ()
row_number() OVER ()|count(*) OVER ()|b.abs(1)|shop.abs(1)|shop.main.abs(1)|main."+"(1, 2)|temp.abs(1)
"""
QUERIES = """
SELECT count(*) FROM shown|SELECT count(id), sum(id), max(name) FROM shown|SELECT * FROM range(2)|SELECT unnest([1, 2])
SELECT * FROM unnest([1, 2])|SELECT * FROM generate_series(1, 2)|SELECT * FROM json_each('[1]')|DESCRIBE shown
SUMMARIZE shown|SELECT DISTINCT name FROM shown ORDER BY name|SELECT * FROM shown USING SAMPLE 1 ROWS
PIVOT shown ON name|SELECT name, count(*) FROM shown GROUP BY ALL ORDER BY ALL|UNPIVOT shown ON name
SELECT * FROM main.range(2)|SELECT * FROM shop.range(2)
FROM shown SELECT columns(*)|SELECT id FROM shown WHERE name > 'a' LIMIT 1 + 1
"""
# Where a call may stand in the place of a table.
PLACES = """
SELECT * FROM {}|FROM {}|FROM h: {}|SELECT * FROM {} AS h|SELECT * FROM shown, {}|SELECT * FROM shown, LATERAL {}
SELECT * FROM shown CROSS JOIN {}|SELECT * FROM shown POSITIONAL JOIN {}|SELECT * FROM shown SEMI JOIN {} ON true
SELECT * FROM (FROM {})|SELECT * FROM ({})|WITH h AS (FROM {}) FROM h|SELECT (SELECT count(*) FROM {})
SELECT EXISTS (FROM {})|SELECT * FROM shown WHERE name IN (FROM {})
FROM shown UNION ALL BY NAME FROM {}|PIVOT {} ON pin|UNPIVOT {} ON pin
SELECT * FROM {} TABLESAMPLE 1 ROWS|SELECT * FROM shown JOIN (shown AS b CROSS JOIN {}) ON true|TABLE {}
"""
CALLS = """
histogram(zyx, pin)|"histogram"(zyx, pin)|HISTOGRAM (zyx, pin)|main.histogram(zyx, pin)|system.main.histogram(zyx, pin)
histogram(source := zyx, col_name := pin)|histogram_values(zyx, pin)|upper(1)|"upper"(1)|max(1)|"max"(1)|first(1)
"row"(1)|list(1)|main.left(1)|glob(1)|"cast"(1)|filter(1)|"extract"(1)|count(1)|shop.main.upper(1)|repeat(1)
"""
TOOLS = ("describe_table", "list_tables", "get_sample_rows", "list_schemas", "read_schema", "search_catalog")


def _split(text: str) -> list[str]:
    return [each for line in text.strip().split("\n") for each in line.split("|") if each]


def _statements() -> list[str]:
    calls = [f"{name}({', '.join(['id'] * number)})" for name in sorted(RULES.functions) for number in range(3)]
    return [f"SELECT {each} FROM shown ORDER BY shown.id" for each in (*_split(SHAPES), *calls)] + _split(QUERIES)


def _plant(connection: duckdb.DuckDBPyConnection, body: str) -> int:
    """Make a macro of the name of each function there is, for up to three arguments; return how many could be made."""
    rows = connection.execute("SELECT DISTINCT function_name FROM duckdb_functions() WHERE internal").fetchall()
    names = {name for (name,) in rows} | RULES.functions | RULES.table_functions
    overloads = ", ".join(f"({parameters}) {body}" for parameters in ("", "p", "p, q", "p, q, r"))
    planted = 0
    for name in sorted(names):
        with contextlib.suppress(duckdb.Error):
            connection.execute(f'CREATE MACRO "{name}"{overloads}')
            planted += 1
    return planted


@contextlib.asynccontextmanager
async def _opened(folder: Path, script: str, plant: str = "") -> AsyncIterator[Toolbox]:
    folder.mkdir()
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute(script)
        if plant:
            assert _plant(connection, plant) > 500
    (folder / "dragoman.toml").write_text(ROLE)
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        yield Toolbox(gateway, profile="full")


@pytest.mark.parametrize("body", [SCALAR, TABLE], ids=["scalar", "table"])
async def test_no_macro_runs_under_a_name_of_the_engines_own(tmp_path: Path, body: str) -> None:
    async with (
        _opened(tmp_path / "planted", MADE, body) as planted,
        _opened(tmp_path / "twin", MADE) as twin,
    ):
        for sql in _statements():
            one, other = [
                (await each.call("execute_query", {"sql": sql}, principal=ANN)).text for each in (planted, twin)
            ]
            assert "marked" not in one, sql
            if not any(
                word in sql
                for word in ("random", "now", "today", "uuid", "current", "SAMPLE", "hash", "timestamp", "get_current")
            ):
                assert one == other or "is a macro here" in one, sql
        for tool in TOOLS:
            arguments = {"table_name": "shown"} if tool in ("describe_table", "get_sample_rows") else {}
            one, other = [(await each.call(tool, arguments, principal=ANN)).text for each in (planted, twin)]
            assert one == other, tool


async def test_no_macro_runs_in_the_place_of_a_table(tmp_path: Path) -> None:
    async with _opened(tmp_path / "planted", MADE, TABLE) as planted:
        for sql in (place.format(call) for place in _split(PLACES) for call in _split(CALLS)):
            assert '"error"' in (await planted.call("execute_query", {"sql": sql}, principal=ANN)).text, sql


async def test_no_function_of_values_is_a_table(tmp_path: Path) -> None:
    async with _opened(tmp_path / "planted", MADE, TABLE) as planted:
        for name in sorted((RULES.functions | SYNTAX) - RULES.table_functions):
            for call in (f"{name}(zyx)", f'"{name}"(1)', f"main.{name}(1, 2)"):
                sql = f"SELECT * FROM {call}"
                assert '"error"' in (await planted.call("execute_query", {"sql": sql}, principal=ANN)).text, sql


VIEWED = MADE + "CREATE MACRO {}(a{}) AS (SELECT pin FROM zyx); CREATE VIEW telling AS SELECT {} AS told FROM shown;"


@pytest.mark.parametrize(
    ("name", "more", "call"),
    [("own", "", "own(id)"), ("abs", "", "abs(id)"), ('"+"', ", b", "id + 1"), ('"Own one"', "", '"own ONE"(id)')],
)
async def test_a_view_that_may_call_a_macro_needs_a_grant_of_its_own(
    tmp_path: Path, name: str, more: str, call: str
) -> None:
    async with _opened(tmp_path / "shop", VIEWED.format(name, more, call)) as toolbox:
        for tool, arguments in (("execute_query", {"sql": "SELECT * FROM telling"}), ("list_tables", {})):
            told = (await toolbox.call(tool, arguments, principal=ANN)).text
            assert "marked" not in told
            assert '"telling"' not in told


async def test_a_view_that_calls_no_macro_stays_open(tmp_path: Path) -> None:
    script = MADE + "CREATE MACRO own(a) AS a; CREATE VIEW plain AS SELECT abs(id) + 1 AS told FROM shown;"
    async with _opened(tmp_path / "shop", script) as toolbox:
        told = (await toolbox.call("execute_query", {"sql": "SELECT * FROM plain"}, principal=ANN)).text
    assert '"rows":[[2],[3]]' in told
