"""Every tool, called through the toolbox, on real databases."""

import asyncio
import json
from typing import Any

import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration
from dragoman.tools import Toolbox, UnknownTool
from dragoman.tools.answer import Answer
from dragoman.tools.knowledge import SPECS as KNOWLEDGE
from dragoman.tools.results import SPECS as RESULTS
from dragoman.tools.standard import SPECS as STANDARD
from dragoman.tools.toolbox import HANDLERS

COMPACT_ORDERS = [
    "id integer PK",
    "user_id integer -> users.id",
    "region text",
    "branch integer NULL",
    "total numeric(12,2) NULL",
    "(region, branch) -> branches(region, id)",
]


async def test_list_databases_tells_who_is_there_and_who_is_not(database, open_toolbox, scripts, tmp_path, ask):
    gone = Database(name="gone", dialect="sqlite", database="gone.db", folder=tmp_path)
    odd = Database(name="odd", dialect="nosuchdialect", database="x")
    crm = database("crm", scripts["crm"], description="Leads")
    async with open_toolbox(crm, gone, odd) as toolbox:
        ready, missing, broken = (await ask(toolbox, "list_databases"))["databases"]
    assert ready.pop("version").startswith("3.")
    assert ready == {
        "name": "crm",
        "dialect": "sqlite",
        "description": "Leads",
        "status": "ready",
        "placeholder": "?",
        "schemas": ["main"],
    }
    assert (missing["status"], broken["status"]) == ("unreachable", "unreachable")
    assert "does not exist" in missing["error"]
    assert str(tmp_path) not in missing["error"]
    assert "nosuchdialect" in broken["error"]


async def test_list_schemas_counts_tables(shop, ask):
    assert await ask(shop, "list_schemas") == {"schemas": [{"name": "main", "table_count": 5}]}


async def test_list_tables_names_tables_and_views_by_schema(shop, ask):
    tables = ['"Order Details"', "branches", "lonely", "orders", "users"]
    assert await ask(shop, "list_tables") == {"tables": {"main": tables}, "views": {"main": ["big_orders"]}}
    assert await ask(shop, "list_tables", include_views=False) == {"tables": {"main": tables}}


async def test_list_tables_counts_exactly_what_it_leaves_out(shop, ask):
    answer = await ask(shop, "list_tables", limit=2)
    shown = sum(len(names) for group in ("tables", "views") for names in answer.get(group, {}).values())
    assert (shown, answer["omitted"]) == (2, 4)
    assert "limit" in answer["hint"]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("%orders", ["orders"]),
        ("ORD%", ['"Order Details"', "orders"]),
        ("_sers", ["users"]),
        ("big\\_%", []),
        ("%%%%%%%%%%%%%%%%%%%%%%%%%x", []),
        ("order", []),
    ],
)
async def test_name_pattern_is_a_like_pattern(shop, ask, pattern, expected):
    answer = await ask(shop, "list_tables", name_pattern=pattern, include_views=False)
    assert answer["tables"].get("main", []) == expected


async def test_list_tables_in_full(shop, ask):
    answer = await ask(shop, "list_tables", detail="full", name_pattern="%orders")
    assert answer["total_count"] == 2
    view, table = answer["tables"]
    assert (view["name"], view["type"], view["column_count"]) == ("big_orders", "view", 5)
    assert (table["name"], table["schema_name"], table["has_primary_key"]) == ("orders", "main", True)
    assert "has_primary_key" not in view


async def test_describe_table_is_a_line_per_column(shop, ask):
    assert await ask(shop, "describe_table", table_name="ORDERS") == {"tables": {"orders": COMPACT_ORDERS}}


async def test_describe_table_adds_indexes_and_checks_when_asked(shop, ask):
    answer = await ask(shop, "describe_table", table_name="orders", include_indexes=True, include_constraints=True)
    assert answer["tables"]["orders"][-2:] == ["INDEX orders_user (user_id)", "CHECK (total >= 0)"]


async def test_odd_names_are_quoted_as_in_sql(shop, ask):
    expected = {'"Order Details"': ['"order" integer NULL -> orders.id', '"a.b" text NULL', '"quote""d" text NULL']}
    for name in ("order details", '"Order Details"', 'main."Order Details"', "[Order Details]"):
        assert (await ask(shop, "describe_table", table_name=name))["tables"] == expected


