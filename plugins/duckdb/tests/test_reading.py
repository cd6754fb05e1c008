"""The engine reads no relation and calls no function that was not judged, however another parser read the statement."""

import dataclasses
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest
from dragoman import (
    Database,
    DragomanError,
    Gateway,
    InvalidSql,
    ParsedStatement,
    Relation,
    Request,
    Statement,
    UnsafeSql,
)
from dragoman.config import Configuration, Results, Server
from dragoman.tools import Toolbox
from dragoman_duckdb.plugin import DuckDBPlugin, plugin
from dragoman_duckdb.rules import RESERVED

MADE = """
CREATE TABLE shown (id INTEGER, name VARCHAR);
CREATE TABLE zyx (pin VARCHAR);
CREATE SCHEMA side;
CREATE TABLE side.zyx (pin VARCHAR);
CREATE MACRO peek() AS (SELECT 1);
"""
# Where a statement may name a relation.
PLACES = """
FROM {}|TABLE {}|SELECT 1 FROM shown, {}|FROM shown JOIN {} ON true|FROM shown ASOF JOIN {} ON shown.id >= rowid
FROM shown POSITIONAL JOIN {}|FROM shown SEMI JOIN {} ON true|FROM shown ANTI JOIN {} ON true|FROM ({})
FROM (FROM {})|SELECT (SELECT count(*) FROM {})|SELECT EXISTS (FROM {})|SELECT 1 = ANY (SELECT 1 FROM {})
SELECT 1 IN (SELECT 1 FROM {})|SELECT ARRAY(SELECT 1 FROM {})|FROM shown UNION ALL BY NAME FROM {}
FROM shown EXCEPT FROM {}|FROM shown, LATERAL (FROM {})|WITH shown AS (FROM {}) FROM shown
WITH a AS (FROM {}), zyx AS (SELECT 1) FROM a|WITH zyx AS (FROM {}) FROM zyx
WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, {} WHERE n < 2) FROM r
SELECT 1 ORDER BY (SELECT 1 FROM {})|SELECT 1 LIMIT (SELECT 1 FROM {})|SELECT 1 OFFSET (SELECT 1 FROM {})
SELECT sum(1) OVER (ORDER BY (SELECT 1 FROM {}))|SELECT count(*) FILTER (WHERE EXISTS (FROM {}))
SELECT CASE WHEN EXISTS (FROM {}) THEN 1 END|SELECT [x FOR x IN [1] IF EXISTS (FROM {})]
SELECT {{'a': (SELECT 1 FROM {})}}|SELECT 1 GROUP BY (SELECT 1 FROM {})|SELECT 1 HAVING EXISTS (FROM {})
SELECT 1 QUALIFY EXISTS (FROM {})|FROM (PIVOT {} ON pin IN ('a') USING count(*))
FROM {} PIVOT (count(*) FOR pin IN ('a'))|UNPIVOT {} ON pin|PIVOT (FROM {}) ON pin IN ('a')
FROM {} TABLESAMPLE 1 ROWS|VALUES ((SELECT 1 FROM {}))|FROM shown AS zyx, {}|SELECT * FROM range((SELECT 1 FROM {}))
SELECT * REPLACE ((SELECT 1 FROM {}) AS id) FROM shown|FROM h: {}|SELECT columns(c -> EXISTS (FROM {})) FROM shown
SELECT sum(1) OVER w FROM shown WINDOW w AS (ORDER BY (SELECT 1 FROM {}))
"""
NAMES = ("zyx", "ZYX", '"zyx"', "main.zyx", "side.zyx", '"side"."zyx"', "shop.main.zyx", "shop.zyx")
# What reads the catalog, files, settings or texts as SQL, in the place of a relation or of a value.
OTHERS = """
FROM (SHOW TABLES)|FROM (SHOW ALL TABLES)|FROM (SHOW DATABASES)|FROM (DESCRIBE shown)|FROM (DESC shown)
FROM (SUMMARIZE shown)|FROM (SHOW shown)|SELECT 'zyx' = ANY (SHOW TABLES)|SELECT EXISTS (SHOW TABLES)
SELECT 'a' IN (DESCRIBE shown)|WITH t AS (SHOW TABLES) FROM t
WITH w AS (INSERT INTO shown VALUES (1, 'a') RETURNING id) FROM w|FROM duckdb_tables()|FROM query('FROM zyx')
FROM query_table('zyx')|FROM read_csv('a.csv')|FROM glob('*')|FROM 'a.csv'|FROM pragma_table_info('zyx')
SELECT peek()|SELECT main.peek()|SELECT getvariable('a')|SELECT current_setting('threads')
SELECT shown.peek() FROM shown|SELECT (1).peek()|SELECT sum(peek())|SELECT peek() OVER ()|SELECT read_text('a')
SELECT nextval('a')|FROM shown SELECT columns(c -> peek() = 1)|SELECT 1 LIMIT peek()|SELECT [peek() FOR x IN [1]]
FROM histogram(zyx, pin)|FROM shown, histogram_values(zyx, pin)
"""


def split(text: str) -> list[str]:
    return [each for line in text.strip().split("\n") for each in line.split("|")]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder: Path = tmp_path_factory.mktemp("shop")
    with duckdb.connect(folder / "shop.duckdb") as connection:
        connection.execute(MADE)
    return Database(name="shop", dialect="duckdb", database="shop.duckdb", folder=folder)


