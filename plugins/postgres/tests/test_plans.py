"""EXPLAIN on a real server: what it tells, and what it warns of."""

import json

import pytest
from dragoman import (
    ColumnNotFound,
    ExplainOptions,
    InvalidSql,
    Limits,
    ParameterError,
    QueryTimeout,
    Request,
    WriteDenied,
)
from dragoman_postgres.executor import PostgresExecutor

SCHEMA = """
CREATE TABLE big (id integer PRIMARY KEY, grp integer, twin integer, pad text);
INSERT INTO big SELECT n, n % 1000, n % 1000, repeat('x', 50) || n FROM generate_series(1, 100000) AS n;
CREATE TABLE small (id integer);
INSERT INTO small SELECT generate_series(1, 200);
CREATE SCHEMA apart;
CREATE TABLE apart."Odd name" ("select" integer);
INSERT INTO apart."Odd name" SELECT generate_series(1, 50000);
CREATE TABLE apart.big (id integer);
ANALYZE;
"""
FORMATS = ["text", "json"]


@pytest.fixture(scope="module")
async def executor(server, database_name):
    await server.run(SCHEMA, database_name)
    await server.run(f"ALTER DATABASE {database_name} SET work_mem = '1MB'")
    await server.run(f"ALTER DATABASE {database_name} SET max_parallel_workers_per_gather = 0")
    running = PostgresExecutor(server.configure(database_name))
    yield running
    await running.aclose()


async def explained(executor, statement, parameters=(), **options):
    return await executor.explain(Request(statement=statement, parameters=parameters), ExplainOptions(**options))


async def test_a_plan_is_told_with_its_cost_and_rows_and_without_running(executor):
    plan = await explained(executor, "SELECT * FROM small")
    assert plan.plan.startswith("Seq Scan on small  (cost=0.00..")
    assert (plan.format, plan.estimated_rows, plan.actual_time_ms) == ("text", 200, None)
    assert plan.estimated_cost > 0
    slow = await explained(executor, "SELECT pg_sleep(60)")
    assert slow.plan.startswith("Result")


async def test_the_json_form_is_the_server_s_object(executor):
    plan = await explained(executor, "SELECT * FROM small", format="json")
    assert plan.plan["Plan"]["Node Type"] == "Seq Scan"
    assert json.loads(json.dumps(plan.plan)) == plan.plan
    assert (plan.format, plan.estimated_rows) == ("json", 200)


@pytest.mark.parametrize("format", FORMATS)
async def test_analyze_runs_the_query_and_tells_its_time(executor, format):
    plan = await explained(executor, "SELECT count(*) FROM big", analyze=True, format=format)
    assert plan.actual_time_ms > 0
    assert plan.estimated_rows == 1


@pytest.mark.parametrize(
    ("options", "word", "there"),
    [
        ({"verbose": True}, "Output: ", True),
        ({}, "Output: ", False),
        ({"analyze": True, "buffers": True}, "Buffers: shared", True),
        ({"analyze": True}, "Buffers: shared", False),
    ],
)
async def test_verbose_and_buffers_show_only_when_asked_for(executor, options, word, there):
    plan = await explained(executor, "SELECT id FROM small ORDER BY id", **options)
    assert (word in plan.plan) == there


async def test_parameters_are_bound(executor):
    plan = await explained(executor, "SELECT * FROM big WHERE id = $1 AND pad = $2", [7, "it's"])
    assert "Index Cond: (id = 7)" in plan.plan
    assert "'it''s'::text" in plan.plan


async def test_a_missing_parameter_is_an_error(executor):
    with pytest.raises(ParameterError):
        await explained(executor, "SELECT * FROM big WHERE id = $1")


