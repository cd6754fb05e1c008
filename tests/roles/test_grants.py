"""What a role does not grant does not exist for those who have it: not in lists, searches, errors, plans or queries."""

import sqlite3

import pytest
from dragoman import Gateway
from dragoman.catalog.insight import Insight
from dragoman.config import load
from dragoman.errors import ConfigurationError
from dragoman.model import Principal
from dragoman.tools.toolbox import UnknownTool

from .conftest import ANALYST, ask

STRANGER = Principal("eve", subject="eve")
ROLES = """
[databases.other]
url = "sqlite:///shop.db"

[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.*"]
deny = ["main.salaries"]
deny_columns = ["*.ssn"]
[roles.analyst.limits]
max_rows = 2

[roles.auditor]
principals = ["olga"]
tools = ["execute_query"]
[[roles.auditor.grants]]
database = "shop"
tables = ["main.salaries"]
"""


async def test_lists_show_what_is_granted_and_nothing_else(opened):
    async with opened(ROLES) as toolbox:
        assert await ask(toolbox, "list_tables", database="shop") == {
            "tables": {"main": ["customers", "orders"]},
            "views": {"main": ["paid"]},
        }
        described = await ask(toolbox, "describe_table", table_name="customers", detail="full")
        assert [column["name"] for column in described["tables"][0]["columns"]] == ["id", "name", "email"]
        assert "ssn" not in str(described)
        found = await ask(toolbox, "search_catalog", query="ssn")
        assert found["results"] == []
        databases = (await ask(toolbox, "list_databases"))["databases"]
        assert [each["name"] for each in databases] == ["shop"]
        keys = await ask(toolbox, "get_foreign_keys", table_name="customers")
        assert [key["from_table"] for key in keys["incoming"]] == ["orders"]


async def test_a_database_without_a_grant_is_not_there(opened):
    async with opened(ROLES) as toolbox:
        refused = (await ask(toolbox, "list_tables", database="other"))["error"]
        missing = (await ask(toolbox, "list_tables", database="nowhere"))["error"]
        assert refused["code"] == missing["code"] == "UNKNOWN_DATABASE"
        assert refused["message"].replace("other", "nowhere") == missing["message"]


async def test_who_has_no_role_sees_nothing(opened):
    async with opened(ROLES) as toolbox:
        assert toolbox.show_to(STRANGER).tools == ()
        with pytest.raises(UnknownTool):
            await toolbox.call("list_databases", {}, principal=STRANGER)


async def test_a_role_lists_the_tools_its_holders_have(opened):
    async with opened(ROLES) as toolbox:
        olga = Principal("olga", subject="olga")
        assert [tool.name for tool in toolbox.show_to(olga).tools] == ["execute_query"]
        assert (await ask(toolbox, "execute_query", olga, sql="SELECT count(*) FROM salaries"))["rows"] == [[2]]
        with pytest.raises(UnknownTool):
            await toolbox.call("list_tables", {}, principal=olga)


async def test_a_name_of_a_principal_gives_no_right_when_an_issuer_signed_it_in(opened):
    async with opened(ROLES) as toolbox:
        foreign = Principal("olga", issuer="https://idp.example", subject="4711")
        assert toolbox.show_to(foreign).tools == ()
        same = Principal("O.", issuer="https://idp.example", subject="olga")
        assert toolbox.show_to(same).tools != ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {}",
        "SELECT count(*) FROM {}",
        "SELECT 1 FROM orders JOIN {} USING (id)",
        "WITH x AS (SELECT * FROM {}) SELECT * FROM x",
        "SELECT (SELECT max(id) FROM {})",
        "SELECT 1 WHERE EXISTS (SELECT 1 FROM main.{})",
        "SELECT id FROM orders UNION SELECT id FROM {}",
    ],
)
async def test_a_table_that_is_not_granted_and_one_that_is_not_there_are_told_alike(opened, sql):
    async with opened(ROLES) as toolbox:
        refused = (await ask(toolbox, "execute_query", sql=sql.format("salaries")))["error"]
        missing = (await ask(toolbox, "execute_query", sql=sql.format("salariex")))["error"]
        assert refused["code"] == "TABLE_NOT_FOUND"
        assert str(refused).replace("salaries", "salariex") == str(missing)
        explained = (await ask(toolbox, "explain_query", sql=sql.format("salaries")))["error"]
        assert explained["code"] == "TABLE_NOT_FOUND"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT ssn FROM customers",
        "SELECT x.ssn FROM (SELECT * FROM customers) x",
        "SELECT id FROM customers WHERE ssn = '111'",
        "SELECT id FROM customers ORDER BY ssn",
        "SELECT count(*) FROM customers GROUP BY ssn",
        "SELECT rowid FROM customers",
        "WITH c AS (SELECT ssn AS s FROM customers) SELECT s FROM c",
    ],
)
async def test_a_column_that_is_not_granted_is_read_by_no_query(opened, sql):
    async with opened(ROLES) as toolbox:
        error = (await ask(toolbox, "execute_query", sql=sql))["error"]
        assert error["code"] in {"COLUMN_NOT_FOUND", "INVALID_SQL"}
        assert "222" not in str(error)


async def test_granted_columns_are_read(opened):
    async with opened(ROLES) as toolbox:
        everything = await ask(toolbox, "execute_query", sql="SELECT c.* FROM customers c")
        assert everything["columns"] == ["id", "name", "email"]
        joined = await ask(toolbox, "execute_query", sql="SELECT id FROM customers NATURAL JOIN (SELECT '1' AS ssn)")
        assert joined["row_count"] == 2
        answer = await ask(toolbox, "execute_query", sql="SELECT id, email FROM customers ORDER BY id")
        assert answer["rows"] == [[1, "ada@x.example"], [2, "bob@x.example"]]
        sample = await ask(toolbox, "get_sample_rows", table_name="customers", limit=1)
        assert sample["columns"] == ["id", "name", "email"]


