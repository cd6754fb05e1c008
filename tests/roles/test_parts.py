"""Filters leave rows out and masks change columns, whichever way a query comes to them."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing
from itertools import chain
from typing import Any

import pytest
from dragoman import Gateway
from dragoman.access import Grants
from dragoman.access.patterns import NamePattern
from dragoman.audit import records
from dragoman.config import load
from dragoman.errors import ConfigurationError, TableNotFound
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Claims, Principal
from dragoman.tools import Toolbox

from .conftest import ANALYST, ask

ROLES = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "tenant = $claim.tenant"
[[roles.analyst.grants]]
database = "shop"
tables = ["main.customers", "main.paid"]
deny_columns = ["*.ssn"]
masks = { "main.customers.email" = "partial", "name" = "upper(name)" }
"""
MASKED = ROLES.replace('filter = "tenant = $claim.tenant"', 'masks = { "note" = "partial" }')
WAYS = {
    "plain": "SELECT id FROM orders",
    "schema": "SELECT main.orders.id FROM main.orders",
    "quoted": 'SELECT "main"."orders"."id" FROM [main].`orders`',
    "alias": "SELECT main.id FROM orders AS main",
    "star": "SELECT id FROM (SELECT * FROM orders)",
    "with": "WITH orders AS (SELECT * FROM main.orders) SELECT id FROM orders",
    "recursive": "WITH RECURSIVE o(id) AS (SELECT id FROM orders UNION SELECT id FROM o) SELECT id FROM o",
    "join": "SELECT o.id FROM customers c JOIN orders o ON o.customer_id = c.id ORDER BY 1",
    "left": "SELECT o.id FROM orders o LEFT JOIN orders p ON o.id = p.id + 1 ORDER BY 1",
    "subquery": "SELECT id FROM orders WHERE id IN (SELECT id FROM main.orders)",
    "correlated": "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders WHERE id = o.id)",
    "in a table": "SELECT id FROM orders WHERE (id, tenant, customer_id, total, note) IN main.orders",
    "error": "SELECT id FROM orders WHERE abs(CASE id WHEN 2 THEN -9223372036854775808 ELSE id END) > 0",
}


@pytest.mark.parametrize("sql", WAYS.values(), ids=WAYS)
async def test_rows_that_a_filter_leaves_out_are_not_there(opened, sql):
    async with opened(ROLES) as toolbox:
        answer = await ask(toolbox, "execute_query", sql=sql)
        assert answer.get("rows") == [[1], [3]], answer


async def test_masked_and_hidden_columns_are_not_there(opened):
    async with opened(ROLES) as toolbox:
        answer = await ask(toolbox, "execute_query", sql="SELECT * FROM customers WHERE email = 'a***'")
        assert answer["columns"] == ["id", "name", "email"]
        assert answer["rows"] == [[1, "ADA", "a***"]]
        found = await ask(toolbox, "execute_query", sql="SELECT ssn FROM customers")
        missing = await ask(toolbox, "execute_query", sql="SELECT sss FROM customers")
        assert str(found).replace("ssn", "sss") == str(missing)


async def test_the_audit_tells_the_roles_filters_and_masks_in_force(opened, shop):
    async with opened(ROLES + '[audit]\npath = "audit/calls.jsonl"\n') as toolbox:
        await ask(toolbox, "execute_query", sql="SELECT c.name FROM customers c JOIN orders o ON o.customer_id = c.id")
        await ask(toolbox, "explain_query", sql="SELECT id FROM orders")
    joined, planned = (each for each in records(shop / "audit" / "calls.jsonl") if each.event == "call")
    assert joined.roles == planned.roles == ("analyst",)
    assert set(joined.masks) == {"main.customers.email", "main.customers.name"}
    assert joined.filters == ("main.orders: (\ntenant = $claim.tenant\n)",)
    assert not planned.masks


