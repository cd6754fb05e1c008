"""EXPLAIN on a real server: what it tells, what it says is read, and what it warns of."""

import json

import pytest
from dragoman import ColumnNotFound, ExplainOptions, InvalidSql, ParameterError, Relation, Request
from dragoman_trino.advice import warnings
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.nodes import Node
from dragoman_trino.plans import ONLY_TEXT
from dragoman_trino.tables import Scan


@pytest.fixture(scope="module")
async def executor(trino_server, anyio_backend):
    running = TrinoExecutor(trino_server.configure("tpch", "tiny"))
    yield running
    await running.aclose()


async def explained(executor, statement, *parameters, **options):
    return await executor.explain(Request(statement=statement, parameters=parameters), ExplainOptions(**options))


async def test_the_logical_plan_is_told_with_its_cost_and_rows(executor):
    plan = await explained(executor, "SELECT name FROM nation")
    assert plan.plan.splitlines()[1] == "Output[columnNames = [name]]"
    assert (plan.format, plan.estimated_rows, plan.actual_time_ms) == ("text", 25, None)
    assert plan.estimated_cost > 0
    assert (plan.warnings, plan.notices) == ((), ("Reads tpch.tiny.nation (about 25 rows, 302 bytes).",))


@pytest.mark.parametrize("format", ["json", "yaml"])
async def test_the_json_form_is_the_server_s_object(executor, format):
    plan = await explained(executor, "SELECT name FROM nation", format=format)
    assert (plan.plan["name"], plan.plan["children"][0]["name"]) == ("Output", "TableScan")
    assert json.loads(json.dumps(plan.plan)) == plan.plan
    assert (plan.format, plan.estimated_rows) == (format, 25)


async def test_verbose_tells_layouts_and_fragments(executor):
    assert "Layout: " not in (await explained(executor, "SELECT name FROM nation")).plan
    plan = await explained(executor, "SELECT name FROM nation", verbose=True)
    assert "Layout: [name:varchar(25)]" in plan.plan
    assert "Fragment 0" in plan.plan


async def test_analyze_runs_the_query_and_tells_its_time(executor):
    plan = await explained(executor, "SELECT count(*) FROM nation", analyze=True)
    assert plan.actual_time_ms > 0
    assert "Input: 25 rows" in plan.plan
    assert plan.notices == ("Reads tpch.tiny.nation (about 25 rows).",)


async def test_actual_times_come_as_text_whatever_is_asked_for(executor):
    plan = await explained(executor, "SELECT count(*) FROM nation", analyze=True, format="json")
    assert (plan.format, plan.notices[-1]) == ("text", ONLY_TEXT)


async def test_what_was_not_run_has_no_time_whatever_its_literals_say(executor):
    trap = "'\nQueued: 1ms, Analysis: 1ms, Planning: 1ms, Execution: 99d'"
    plan = await explained(executor, f"SELECT * FROM nation WHERE name = {trap}")
    assert plan.actual_time_ms is None
    run = await explained(executor, f"SELECT * FROM nation WHERE name = {trap}", analyze=True)
    assert run.actual_time_ms < 86_400_000


async def test_parameters_are_bound(executor):
    plan = await explained(executor, "SELECT name FROM nation WHERE nationkey = ? OR name = ?", 7, "it's")
    assert "bigint '7'" in plan.plan
    assert "it''s" in plan.plan or "it's" in plan.plan


async def test_a_run_has_its_parameters_too(executor):
    plan = await explained(executor, "SELECT name FROM nation WHERE nationkey = ?", 7, analyze=True)
    assert "Output: 1 row " in plan.plan
    with pytest.raises(ParameterError, match=r"Parameter 1|bigint"):
        await explained(executor, "SELECT name FROM nation WHERE nationkey = ?", "seven")


async def test_an_error_points_into_the_caller_s_text(executor):
    with pytest.raises(ColumnNotFound) as missed:
        await explained(executor, "SELECT name,\n nothing FROM nation")
    assert missed.value.offset == len("SELECT name,\n ")
    with pytest.raises(InvalidSql) as caught:
        await explained(executor, "SELECT name FORM nation x")
    assert caught.value.offset == len("SELECT name FORM ")


UNKNOWN = "There are no statistics of tpch.sf1000.customer, tpch.sf1000.orders:"
WARNED = [
    ("SELECT count(*) FROM orders, customer", ["Cross join over about 22500000 pairs"]),
    ("SELECT count(*) FROM orders o JOIN customer c ON o.custkey < c.custkey", ["Cross join over about 22500000"]),
    ("SELECT * FROM orders, customer ORDER BY totalprice LIMIT 5", ["Cross join over about 22500000"]),
    ("SELECT * FROM sf1000.orders o JOIN sf1000.customer c ON o.custkey = c.custkey", [UNKNOWN]),
    ("SELECT count(*) FROM sf1000.orders, sf1000.customer", ["Cross join of an unknown number of rows", UNKNOWN]),
]
QUIET = [
    "SELECT * FROM orders o JOIN customer c ON o.custkey = c.custkey",
    "SELECT * FROM orders, customer LIMIT 5",
    "SELECT * FROM nation, region",
    "SELECT custkey, (SELECT max(regionkey) FROM region) FROM customer",
    "SELECT custkey, exists (SELECT 1 FROM region) FROM customer",
    "SELECT * FROM orders CROSS JOIN UNNEST(ARRAY[1, 2])",
    "SELECT * FROM system.runtime.nodes",
    "SELECT table_name FROM information_schema.tables",
]


@pytest.mark.parametrize(("statement", "starts"), WARNED)
async def test_a_plan_that_could_be_better_is_warned_of(executor, statement, starts):
    plan = await explained(executor, statement)
    assert [found.startswith(start) for found, start in zip(plan.warnings, starts, strict=True)] == [True] * len(starts)


@pytest.mark.parametrize("statement", QUIET)
async def test_a_good_plan_is_not_warned_of(executor, statement):
    assert (await explained(executor, statement)).warnings == ()


async def test_what_is_unknown_is_said_to_be_and_not_taken_for_little(executor):
    plan = await explained(executor, "SELECT * FROM sf1000.orders")
    assert (plan.estimated_rows, plan.estimated_cost) == (None, None)
    assert plan.notices == ("Reads tpch.sf1000.orders (how much is not known).",)


LOGS = Relation("logs", "web", "lake")


def scan(rows: float | None = 1e6, size: float | None = 1e6, constrained=()):
    return Scan(LOGS, rows, size, frozenset(constrained))


@pytest.mark.parametrize(
    ("found", "parts", "start"),
    [
        (scan(), ("day(at)", "region"), "Every partition of lake.web.logs is read (about 1000000 rows): limit at or"),
        (scan(rows=None), ("region",), "Every partition of lake.web.logs is read (an unknown number of rows)"),
        (scan(size=3e13), (), "About 27 TB of lake.web.logs are read"),
    ],
)
def test_much_that_is_read_is_warned_of(found, parts, start):
    first, *_ = warnings(Node("Output", 1.0), [found], {LOGS: parts})
    assert first.startswith(start)


@pytest.mark.parametrize(
    ("found", "parts"),
    [
        (scan(constrained=["at"]), ("day(at)", "region")),
        (scan(constrained=["region"]), ("region", "bucket(id)")),
        (scan(rows=9_000), ("region",)),
        (scan(), ()),
    ],
)
def test_pruned_and_small_tables_are_not_warned_of(found, parts):
    assert warnings(Node("Output", 1.0), [found], {LOGS: parts}) == ()
