"""Plans as SQLite tells them, and what is said to be wrong with them."""

import pytest
from dragoman import ExplainOptions, InvalidSql, Plan, QueryTimeout, Request, TableNotFound, UnsafeSql, WriteDenied
from dragoman.model import Limits

SCHEMA = """
CREATE TABLE big (id INTEGER PRIMARY KEY, kind TEXT, note TEXT);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
INSERT INTO big SELECT i, i % 7, i FROM n;
CREATE INDEX by_kind ON big (kind);
CREATE TABLE "big one" AS SELECT * FROM big;
CREATE TABLE small (id INTEGER PRIMARY KEY, big_id INT);
INSERT INTO small VALUES (1, 1), (2, 2);
CREATE VIEW seen AS SELECT * FROM big;
CREATE VIRTUAL TABLE docs USING fts5 (body);
"""
ENDLESS = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"


@pytest.fixture(scope="module")
async def shop(shared):
    return shared.make(SCHEMA)


async def explain(shared, shop, sql: str, *parameters, timeout: float = 30, **options) -> Plan:
    request = Request(statement=sql, parameters=parameters, limits=Limits(timeout=timeout))
    return await shared.executor(shop).explain(request, ExplainOptions(**options))


async def test_a_plan_is_text_indented_by_step(shared, shop):
    plan = await explain(shared, shop, "SELECT * FROM small WHERE id IN (SELECT id FROM big WHERE kind = ?)", "1")
    assert plan.plan == (
        "SEARCH small USING INTEGER PRIMARY KEY (rowid=?)\n"
        "LIST SUBQUERY 1\n"
        "  SEARCH big USING COVERING INDEX by_kind (kind=?)"
    )
    assert (plan.format, plan.actual_time_ms, plan.estimated_cost, plan.estimated_rows) == ("text", None, None, None)


async def test_a_plan_is_a_tree_as_json(shared, shop):
    plan = await explain(shared, shop, "SELECT id FROM small UNION SELECT id FROM small", format="json")
    assert plan.format == "json"
    (root,) = plan.plan
    assert root == {
        "detail": "MERGE (UNION)",
        "steps": [
            {"detail": "LEFT", "steps": [{"detail": "SCAN small"}]},
            {"detail": "RIGHT", "steps": [{"detail": "SCAN small"}]},
        ],
    }


async def test_verbose_adds_the_bytecode(shared, shop):
    text = (await explain(shared, shop, "SELECT 1", verbose=True)).plan
    assert text.startswith("SCAN CONSTANT ROW\n\naddr opcode")
    tree = (await explain(shared, shop, "SELECT 1", verbose=True, format="json")).plan
    assert tree["plan"] == [{"detail": "SCAN CONSTANT ROW"}]
    assert tree["bytecode"][0][1] == "Init"


async def test_no_address_of_memory_is_told(shared, shop):
    text = (await explain(shared, shop, "SELECT * FROM docs WHERE docs MATCH 'a'", verbose=True)).plan
    assert " vtab " in text
    assert "vtab:" not in text


async def test_analyze_runs_the_query_and_tells_how_long_it_took(shared, shop):
    plan = await explain(shared, shop, "SELECT count(*) FROM big, small", analyze=True)
    assert plan.actual_time_ms is not None
    assert 0 < plan.actual_time_ms < 30_000
    with pytest.raises(QueryTimeout):
        await explain(shared, shop, ENDLESS, analyze=True, timeout=0.1)
    assert (await explain(shared, shop, ENDLESS)).actual_time_ms is None


async def test_buffers_are_not_counted_and_that_is_said(shared, shop):
    assert (await explain(shared, shop, "SELECT 1", buffers=True)).notices == ("SQLite does not count buffers.",)


WARNED = {
    "SELECT * FROM big WHERE note = '1'": "big",
    "SELECT * FROM big ORDER BY id DESC": "big",
    "SELECT * FROM main.BIG AS b WHERE b.note = '1'": "big",
    "SELECT * FROM big a, big b WHERE a.note = '1' AND a.id = b.id": "big",
    'SELECT * FROM "big one" AS "b 1" WHERE note = 1': '"big one"',
    "SELECT * FROM [big one] small LEFT JOIN small s ON s.id = small.id": '"big one"',
    "SELECT * FROM small LEFT JOIN big ON big.note GLOB small.id": "big",
    "SELECT * FROM seen WHERE note = '1'": "big",
    "WITH small AS MATERIALIZED (SELECT * FROM big) SELECT * FROM small a, small b": "big",
    "SELECT (SELECT max(note) || min(note) FROM big) FROM small": "big",
    "SELECT id FROM small UNION SELECT note FROM big": "big",
}
FINE = [
    "SELECT * FROM big WHERE id = 1",
    "SELECT * FROM big WHERE kind = '1'",
    "SELECT kind FROM big",  # an index covers it
    "SELECT * FROM small",
    "SELECT * FROM docs",
    "SELECT * FROM json_each('[1]')",
    "SELECT 1",
    "WITH big AS (SELECT 1 AS x) SELECT * FROM big",
    "WITH big AS (SELECT 1 AS x UNION ALL SELECT 2) SELECT * FROM big, small",
    "SELECT max(id) FROM big",
    "SELECT count(*) FROM big",
]


@pytest.mark.parametrize("sql", WARNED)
async def test_a_scan_of_a_big_table_is_warned_of_whatever_its_alias(shared, shop, sql):
    (warning,) = (await explain(shared, shop, sql)).warnings
    assert warning.startswith(f"Full scan of {WARNED[sql]} (about 20000 rows)")


@pytest.mark.parametrize("sql", FINE)
async def test_what_is_fine_is_not_warned_of(shared, shop, sql):
    assert (await explain(shared, shop, sql)).warnings == ()


async def test_an_index_built_for_the_query_alone_is_warned_of(shared, shop):
    plan = await explain(shared, shop, "SELECT * FROM small AS a, small AS b WHERE a.big_id = b.big_id")
    assert "built for this query alone" in plan.warnings[0]


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("SELECT * FROM gone", TableNotFound),
        ("SELEC 1", InvalidSql),
        ("DELETE FROM big", WriteDenied),
        ("SELECT 1; SELECT 2", UnsafeSql),
        ("SELECT load_extension('x')", UnsafeSql),
    ],
)
async def test_what_cannot_run_cannot_be_explained(shared, shop, sql, error):
    with pytest.raises(error):
        await explain(shared, shop, sql)