async def test_a_caller_without_the_claim_reads_nothing(opened):
    async with opened(ROLES) as toolbox:
        ann = Principal("ann", subject="ann", groups=frozenset({"analysts"}))
        error = (await ask(toolbox, "execute_query", ann, sql="SELECT * FROM orders"))["error"]
        assert error["code"] == "PERMISSION_DENIED"
        assert "tenant" in error["message"]


async def test_values_of_a_caller_are_bound(opened):
    async with opened(ROLES) as toolbox:
        for tenant, ids in {"b": [[2]], "a' OR '1'='1": [], 'a"); --': []}.items():
            who = Principal("eve", groups=frozenset({"analysts"}), claims=Claims({"tenant": tenant}))
            assert (await ask(toolbox, "execute_query", who, sql="SELECT id FROM orders"))["rows"] == ids


@pytest.mark.parametrize(
    "tenant", ["\ud800", "a\0b", 2**63, -(10**400), float("inf"), float("nan"), ["a", "\udfff"], {"a": 2**64}]
)
async def test_a_value_that_no_database_takes_opens_nothing(opened, tenant):
    async with opened(ROLES) as toolbox:
        who = Principal("eve", groups=frozenset({"analysts"}), claims=Claims({"tenant": tenant}))
        error = (await ask(toolbox, "execute_query", who, sql="SELECT id FROM orders"))["error"]
        assert error["code"] == "PERMISSION_DENIED"
        assert "claim.tenant" in error["message"]