@pytest.fixture
async def gateway(shop: Database) -> AsyncIterator[Gateway]:
    async with Gateway.open([shop]) as opened:
        yield opened


def read_nothing(statement: Statement) -> ParsedStatement:
    return ParsedStatement()


async def run(gateway: Gateway, sql: str, *reads: str) -> DragomanError | None:
    """Run a statement past the core, as if these relations were judged, and return the refusal."""
    relations = tuple(Relation(*reversed(name.replace('"', "").split("."))) for name in reads)
    try:
        async with gateway.database().executor.open(Request(statement=sql, reads=relations)) as stream:
            async for _ in stream.batches:
                pass
    except DragomanError as error:
        return error
    return None


@pytest.mark.parametrize("name", NAMES)
async def test_a_relation_that_was_not_judged_is_not_read(gateway: Gateway, name: str) -> None:
    for place in split(PLACES):
        refusal = await run(gateway, place.format(name), "shown", "zyx.side", "other.zyx")
        assert isinstance(refusal, UnsafeSql), place
        assert "DuckDB reads the relation" in str(refusal), place


@pytest.mark.parametrize("name", NAMES)
async def test_a_relation_that_was_judged_is_read_wherever_it_stands(gateway: Gateway, name: str) -> None:
    for place in split(PLACES):
        refusal = await run(gateway, place.format(name), "shown", name)
        assert not isinstance(refusal, UnsafeSql), place


@pytest.mark.parametrize("sql", split(OTHERS))
async def test_nothing_else_is_run(gateway: Gateway, sql: str) -> None:
    assert isinstance(await run(gateway, sql, "shown", "zyx"), DragomanError)


@pytest.mark.parametrize("word", sorted(RESERVED - {"as"}))  # an alias reads nothing
async def test_no_word_of_the_grammar_hides_a_relation(gateway: Gateway, word: str) -> None:
    for form in ("FROM ({} zyx)", "FROM shown {} zyx", "SELECT 1 = ANY ({} zyx)", "FROM shown {} (zyx)", "{} zyx"):
        assert isinstance(await run(gateway, form.format(word), "shown"), DragomanError), (form, word)


async def test_the_core_says_in_every_tool_what_it_judged(
    shop: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dialect whose own reading overlooks a relation shows it to nobody."""
    monkeypatch.setattr(DuckDBPlugin, "dialect", dataclasses.replace(plugin.dialect, read=read_nothing))
    server = Server(queries_dir=tmp_path, save_queries=True)
    configuration = Configuration(databases={"shop": shop}, server=server, results=Results(dir=tmp_path / "kept"))
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for tool, more in (
            ("execute_query", {}),
            ("explain_query", {}),
            ("execute_query", {"from_dialect": "postgres"}),
            ("execute_query", {"keep": "kept"}),
            ("export_result", {}),
            ("save_query", {"name": "all"}),
        ):
            answer = (await toolbox.call(tool, {"sql": "SELECT * FROM zyx", **more})).text
            assert "DuckDB reads the relation zyx" in answer, (tool, answer)


async def test_names_that_with_defines_are_no_relations(gateway: Gateway) -> None:
    for sql in (
        "WITH a AS (SELECT 1), b AS (FROM a) FROM b, a",
        "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM R WHERE n < 3) FROM r",
        'WITH "A b" AS (SELECT 1) FROM "a B"',
        "WITH a AS (SELECT 1) SELECT (SELECT 1 FROM a), EXISTS (WITH b AS (FROM a) FROM b)",
        "WITH a AS MATERIALIZED (SELECT 1) FROM a UNION ALL FROM a",
    ):
        assert await run(gateway, sql) is None, sql


async def test_a_name_of_with_is_known_only_where_it_is_defined(gateway: Gateway) -> None:
    for sql in (
        "WITH zyx AS (FROM zyx) FROM zyx",
        "WITH a AS (FROM zyx), zyx AS (SELECT 1) FROM a",
        "FROM (WITH zyx AS (SELECT 1) FROM zyx), zyx",
        "WITH zyx AS (SELECT 1) FROM main.zyx",
        "WITH RECURSIVE zyx AS (FROM zyx) FROM zyx",
        "WITH RECURSIVE zyx(n) AS (SELECT count(*) FROM zyx UNION ALL SELECT n FROM zyx WHERE n < 0) FROM zyx",
        "WITH RECURSIVE a AS (FROM zyx), zyx AS (SELECT 1) FROM a",
        "WITH RECURSIVE zyx AS (FROM (WITH q AS (FROM zyx), zyx AS (SELECT 1) FROM q)) FROM zyx",
    ):
        assert isinstance(await run(gateway, sql), UnsafeSql), sql


async def test_what_duckdb_can_nest_is_read_and_anything_deeper_is_no_error_of_ours(gateway: Gateway) -> None:
    assert await run(gateway, f"SELECT {' AND '.join(['true'] * 3000)}") is None
    for count in (200, 500, 900):
        assert await run(gateway, f"SELECT {' + '.join(['1'] * count)}") is None, count
        assert await run(gateway, f"SELECT {'abs(' * count}1{')' * count}") is None, count
    for sql in (f"SELECT {' + '.join(['1'] * 2000)}", f"SELECT {'abs(' * 2000}1{')' * 2000}"):
        assert isinstance(await run(gateway, sql), InvalidSql)