async def test_a_view_needs_its_name_or_all_that_it_reads(opened):
    named = ROLES.replace('["main.*"]', '["main.*", "main.rich"]')
    async with opened(ROLES) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM paid"))["row_count"] == 2
        assert (await ask(toolbox, "execute_query", sql="SELECT * FROM rich"))["error"]["code"] == "TABLE_NOT_FOUND"
    async with opened(named) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT customer_id FROM rich"))["rows"] == [[1]]


async def test_the_limits_of_a_role_bound_its_holders(opened):
    async with opened(ROLES) as toolbox:
        answer = await ask(toolbox, "execute_query", sql="SELECT id FROM orders")
        assert answer["row_count"] == 2
        assert answer["truncated"]["limit"] == 2


async def test_verdicts_are_not_shared_between_roles(opened):
    sql = "SELECT id FROM salaries ORDER BY id"
    olga = Principal("olga", subject="olga")
    async with opened(ROLES) as toolbox:
        for _ in range(2):
            assert (await ask(toolbox, "execute_query", olga, sql=sql))["rows"] == [[1], [2]]
            assert (await ask(toolbox, "execute_query", ANALYST, sql=sql))["error"]["code"] == "TABLE_NOT_FOUND"


async def test_several_roles_unite_and_what_one_denies_stays_denied(opened):
    both = Principal("olga", subject="olga", groups=frozenset({"analysts"}))
    async with opened(ROLES) as toolbox:
        assert "salaries" not in str(await ask(toolbox, "list_tables", both))
    async with opened(ROLES.replace('deny = ["main.salaries"]', 'deny = ["main.paid"]')) as toolbox:
        tables = await ask(toolbox, "list_tables", both)
        assert tables["tables"] == {"main": ["customers", "orders", "salaries"]}


@pytest.mark.parametrize(
    ("old", "new", "key", "near"),
    [
        ('tables = ["main.salaries"]', 'tables = ["main.salarie"]', "roles.auditor.grants.0.tables", "main.salaries"),
        ('deny = ["main.salaries"]', 'deny = ["main.salarys"]', "roles.analyst.grants.0.deny", "main.salaries"),
        ('tables = ["main.*"]', 'tables = ["mian.*"]', "roles.analyst.grants.0.tables", "main"),
        ('["*.ssn"]', '["*.snn"]', "roles.analyst.grants.0.deny_columns", "ssn"),
        ('database = "shop"', 'database = "shpo"', "roles.analyst.grants.0.database", "shop"),
        ("max_rows = 2", "max_row = 2", "roles.analyst.limits.max_row", "max_rows"),
        ('groups = ["analysts"]', 'group = ["analysts"]', "roles.analyst.group", "groups"),
    ],
)
async def test_what_names_nothing_is_an_error_at_the_start(shop, old, new, key, near):
    (shop / "dragoman.toml").write_text('[databases.shop]\nurl = "sqlite:///shop.db"\n' + ROLES.replace(old, new, 1))
    with pytest.raises(ConfigurationError) as caught:
        async with Gateway.open(load(shop / "dragoman.toml", environ={}, folder=shop)):
            pass
    told = f"{caught.value.message} {caught.value.suggestion}"
    assert "dragoman.toml" in told
    assert key in told
    assert near in told


async def test_an_unknown_tool_of_a_role_is_an_error_at_the_start(opened):
    with pytest.raises(ConfigurationError, match=r"dragoman\.toml: roles\.auditor\.tools.*'execute_qery'"):
        async with opened(ROLES.replace('["execute_query"]', '["execute_qery"]')):
            pass


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("execute_query", {"sql": "SELECT * FROM refunds"}),
        ("execute_query", {"sql": "SELECT * FROM main.refunds AS r JOIN orders AS o ON o.id = r.id"}),
        ("execute_query", {"sql": "WITH r AS (SELECT id FROM refunds) SELECT id FROM r", "keep": "mine"}),
        ("explain_query", {"sql": "SELECT * FROM refunds"}),
        ("get_sample_rows", {"table_name": "refunds"}),
        ("describe_table", {"table_name": "refunds"}),
    ],
)
async def test_a_new_table_is_there_when_it_is_first_asked_for(opened, shop, tool, arguments):
    async with opened(ROLES) as toolbox:
        assert await ask(toolbox, "execute_query", sql="SELECT id FROM orders")
        with sqlite3.connect(shop / "shop.db") as connection:
            connection.execute("CREATE TABLE refunds (id INTEGER PRIMARY KEY)")
        connection.close()
        assert "error" not in await ask(toolbox, tool, **{"database": "shop", **arguments})


async def test_what_is_known_of_a_table_that_was_dropped_since_it_was_found_is_nothing(opened, shop):
    async with opened(ROLES) as toolbox:
        seen = toolbox.gateway.for_principal(ANALYST).database("shop")
        found = [table for table in (await seen.catalog.snapshot()).listed if table.relation.name in {"orders", "paid"}]
        with sqlite3.connect(shop / "shop.db") as connection:
            connection.executescript("DROP VIEW paid; DROP TABLE orders")
        connection.close()
        await seen.catalog.refresh()
        assert await seen.insights(found) == {table.relation: Insight() for table in found}