PEOPLE = """
CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, mail TEXT, born TEXT,
  address TEXT AS (lower("mail")), both TEXT AS (name || ' ' || address) STORED, loud TEXT AS (upper(name)));
INSERT INTO people (id, name, mail) VALUES (7, 'Ada', 'ada@x.example'), (700, 'Bob', 'bob@x.example');
"""
OF_PEOPLE = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.people"]
"""


@pytest.mark.parametrize(
    ("part", "columns"),
    [
        ('deny_columns = ["mail"]', ["id", "name", "born", "loud"]),
        ('masks = { mail = "null" }', ["id", "name", "mail", "born", "loud"]),
        ('masks = { mail = "null", address = "partial" }', ["id", "name", "mail", "born", "address", "loud"]),
        ('columns = ["id", "loud"]', ["id", "loud"]),
        ('columns = ["id", "address"]', ["id", "address"]),
        ('columns = ["id", "*s"]', ["id"]),
        ('deny_columns = ["born"]', ["id", "name", "mail", "address", "both", "loud"]),
    ],
)
async def test_what_is_computed_from_a_hidden_column_goes_with_it(opened, shop, part, columns):
    with closing(sqlite3.connect(shop / "shop.db")) as connection:
        connection.executescript(PEOPLE)
    async with opened(OF_PEOPLE + part) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT * FROM people"))["columns"] == columns
        described = (await ask(toolbox, "describe_table", table_name="people", detail="full"))["tables"][0]
        assert [column["name"] for column in described["columns"]] == columns
        for name in {"address", "both"} - {*columns}:
            refused = await ask(toolbox, "execute_query", sql=f"SELECT {name} FROM people")
            assert refused["error"]["code"] == "COLUMN_NOT_FOUND"


@pytest.mark.parametrize("part", ['deny_columns = ["id"]', 'masks = { id = "null" }', 'columns = ["name"]'])
async def test_the_greatest_hidden_key_is_no_estimate(opened, shop, part):
    with closing(sqlite3.connect(shop / "shop.db")) as connection:
        connection.executescript(PEOPLE)
    async with opened(OF_PEOPLE + part) as toolbox:
        for tool, arguments in {"describe_table": {"table_name": "people"}, "list_tables": {}}.items():
            assert "700" not in str(await ask(toolbox, tool, detail="full", **arguments))


async def test_a_view_that_sqlite_merges_into_a_query_is_still_read(opened):
    async with opened(ROLES.replace("tenant = $claim.tenant", "id IN (SELECT 1)")) as toolbox:
        for sql in ("SELECT count(*) FROM orders", "SELECT 1 WHERE 1 IN (SELECT id FROM orders)"):
            assert (await ask(toolbox, "execute_query", sql=sql))["rows"] == [[1]]


@pytest.mark.parametrize("own", ["\"tenant\" <> 'b'", "tenant = $claim.tenant", None], ids=["quoted", "plain", "mask"])
async def test_a_column_that_is_gone_is_no_text_of_its_name(opened, shop, own):
    """SQLite takes a name in double quotes for a text where there is no such column, unless it is told not to."""
    roles = ROLES.replace("tenant = $claim.tenant", own.replace('"', '\\"')) if own else MASKED
    async with opened(roles) as toolbox:
        assert len((await ask(toolbox, "execute_query", sql="SELECT tenant FROM orders"))["rows"]) == (2 if own else 3)
        with closing(sqlite3.connect(shop / "shop.db")) as writer:
            writer.executescript("ALTER TABLE orders RENAME tenant TO owner; ALTER TABLE orders RENAME note TO remark;")
        for sql in ("SELECT * FROM orders", "SELECT count(*) FROM orders", "SELECT o.tenant FROM orders o JOIN paid"):
            answer = await ask(toolbox, "execute_query", sql=sql)
            # A mask goes with its column, once it is known that this is gone.
            assert answer.get("rows") == ([[3]] if not own and "count" in sql else None), answer


async def test_a_file_whose_view_writes_the_schema_is_closed_and_not_called_damaged(opened, shop):
    with closing(sqlite3.connect(shop / "shop.db")) as writer:
        writer.execute("CREATE VIEW written AS SELECT id FROM main.orders")
    async with opened(ROLES) as toolbox:
        answer = await ask(toolbox, "execute_query", sql="SELECT * FROM orders")
        assert "a view or trigger of it writes the schema main" in answer["error"]["message"]


async def test_a_filtered_table_that_was_replaced_is_read_at_the_second_call(opened, shop):
    async with opened(ROLES) as toolbox:
        sql = "SELECT * FROM orders"
        await ask(toolbox, "execute_query", sql=sql)
        for column in ("fresh", "other"):
            with closing(sqlite3.connect(shop / "shop.db")) as writer:
                writer.executescript(f"DROP TABLE orders; CREATE TABLE orders (tenant TEXT, {column} INTEGER);")
            first = await ask(toolbox, "execute_query", sql=sql)
            if "error" in first:  # else it took so long that the file was looked at again
                assert first["error"]["code"] == "COLUMN_NOT_FOUND"
                assert "Send the query again" in first["error"]["suggestion"]
                first = await ask(toolbox, "execute_query", sql=sql)
            assert first["columns"] == ["tenant", column]
        error = (await ask(toolbox, "execute_query", sql="SELECT q.other FROM orders, (SELECT 1 AS a) q"))["error"]
        assert (error["code"], "Send the query again" in error["suggestion"]) == ("COLUMN_NOT_FOUND", False)


async def test_a_filtered_table_that_is_away_while_a_statement_is_confined_is_not_read(opened, shop):
    """Its owner replaces it: the table is gone for a moment, and is back when the statement would run."""
    async with opened(ROLES) as toolbox:
        seen = toolbox.gateway.for_principal(ANALYST).database("shop")
        statement = await seen.judge.judge("SELECT * FROM orders", "execute_query", ANALYST)
        with closing(sqlite3.connect(shop / "shop.db")) as writer:
            writer.executescript("PRAGMA legacy_alter_table = on; ALTER TABLE orders RENAME TO away")
        await seen.whole.catalog.refresh()
        with pytest.raises(TableNotFound):
            await seen.confiner.confine(statement)


LEDGER = """
CREATE TABLE ledger (id INTEGER PRIMARY KEY, note TEXT, owner_zyx TEXT, zone_zyx TEXT);
CREATE TABLE members_zyx (id_zyx INTEGER, name_zyx TEXT);
INSERT INTO ledger VALUES (1, 'n', 'ann', 'z');
INSERT INTO members_zyx VALUES (1, 'ann');
"""
OF_LEDGER = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.ledger"]
columns = ["id", "note"]
filter = "owner_zyx = $user AND id IN (SELECT id_zyx FROM main.members_zyx WHERE name_zyx = 'ann')"
masks = { note = "note || zone_zyx" }
"""
CHANGES = [
    *(f"ALTER TABLE ledger RENAME {column}_zyx TO other_{column}" for column in ("owner", "zone")),
    *(f"ALTER TABLE ledger DROP {column}_zyx" for column in ("owner", "zone")),
    *(f"ALTER TABLE members_zyx RENAME {column}_zyx TO other_{column}" for column in ("id", "name")),
    "ALTER TABLE members_zyx RENAME TO others",
    "DROP TABLE members_zyx",
]