async def test_describe_table_in_full(shop, ask):
    (table,) = (await ask(shop, "describe_table", table_name="orders", detail="full"))["tables"]
    assert {"columns", "constraints", "indexes"} <= set(table)
    user = next(column for column in table["columns"] if column["name"] == "user_id")
    assert user["is_nullable"] is False
    assert user["foreign_key"] == {
        "referenced_schema": "main",
        "referenced_table": "users",
        "referenced_column": "id",
    }
    assert {constraint["type"] for constraint in table["constraints"]} == {"PRIMARY KEY", "FOREIGN KEY", "CHECK"}
    plain = await ask(
        shop, "describe_table", table_name="orders", detail="full", include_indexes=False, include_constraints=False
    )
    assert {"constraints", "indexes"}.isdisjoint(plain["tables"][0])


async def test_of_several_tables_the_others_still_answer(shop, ask):
    answer = await ask(shop, "describe_table", table_name=["orders", "usrs", "lonely"])
    assert list(answer["tables"]) == ["orders", "lonely"]
    assert answer["not_found"] == ["usrs"]
    assert '"users"' in answer["notices"][0]


@pytest.mark.parametrize("name", ["ordrs", ["ordrs", "zzz"]])
async def test_a_table_that_is_not_there_is_an_error_naming_the_near_ones(shop, fail, name):
    error = await fail(shop, "describe_table", {"table_name": name})
    assert error["code"] == "TABLE_NOT_FOUND"
    assert '"orders"' in error["suggestion"]


async def test_get_foreign_keys_has_both_directions(shop, ask):
    answer = await ask(shop, "get_foreign_keys", table_name="orders")
    branches = next(key for key in answer["outgoing"] if key["to_table"] == "branches")
    assert branches == {
        "from_schema": "main",
        "from_table": "orders",
        "from_columns": ["region", "branch"],
        "to_schema": "main",
        "to_table": "branches",
        "to_columns": ["region", "id"],
        "on_update": "NO ACTION",
        "on_delete": "NO ACTION",
    }
    assert [key["from_table"] for key in answer["incoming"]] == ['"Order Details"']
    assert (await ask(shop, "get_foreign_keys", table_name="orders", direction="incoming"))["outgoing"] == []


async def test_join_paths_are_sql_that_runs(shop, ask):
    for source, target, rows in (
        ("Order Details", "branches", 1),
        ("branches", "users", 2),
        ("users", "users", 1),
    ):
        answer = await ask(shop, "find_join_path", from_table=source, to_table=target)
        (path,) = answer["paths"]
        assert path["depth"] == len(path["steps"])
        assert (await ask(shop, "execute_query", sql=path["sql"]))["row_count"] == rows


async def test_no_join_path_is_an_error(shop, fail):
    error = await fail(shop, "find_join_path", {"from_table": "orders", "to_table": "lonely"})
    assert error["code"] == "PATH_NOT_FOUND"
    assert "lonely joins to nothing" in error["suggestion"]


async def test_search_ranks_over_all_databases(toolbox, ask):
    seen = []

    async def progress(done, total, message):
        seen.append((done, total, message))

    answer = await toolbox.call("search_catalog", {"query": "email"}, progress=progress)
    found = [(row["database"], row["table"], row["column"], row["kind"]) for row in answer.structured["results"]]
    assert found == [("crm", "leads", "email", "column"), ("shop", "users", "email", "column")]
    assert seen == [(1, 2, "shop"), (2, 2, "crm")]
    only = await ask(toolbox, "search_catalog", query="email", database="shop", kinds=["column"], limit=1)
    assert [row["database"] for row in only["results"]] == ["shop"]
    assert await ask(toolbox, "search_catalog", query="email", kinds="table") == {"results": []}


async def test_an_empty_search_lists_every_relation(toolbox, ask):
    assert (await ask(toolbox, "search_catalog"))["relations"] == {
        "shop": {"main": ['"Order Details"', "big_orders", "branches", "lonely", "orders", "users"]},
        "crm": {"main": ["leads"]},
    }


async def test_an_empty_search_of_a_small_database_describes_it(toolbox, ask):
    described = await ask(toolbox, "search_catalog", database="shop")
    names = ['"Order Details"', "big_orders", "branches", "lonely", "orders", "users"]
    assert described["tables"] == (await ask(toolbox, "describe_table", database="shop", table_name=names))["tables"]
    assert set(await ask(toolbox, "search_catalog", database="shop", kinds=["table"])) == {"relations"}


async def test_an_empty_search_of_a_large_database_lists_names(database, open_toolbox, ask):
    script = ";".join(f"CREATE TABLE t{number} (a INTEGER, b TEXT, c TEXT)" for number in range(300))
    async with open_toolbox(database("large", script)) as toolbox:
        assert set(await ask(toolbox, "search_catalog")) == {"relations"}


