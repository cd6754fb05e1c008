"""No answer is longer than `max_bytes`, and what is left out is counted exactly."""

import pytest
from dragoman import Plan
from dragoman.tools.answer import size
from dragoman.tools.querying import _plan_facts

TABLES = 400
WIDE = 300
SCRIPT = (
    "BEGIN;"
    + "".join(
        f"CREATE TABLE table_with_a_long_name_{number:03} (id INTEGER PRIMARY KEY, hub_id INT REFERENCES hub (id));\n"
        for number in range(TABLES)
    )
    + "CREATE TABLE hub (id INTEGER PRIMARY KEY, {}); COMMIT;".format(
        ", ".join(f"column_number_{n} TEXT" for n in range(WIDE))
    )
)
MAX_BYTES = 3000

CALLS = [
    ("list_tables", {}),
    ("list_tables", {"detail": "full"}),
    ("describe_table", {"table_name": "hub"}),
    ("describe_table", {"table_name": "hub", "detail": "full"}),
    ("describe_table", {"table_name": [f"table_with_a_long_name_{n:03}" for n in range(200)]}),
    ("describe_table", {"table_name": [f"table_with_a_long_name_{n:03}" for n in range(200)], "detail": "full"}),
    ("search_catalog", {"query": "table", "limit": 1000}),
    ("search_catalog", {}),
    ("get_foreign_keys", {"table_name": "hub"}),
    ("list_databases", {}),
    ("explain_query", {"sql": " UNION ALL ".join(f"SELECT id FROM table_with_a_long_name_{n:03}" for n in range(90))}),
]


@pytest.fixture
async def big(database, open_toolbox):
    async with open_toolbox(database("big", SCRIPT, max_bytes=MAX_BYTES)) as toolbox:
        yield toolbox


@pytest.mark.parametrize(("tool", "arguments"), CALLS)
async def test_every_answer_is_bounded(big, tool, arguments):
    answer = await big.call(tool, arguments)
    assert not answer.is_error
    assert len(answer.text.encode()) <= MAX_BYTES


async def test_tables_left_out_are_counted(big, ask):
    compact = await ask(big, "list_tables")
    assert len(compact["tables"]["main"]) + compact["omitted"] == TABLES + 1
    full = await ask(big, "list_tables", detail="full")
    assert len(full["tables"]) + full["omitted"] == full["total_count"] == TABLES + 1
    everything = await ask(big, "search_catalog")
    assert len(everything["relations"]["big"]["main"]) + everything["omitted"] == TABLES + 1


async def test_columns_left_out_are_counted(big, ask):
    compact = await ask(big, "describe_table", table_name="hub")
    assert len(compact["tables"]["hub"]) + compact["omitted_lines"] == WIDE + 1
    full = await ask(big, "describe_table", table_name="hub", detail="full")
    assert len(full["tables"][0]["columns"]) + full["omitted_columns"] == WIDE + 1


async def test_descriptions_and_keys_left_out_are_counted(big, ask):
    names = [f"table_with_a_long_name_{number:03}" for number in range(200)]
    for detail in ("compact", "full"):
        answer = await ask(big, "describe_table", table_name=names, detail=detail)
        assert len(answer["tables"]) + answer["omitted"] == 200
    keys = await ask(big, "get_foreign_keys", table_name="hub")
    assert len(keys["incoming"]) + keys["omitted"] == TABLES


async def test_a_plan_that_is_cut_says_so(big, ask):
    answer = await ask(big, "explain_query", sql=CALLS[-1][1]["sql"])
    assert answer["plan"].endswith("...")
    assert "cut" in answer["notices"][-1]


@pytest.mark.parametrize("plan", ["x" * 1000, ["x" * 1000]])
def test_a_plan_with_more_warnings_than_fit_is_bounded(plan):
    told = Plan(plan=plan, warnings=("a warning of some length",) * 1000, notices=("a notice",) * 1000)
    facts = _plan_facts(told, 3000)
    assert size(facts) <= 3000
    assert facts["warnings"][-1].endswith("more.")