@pytest.mark.parametrize("change", CHANGES)
async def test_no_error_names_what_a_filter_or_mask_misses(opened, shop, change):
    with closing(sqlite3.connect(shop / "shop.db")) as writer:
        writer.executescript(LEDGER)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("execute_query", {"sql": "SELECT * FROM ledger"}),
        ("execute_query", {"sql": "SELECT note FROM ledger WHERE id = 1"}),
        ("execute_query", {"sql": "SELECT missing FROM ledger"}),
        ("get_sample_rows", {"table_name": "ledger"}),
        ("explain_query", {"sql": "SELECT id FROM ledger"}),
    ]
    async with opened(OF_LEDGER) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT * FROM ledger"))["rows"] == [[1, "nz"]]
        with closing(sqlite3.connect(shop / "shop.db")) as writer:
            writer.executescript(f"PRAGMA legacy_alter_table = on; {change}")
        for tool, arguments in calls:
            answer = await ask(toolbox, tool, **arguments)
            assert "zyx" not in str(answer), answer
            assert answer.get("error", answer).get("code") in ("PERMISSION_DENIED", None), answer


@pytest.mark.parametrize("names", ['x`a"b,am`o"unt', "x y,my amount", "x[odd],select"])
async def test_filters_name_tables_and_columns_whatever_they_are_called(opened, shop, names):
    table, column = (f'"{name.replace(chr(34), chr(34) * 2)}"' for name in names.split(","))
    with closing(sqlite3.connect(shop / "shop.db")) as writer:
        writer.execute(f"CREATE TABLE {table} AS SELECT customer_id, amount AS {column} FROM salaries")
    where = f'"orders"."customer_id" IN (SELECT s.customer_id FROM "main".{table} AS "s" WHERE "s".{column} > 100)'
    grant = f"[[roles.analyst.grants]]\ndatabase = 'shop'\ntables = ['main.x*']\nfilter = '{column} < 1000'\n"
    roles = ROLES.replace('"tenant = $claim.tenant"', f"'''{where}'''") + grant
    async with opened(roles) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM orders"))["rows"] == [[1], [3]]
        answer = await ask(toolbox, "execute_query", sql=f"SELECT {column} FROM {table}")
        assert (answer["columns"], answer["rows"]) == ([names.split(",")[1]], [[50]])


async def test_groups_stand_where_a_list_does(opened):
    roles = ROLES.replace("tenant = $claim.tenant", "tenant IN $groups OR note = '$user' OR tenant = $user")
    async with opened(roles) as toolbox:
        who = Principal("a", groups=frozenset({"analysts", "b"}))
        assert (await ask(toolbox, "execute_query", who, sql="SELECT id FROM orders"))["row_count"] == 3
        who = Principal("x", groups=frozenset({"analysts", "b"}))
        assert (await ask(toolbox, "execute_query", who, sql="SELECT id FROM orders"))["rows"] == [[2]]