async def test_a_value_is_found_with_what_holds_it(database, open_toolbox, ask):
    rows = ", ".join(f"({number}, '{('open', 'Closed out')[number % 2]}', 'p{number}@x.org')" for number in range(100))
    script = (
        f"CREATE TABLE tickets (id INTEGER PRIMARY KEY, status TEXT, email TEXT); INSERT INTO tickets VALUES {rows}"
    )
    async with open_toolbox(database("desk", script)) as toolbox:
        assert await ask(toolbox, "search_catalog", query="closed out") == {"results": []}  # nothing is learned for it
        (found,) = (await ask(toolbox, "search_catalog", query="closed out", kinds="value"))["results"]
        assert (found["table"], found["column"], found["kind"], found["value"]) == (
            *("tickets", "status", "value", "Closed out"),
        )
        assert (await ask(toolbox, "search_catalog", query="Closed"))["results"] == [found]
        assert await ask(toolbox, "search_catalog", query="p1@x.org", kinds="value") == {"results": []}


async def test_a_database_that_cannot_be_searched_is_named(database, open_toolbox, scripts, tmp_path, ask):
    gone = Database(name="gone", dialect="sqlite", database="gone.db", folder=tmp_path)
    async with open_toolbox(database("crm", scripts["crm"]), gone) as toolbox:
        answer = await ask(toolbox, "search_catalog", query="leads")
    assert [row["table"] for row in answer["results"]] == ["leads"]
    assert answer["notices"][0].startswith("gone was not searched")


async def test_execute_query_answers_a_result(shop):
    answer = await shop.call("execute_query", {"sql": "SELECT id, total FROM orders WHERE id < ?", "params": [3]})
    assert answer.structured == {
        "columns": ["id", "total"],
        "types": ["integer", "numeric(12,2)"],
        "rows": [[1, 12.5], [2, 250]],
        "row_count": 2,
    }
    assert json.loads(answer.text) == answer.structured
    assert set(answer.meta) == {"dragoman/elapsed_ms", "dragoman/query_hash"}


async def test_a_limit_above_the_ceiling_is_lowered_and_said(database, open_toolbox, scripts, ask):
    async with open_toolbox(database("shop", scripts["shop"], max_rows=2)) as toolbox:
        answer = await ask(toolbox, "execute_query", sql="SELECT id FROM orders", limit=5000)
    assert (answer["row_count"], answer["truncated"]["limit"]) == (2, 2)
    assert "lowered to 2" in answer["notices"][0]
    assert "Ask for more" not in answer["truncated"]["hint"]


async def test_a_cut_below_the_ceiling_says_how_to_ask_for_more(database, open_toolbox, scripts, ask):
    async with open_toolbox(database("shop", scripts["shop"], max_rows=2)) as toolbox:
        answer = await ask(toolbox, "execute_query", sql="SELECT id FROM orders", limit=1)
    assert answer["truncated"]["hint"].startswith("Ask for more with `limit`")


async def test_a_timeout_beyond_all_numbers_is_lowered_too(shop, ask):
    answer = await ask(shop, "execute_query", sql="SELECT 1", timeout_ms=10**400)
    assert "lowered to 30 seconds" in answer["notices"][0]


async def test_get_sample_rows_takes_columns_and_a_condition(shop, ask, fail):
    answer = await ask(shop, "get_sample_rows", table_name="orders", columns=["id"], where_clause="total > 10", limit=1)
    assert (answer["columns"], answer["row_count"]) == (["id"], 1)
    error = await fail(shop, "get_sample_rows", {"table_name": "orders", "limit": 101})
    assert error["code"] == "PARAMETER_ERROR"


async def test_explain_query_answers_a_plan(shop, ask):
    answer = await ask(shop, "explain_query", sql="SELECT * FROM orders")
    assert "orders" in answer["plan"]
    assert (answer["format"], type(answer["warnings"])) == ("text", list)


async def test_writes_are_refused(shop, fail):
    error = await fail(shop, "execute_query", {"sql": "DELETE FROM orders"})
    assert error["code"] == "WRITE_OPERATION_DENIED"


async def test_a_database_must_be_named_when_there_are_several(toolbox, fail):
    error = await fail(toolbox, "list_tables", {})
    assert error["code"] == "PARAMETER_ERROR"
    assert "shop, crm" in error["suggestion"]
    error = await fail(toolbox, "list_tables", {"database": "shp"})
    assert error["code"] == "UNKNOWN_DATABASE"
    assert "shop" in error["suggestion"]