async def test_an_error_points_into_the_caller_s_text(executor):
    statement = "SELECT nothing FROM small"
    with pytest.raises(InvalidSql) as caught:
        await explained(executor, "SELECT id FORM small")
    assert caught.value.offset == len("SELECT id FORM ")
    with pytest.raises(ColumnNotFound) as missed:
        await explained(executor, statement)
    assert (missed.value.code, missed.value.offset) == ("COLUMN_NOT_FOUND", len("SELECT "))


async def test_analyze_cannot_write(executor):
    with pytest.raises(WriteDenied):
        await explained(executor, "WITH gone AS (DELETE FROM small RETURNING *) SELECT * FROM gone", analyze=True)
    assert (await explained(executor, "SELECT * FROM small", analyze=True)).plan.count("rows=200") == 2


async def test_analyze_ends_at_the_deadline(executor):
    request = Request(statement="SELECT pg_sleep(60)", limits=Limits(timeout=0.2))
    with pytest.raises(QueryTimeout):
        await executor.explain(request, ExplainOptions(analyze=True))


WARNED = [
    # query, whether it is run, how the warning begins, what else it says
    ("SELECT * FROM big WHERE grp = 5", False, "Sequential scan of big: about 100000 rows", "an index on grp would"),
    ("SELECT * FROM big WHERE grp = 5", True, "Sequential scan of big: about 100000 rows", "to keep 100;"),
    ("SELECT * FROM big WHERE id + 0 = 5", True, "Sequential scan of big", "the index on id is not used"),
    (
        'SELECT * FROM apart."Odd name" WHERE "select" = 7',
        False,
        'Sequential scan of "Odd name": about 50000 rows',
        "index on select",
    ),
    ("SELECT * FROM big ORDER BY pad", True, "Sort wrote ", "more work_mem"),
    ("SELECT a.id FROM big AS a JOIN big AS b ON a.pad = b.pad", True, "Hash was split into ", "batches on disk"),
    (
        "SELECT n % 90000, count(*) FROM generate_series(1, 200000) AS n GROUP BY 1",
        True,
        "HashAggregate wrote ",
        "to disk",
    ),
    (
        "SELECT a.id FROM big AS a, small AS b",
        False,
        "Nested loop over about 20000000 pairs",
        "join condition may be missing",
    ),
    (
        "SELECT count(*) FROM big AS a, small AS b WHERE a.grp <> b.id AND a.id < 9000",
        True,
        "Nested loop over about",
        "with =",
    ),
    ("SELECT * FROM big WHERE grp = twin", True, "Seq Scan on big: 500 rows were expected and 100000 came", "ANALYZE"),
]
QUIET = [
    ("SELECT * FROM big WHERE id = 5", True),
    ("SELECT * FROM big WHERE grp >= 0", True),
    ("SELECT * FROM small WHERE id = 5", True),
    ("SELECT * FROM big LIMIT 5", True),
    ("SELECT s.id FROM small AS s JOIN big AS b ON b.id = s.id", True),
    ("SELECT * FROM apart.big WHERE id = 5", False),
    ("SELECT * FROM big WHERE pad LIKE '%9%'", False),
]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("statement", "analyze", "start", "part"), WARNED)
async def test_a_plan_that_could_be_better_is_warned_of(executor, statement, analyze, start, part, format):
    plan = await explained(executor, statement, analyze=analyze, format=format)
    found = [warning for warning in plan.warnings if warning.startswith(start)]
    assert len(found) == 1, plan.warnings
    assert part in found[0]


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(("statement", "analyze"), QUIET)
async def test_a_good_plan_is_not_warned_of(executor, statement, analyze, format):
    plan = await explained(executor, statement, analyze=analyze, format=format)
    assert plan.warnings == ()


async def test_a_literal_that_looks_like_a_plan_changes_nothing(executor):
    trap = "'\n  ->  Nested Loop  (cost=1.00..2.00 rows=99999999 width=4)'"
    plan = await explained(executor, f"SELECT * FROM small WHERE id::text = {trap}")
    assert (plan.estimated_rows, plan.warnings) == (1, ())