async def test_plans_values_and_counts_of_hidden_rows_are_not_told(opened):
    async with opened(ROLES) as toolbox:
        plan = await ask(toolbox, "explain_query", sql="SELECT * FROM orders WHERE total > 5", verbose=True)
        assert plan["plan"] is None
        told = await ask(toolbox, "describe_table", table_name="orders", detail="full")
        assert not {"row_estimate", "size_bytes"} & told["tables"][0].keys()
        assert "second" not in str(told)
        empty = await ask(toolbox, "execute_query", sql="SELECT * FROM orders WHERE note = 'secnd'")
        assert empty["rows"] == []
        assert "second" not in str(empty)
        sample = await ask(toolbox, "get_sample_rows", table_name="orders", where_clause="total > 0")
        assert [row[0] for row in sample["rows"]] == [1, 3]


async def test_roles_unite_row_by_row(opened):
    roles = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
filter = "tenant = $claim.tenant"
masks = { note = "null" }
[roles.clerk]
groups = ["clerks"]
[[roles.clerk.grants]]
database = "shop"
tables = ["main.orders"]
columns = ["id", "note"]
filter = "id >= 2"
"""
    async with opened(roles) as toolbox:
        both = Principal("ann", groups=frozenset({"analysts", "clerks"}), claims=Claims({"tenant": "a"}))
        rows = (await ask(toolbox, "execute_query", both, sql="SELECT id, tenant, note FROM orders"))["rows"]
        assert rows == [[1, "a", None], [2, None, "second"], [3, "a", "third"]]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        ("tenant = $claim.tenant", "tenant = $tenant", "filter: a $ stands for no value"),
        ("tenant = $claim.tenant", "tenat = $claim.tenant", "no such column: tenat"),
        ("tenant = $claim.tenant", r"\"tenat\" = $claim.tenant", "no such column: tenat"),
        ("tenant = $claim.tenant", "tenant = 'a') OR (1 = 1", "closes a parenthesis"),
        ("tenant = $claim.tenant", "tenant = 'a'; DROP TABLE orders", "one statement"),
        ("tenant = $claim.tenant", "load_extension(tenant)", "load_extension"),
        ('"partial"', '"parital"', "no such column: parital"),
        ("main.customers.email", "main.customers.emial", "masks: main.customers.emial names no column"),
    ],
)
async def test_what_the_database_cannot_compile_stops_the_start(shop, before, after, told):
    (shop / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{ROLES.replace(before, after)}')
    with pytest.raises(ConfigurationError) as error:
        async with Gateway.open(load(shop / "dragoman.toml", environ={}, folder=shop)):
            pass
    assert told in str(error.value)
    assert "describe_table" not in str(error.value), "a tool of agents, told to an administrator"


async def test_a_view_shows_what_it_shows_only_when_it_is_named(opened):
    async with opened(ROLES) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM paid"))["rows"] == [[1], [2], [3]]
    async with opened(ROLES.replace('"main.paid"', '"main.pai*"')) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM paid"))["error"]["code"] == "TABLE_NOT_FOUND"


async def test_who_reads_everything_is_not_confined(opened):
    roles = ROLES + '[roles.admin]\nprincipals = ["olga"]\n[[roles.admin.grants]]\ndatabase = "shop"\ntables = ["*"]\n'
    async with opened(roles) as toolbox:
        olga = Principal("olga", groups=frozenset({"analysts"}), claims=ANALYST.claims)
        assert (await ask(toolbox, "execute_query", olga, sql="SELECT count(*) FROM orders"))["rows"] == [[3]]
        assert (await ask(toolbox, "explain_query", olga, sql="SELECT * FROM orders"))["plan"]


PART = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.orders"]
{part}
"""
OF_ROWS = (
    "count(*)",
    "count(*) FILTER (WHERE id > 1)",
    "sum(total)",
    "total(total)",
    "avg(id)",
    "min(note)",
    "max(note)",
    "group_concat(note)",
    "json_group_array(note)",
    "json_group_object(id, note)",
    "upper(max(note))",
    "CASE WHEN id > 1 THEN count(*) ELSE id END",
    "$claim.tenant || max(note)",
    "row_number() OVER (ORDER BY id)",
    "lag(note) OVER (ORDER BY id)",
    "sum(total) OVER ()",
)
OF_ONE_ROW = (
    "max(note, 'g')",
    "min(id, 2)",
    "$user",
    "NULL",
    "abs(random()) % 5 < 5",
    "CASE WHEN total > 10 THEN substr(note, 1, 1) END",
    "(SELECT group_concat(value) FROM json_each('[1, 2]') WHERE value = id)",
)
OF_OTHERS = (
    "(SELECT ssn FROM customers LIMIT 1)",
    "(SELECT max(note) FROM orders)",
    "upper((SELECT c.name FROM main.customers c WHERE c.id = customer_id))",
    "id IN (SELECT id FROM customers)",
    "id IN paid_ids",
    "EXISTS (SELECT 1 FROM paid)",
    "CASE WHEN id IN (SELECT id FROM salaries) THEN note END",
)