async def test_a_single_database_may_still_be_named(shop, ask):
    assert "database" not in await ask(shop, "list_schemas", database="shop")


async def test_an_unknown_tool_is_not_an_answer(shop):
    with pytest.raises(UnknownTool):
        await shop.call("drop_everything", {})


@pytest.mark.parametrize(
    ("result_format", "text", "structured"), [("both", True, True), ("text", True, False), ("structured", False, True)]
)
async def test_the_format_decides_which_halves_there_are(
    database, open_toolbox, scripts, result_format, text, structured
):
    async with open_toolbox(database("shop", scripts["shop"]), result_format=result_format) as toolbox:
        answer = await toolbox.call("execute_query", {"sql": "SELECT 1 AS one"})
        error = await toolbox.call("execute_query", {"sql": ""})
    assert bool(answer.text) is text
    assert (answer.structured is not None) is structured
    assert "INVALID_SQL" in error.text


class Panic(BaseException):
    """What a library in Rust raises when it panics."""


@pytest.mark.parametrize("kind", [ZeroDivisionError, Panic, SystemExit, asyncio.CancelledError])
async def test_a_bug_of_ours_is_an_answer_with_a_reference(kind, shop, fail, monkeypatch, caplog):
    async def broken(call):
        raise kind("secret detail")

    monkeypatch.setitem(HANDLERS, "list_schemas", broken)
    error = await fail(shop, "list_schemas", {})
    assert error["code"] == "INTERNAL_ERROR"
    assert "secret detail" not in json.dumps(error)
    reference = error["message"].split()[-1].rstrip(".")
    assert reference in caplog.text


async def test_a_cancelled_call_has_no_answer(shop, monkeypatch):
    entered = asyncio.Event()

    async def endless(call):
        entered.set()
        await asyncio.Event().wait()

    monkeypatch.setitem(HANDLERS, "list_schemas", endless)
    task = asyncio.create_task(shop.call("list_schemas", {}))
    await entered.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_errors_quote_no_more_than_a_little_of_what_was_sent(shop, fail):
    for arguments in ({"database": "x" * 100_000, "sql": "SELECT 1"}, {"sql": "SELECT " + "x" * 60_000}):
        assert len(json.dumps(await fail(shop, "execute_query", arguments))) < 5000


async def test_the_default_database_is_named_in_the_answer(database, scripts, ask):
    databases = {name: database(name, script) for name, script in scripts.items()}
    async with Gateway.open(Configuration(databases=databases, default_database="crm")) as gateway:
        toolbox = Toolbox(gateway)
        assert await ask(toolbox, "list_tables") == {"tables": {"main": ["leads"]}, "database": "crm"}
        assert (await ask(toolbox, "execute_query", sql="SELECT 1"))["database"] == "crm"
        assert "database" not in await ask(toolbox, "list_tables", database="shop")
        assert all("database" not in tool.input_schema.get("required", ()) for tool in toolbox.tools)


REQUIRED = {
    "describe_table": {"table_name": "orders"},
    "execute_query": {"sql": "SELECT count(*) FROM orders"},
    "explain_query": {"sql": "SELECT count(*) FROM orders"},
    "export_result": {"sql": "SELECT count(*) FROM orders"},
    "find_join_path": {"from_table": "orders", "to_table": "users"},
    "get_foreign_keys": {"table_name": "orders"},
    "get_row": {"table_name": "users", "key": 1},
    "get_sample_rows": {"table_name": "users"},
}


@pytest.mark.parametrize("name", [spec.name for spec in (*STANDARD, *KNOWLEDGE, *RESULTS)])
async def test_a_client_that_sends_every_text_and_list_empty_gets_the_same_answer(
    database, open_toolbox, scripts, name
):
    spec = next(spec for spec in (*STANDARD, *KNOWLEDGE, *RESULTS) if spec.name == name)
    given = REQUIRED.get(name, {})
    optional = [each for each in spec.all_arguments if not each.required]
    texts = {each.name: "" for each in optional if each.type in ("string", "string or strings")}
    lists = {each.name: [] for each in optional if each.type in ("strings", "values")}
    async with open_toolbox(database("shop", scripts["shop"]), profile="full") as toolbox:
        plain, empty = await toolbox.call(name, given), await toolbox.call(name, {**texts, **lists, **given})
    assert _steady(empty) == _steady(plain)


def _steady(answer: Answer) -> Any:
    """An answer without the names of files, which differ from call to call."""
    text = json.loads(answer.text)
    return {key: value for key, value in text.items() if key not in ("file", "url", "expires")}