@pytest.mark.parametrize("expression", OF_ROWS)
async def test_a_filter_or_mask_that_is_no_expression_of_one_row_stops_the_start(opened, expression):
    for part, key in {f'filter = "{expression} > 0"': "filter", f'masks = {{ note = "{expression}" }}': "mask"}.items():
        with pytest.raises(ConfigurationError) as error:
            async with opened(PART.format(part=part)):
                pass
        for told in ("dragoman.toml: roles.analyst.grants.0", f"the {key}", "must be an expression of one row"):
            assert told in error.value.message


async def test_several_masks_that_show_one_row_of_many_stop_the_start(opened):
    masks = ", ".join(f'{name} = "max({name})"' for name in ("id", "tenant", "customer_id", "total", "note"))
    with pytest.raises(ConfigurationError, match="the mask of id must be an expression of one row of main"):
        async with opened(PART.format(part=f"masks = {{ {masks} }}")):
            pass


@pytest.mark.parametrize("name", ["rowid", "_rowid_", "oid"])
async def test_what_sqlite_adds_to_a_row_is_for_filters_alone(opened, name):
    async with opened(PART.format(part=f'filter = "{name} = 2"')) as toolbox:
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM orders"))["rows"] == [[2]]
    with pytest.raises(ConfigurationError, match=name):
        async with opened(PART.format(part=f'masks = {{ note = "{name}" }}')):
            pass


@pytest.mark.parametrize("expression", OF_ONE_ROW)
async def test_a_mask_of_one_row_shows_each_of_them(opened, expression):
    async with opened(PART.format(part=f'masks = {{ note = "{expression}" }}')) as toolbox:
        assert len((await ask(toolbox, "execute_query", sql="SELECT id, note FROM orders"))["rows"]) == 3


@pytest.mark.parametrize("expression", OF_OTHERS)
async def test_a_mask_reads_no_relation_and_a_filter_may(opened, shop, expression):
    with pytest.raises(ConfigurationError) as error:
        async with opened(PART.format(part=f'masks = {{ note = "{expression}" }}')):
            pass
    told = error.value.message
    assert 'dragoman.toml: roles.analyst.grants.0.masks."note"' in told
    assert "may read only the table's own columns" in told
    with closing(sqlite3.connect(shop / "shop.db")) as writer:
        writer.execute("CREATE TABLE paid_ids (id INTEGER)")
    async with opened(PART.format(part=f'filter = "({expression}) IS NOT NULL"')) as toolbox:
        assert "rows" in await ask(toolbox, "execute_query", sql="SELECT id, note FROM orders")


MANY = """
[roles.analyst]
groups = ["analysts"]
[[roles.analyst.grants]]
database = "shop"
tables = ["main.t*"]
filter = "tenant = $claim.tenant"
masks = { "main.t213.note" = "@MASK@", "main.t*.note" = "partial" }
"""


@pytest.fixture
def many(tmp_path):
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        for number in range(300):
            connection.execute(f"CREATE TABLE t{number} (id INTEGER PRIMARY KEY, tenant TEXT, note TEXT)")
            connection.execute(f"INSERT INTO t{number} VALUES (1, 'a', 'first'), (2, 'b', 'second')")
        connection.execute("CREATE TABLE others (id INTEGER, secret TEXT)")
        connection.commit()

    def configure(mask):
        text = f'[databases.shop]\nurl = "sqlite:///shop.db"\n{MANY.replace("@MASK@", mask)}'
        (tmp_path / "dragoman.toml").write_text(text)
        return load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)

    return configure


@pytest.mark.parametrize("mask", ["upper(nota)", "upper(id, note)", "(id, note)", "(SELECT secret FROM others)"])
async def test_one_mask_of_hundreds_that_does_not_compile_stops_the_start_and_is_named_alone(many, mask):
    with pytest.raises(ConfigurationError) as error:
        async with Gateway.open(many(mask)):
            pass
    assert "t213" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.fixture
def compiled(monkeypatch):
    """The relations whose parts a database was asked to compile, by statement."""
    relations, own = [], OpenDatabase._compile

    async def compile(self, request):
        relations.append([part.relation for part in request.confinement.relations])
        await own(self, request)

    monkeypatch.setattr(OpenDatabase, "_compile", compile)
    return relations


async def test_hundreds_of_parts_are_compiled_together_and_once(many, compiled):
    async with Gateway.open(many("upper(note)")) as gateway:
        toolbox = Toolbox(gateway)
        for number in (0, 213):
            answer = await ask(toolbox, "execute_query", sql=f"SELECT id, note FROM t{number}")
            assert len(answer["rows"]) == 1
    assert len(compiled) < 20
    asked = [*chain.from_iterable(compiled)]
    assert len(asked) == len({*asked}) == 300


GRANT = """
[[roles.analyst.grants]]
database = "shop"
tables = ["main.T{0}"]
filter = "tenant = $claim.tenant"
deny_columns = ["main.t{0}.note"]
"""
WAYS_TO_HUNDREDS = {
    "a grant each": "".join(map(GRANT.format, range(300))),
    "a mask each": f"""
[[roles.analyst.grants]]
database = "shop"
tables = ["main.t*"]
filter = "tenant = $claim.tenant"
masks = {{ {", ".join(f'"main.t{number}.note" = "partial"' for number in range(300))} }}
""",
    "denied each": f"""
[[roles.analyst.grants]]
database = "shop"
tables = ["main.*"]
deny = [{", ".join(f'"main.t{number}"' for number in range(1, 300))}]
deny_columns = [{", ".join(f'"main.t{number}.note"' for number in range(1))}]
filter = "id = 1"
""",
}


@pytest.mark.parametrize("grants", WAYS_TO_HUNDREDS.values(), ids=WAYS_TO_HUNDREDS)
async def test_a_table_s_name_is_compared_with_few_of_many_patterns(many, monkeypatch, tmp_path, grants):
    compared, own = 0, NamePattern.fits

    def fits(self, *arguments):
        nonlocal compared
        compared += 1
        return own(self, *arguments)

    many("null")
    monkeypatch.setattr(NamePattern, "fits", fits)
    roles = '[roles.analyst]\ngroups = ["analysts"]\n'
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{roles}{grants}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        answer = await ask(Toolbox(gateway), "execute_query", sql="SELECT * FROM t0")
        assert len(answer["rows"]) == 1
        assert answer["columns"] == (["id", "tenant", "note"] if "masks" in grants else ["id", "tenant"])
        assert answer["rows"][0][2:] == (["f***"] if "masks" in grants else [])
    assert compared < 100 * 300


async def test_a_filter_need_not_fit_a_view_that_its_pattern_names_and_that_is_not_there(opened):
    roles = PART.format(part='filter = "tenant = $claim.tenant"')
    async with opened(roles.replace('"main.orders"', '"main.orders", "main.pai*"')) as toolbox:  # it has no tenant
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM orders"))["rows"] == [[1], [3]]
    with pytest.raises(ConfigurationError, match="paid"):
        async with opened(roles.replace('"main.orders"', '"main.orders", "main.paid"')):
            pass


ROLE = """
[roles.r{0}]
groups = ["g{0}"]
[[roles.r{0}.grants]]
database = "shop"
{1}
"""
ROLES_OF_ONE_TABLE = {
    "a filter each": 'tables = ["main.T{0}"]\nfilter = "tenant = $claim.tenant"',
    "a mask each": 'tables = ["main.t{0}"]\nmasks = {{ "main.t{0}.note" = "upper(note)" }}',
    "denied each": 'tables = ["main.*"]\ndeny = ["main.t{0}"]\ndeny_columns = ["main.others.secret"]',
    "all beside it": """tables = ["main.T{0}"]
filter = "id = {0}"
[[roles.r{0}.grants]]
database = "shop"
tables = ["*"]
deny_columns = ["main.others.secret"]""",
}


@pytest.mark.parametrize("grant", ROLES_OF_ONE_TABLE.values(), ids=ROLES_OF_ONE_TABLE)
async def test_the_work_of_the_start_grows_with_roles_and_tables_and_not_with_their_product(
    many, compiled, monkeypatch, tmp_path, grant
):
    worked = Counter[str]()

    def count(of, name):
        own = getattr(of, name)

        def counted(*arguments, **named):
            worked[name] += 1
            return own(*arguments, **named)

        monkeypatch.setattr(of, name, counted)

    for of, name in ((NamePattern, "fits"), (Grants, "on"), (OpenDatabase, "restrict")):
        count(of, name)
    many("null")
    roles = "".join(ROLE.format(number, grant.format(number)) for number in range(300))
    (tmp_path / "dragoman.toml").write_text(f'[databases.shop]\nurl = "sqlite:///shop.db"\n{roles}')
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        began = Counter(worked)
        who = Principal("eve", groups=frozenset({"g7"}), claims=Claims({"tenant": "a"}))
        answer = await ask(Toolbox(gateway), "execute_query", who, sql="SELECT note FROM t7")
        assert ("rows" in answer) == ("deny = " not in grant)
    assert began["fits"] < 20 * 600
    assert began["on"] < 2 * 600
    assert began["restrict"] < 10
    assert len(compiled) < 30


async def test_parts_are_compiled_once_for_all_who_come_first_at_once(many, compiled, tmp_path):
    configuration = many("upper(note)")
    (tmp_path / "shop.db").rename(tmp_path / "away.db")  # so that the start cannot ask
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        (tmp_path / "away.db").rename(tmp_path / "shop.db")
        asking = (ask(toolbox, "execute_query", sql=f"SELECT id, note FROM t{number}") for number in range(12))
        assert [len(answer["rows"]) for answer in await asyncio.gather(*asking)] == [1] * 12
    assert len([*chain.from_iterable(compiled)]) == 300


async def test_what_was_compiled_when_the_start_s_patience_ended_is_not_compiled_again(many, compiled, monkeypatch):
    counted, waited = OpenDatabase._compile, asyncio.Event()

    async def compile(self, request):
        await counted(self, request)
        if len(compiled) == 10 and not waited.is_set():
            waited.set()
            raise TimeoutError

    monkeypatch.setattr(OpenDatabase, "_compile", compile)
    async with Gateway.open(many("upper(note)")) as gateway:
        assert waited.is_set()
        assert len((await ask(Toolbox(gateway), "execute_query", sql="SELECT id, note FROM t0"))["rows"]) == 1
    asked = [*chain.from_iterable(compiled)]
    assert len({*asked}) == 300
    assert len(asked) == 300 + 16  # those of the statement that was interrupted
