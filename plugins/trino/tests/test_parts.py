"""Filters and masks on Trino: a subquery stands where a statement names a relation, and nothing passes it."""

import json
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from dragoman import ConfinedRelation, Expression, Gateway, NamedRelation, Principal, Relation, Statement
from dragoman.config import Configuration, load
from dragoman.config.roles import Grant, Role
from dragoman.errors import ConfigurationError
from dragoman.gateway.queries import Query
from dragoman.model import Claims, ConfinedColumn
from dragoman.tools import Toolbox
from dragoman_trino.confining import confine
from dragoman_trino.lexicon import LEXICON

PAGE = Path(__file__).parents[3] / "docs" / "row-filters.md"
SAM = Principal("sam", subject="sam", groups=frozenset({"sellers"}), claims=Claims({"tenant": "a"}))
SCHEMA = """
CREATE TABLE {s}.orders (id bigint, tenant varchar, total bigint, note varchar)
INSERT INTO {s}.orders VALUES (1, 'a', 10, 'first'), (8, 'b', 20, 'zyxmark'), (3, 'a', 30, 'third')
CREATE TABLE {s}.people (id bigint, name varchar, email varchar, ssn varchar, born date)
INSERT INTO {s}.people VALUES (1, 'Ada', 'ada@zyxmark', 'zyxmark', DATE '1815-12-10')
CREATE TABLE {s}.members (tenant varchar, member varchar)
INSERT INTO {s}.members VALUES ('a', 'sam'), ('b', 'eve')
CREATE VIEW {s}.few AS SELECT * FROM {s}.orders ORDER BY id LIMIT 5
CREATE VIEW {s}.listed AS SELECT * FROM (VALUES (1, 'a'), (8, 'b'), (3, 'a')) AS t(id, tenant)
""".strip().splitlines()
FILTERS = {
    "claim": "tenant = $claim.tenant",
    "subquery": "tenant IN (SELECT m.tenant FROM {s}.members m WHERE m.member = $user)",
    "exists": "EXISTS (SELECT 1 FROM {s}.members m WHERE m.tenant = orders.tenant AND m.member = $user)",
}
ATTACKS = [
    "SELECT * FROM orders",
    "SELECT o.* FROM orders o",
    "SELECT x.* FROM orders AS x(a, b, c, d)",
    "SELECT CAST(ROW(o.id, o.note) AS json) FROM orders o",
    'TABLE "ORDERS"',
    "TABLE {s}.orders ORDER BY id",
    "(TABLE orders)",
    "SELECT * FROM (TABLE orders) x(a, b, c, d)",
    "SELECT * FROM ((orders))",
    "SELECT * FROM orders, orders AS again",
    "SELECT * FROM orders TABLESAMPLE BERNOULLI (100)",
    "SELECT * FROM orders AS o TABLESAMPLE SYSTEM (100)",
    "SELECT * FROM orders FOR VERSION AS OF 1",
    "SELECT * FROM orders FOR TIMESTAMP AS OF TIMESTAMP '2020-01-01 00:00:00' o",
    'SELECT "$path" FROM orders',
    'SELECT * FROM "orders$partitions"',
    "WITH orders AS (SELECT * FROM orders) SELECT * FROM orders",
    "WITH members AS (SELECT 'b' AS tenant, 'sam' AS member) SELECT * FROM orders",
    "WITH members(tenant, member) AS (VALUES ('b', 'sam')) SELECT o.* FROM members, orders o",
    "WITH RECURSIVE o(id, note) AS (SELECT id, note FROM orders UNION SELECT id + 1, note FROM o WHERE id < 3)"
    " SELECT * FROM o",
    "WITH RECURSIVE orders(id) AS (SELECT id FROM orders) SELECT * FROM orders",
    "WITH RECURSIVE orders(n) AS (SELECT n FROM (WITH a AS (SELECT note AS n FROM orders), orders AS (SELECT 1 AS x)"
    " SELECT n FROM a)) SELECT * FROM orders",
    "WITH a AS (WITH orders AS (SELECT 1) SELECT * FROM {s}.orders) SELECT * FROM a",
    "SELECT * FROM members m JOIN orders USING (tenant)",
    "SELECT * FROM people p FULL JOIN orders o ON true",
    "SELECT * FROM people p CROSS JOIN LATERAL (SELECT * FROM orders WHERE id > p.id) x",
    "SELECT * FROM orders CROSS JOIN UNNEST(ARRAY[note]) AS u(x)",
    "SELECT (SELECT listagg(note, ',') WITHIN GROUP (ORDER BY id) FROM orders)",
    "SELECT ARRAY[(SELECT max(note) FROM orders)]",
    "SELECT count(*) FROM people p WHERE EXISTS (SELECT 1 FROM orders o WHERE o.note = 'zyxmark')",
    "SELECT note FROM orders UNION ALL SELECT note FROM orders",
    "SELECT note FROM orders WHERE id IN (SELECT id FROM orders)",
    "SELECT count(*) FILTER (WHERE note = 'zyxmark') FROM orders",
    "SELECT last_value(note) OVER (PARTITION BY 1) FROM orders",
    "SELECT * FROM orders MATCH_RECOGNIZE (ORDER BY id MEASURES last(a.note) AS n PATTERN (a+) DEFINE a AS true)",
    "SELECT * FROM TABLE(exclude_columns(input => TABLE(orders), columns => DESCRIPTOR(id)))",
    "SELECT * FROM TABLE(exclude_columns(TABLE({s}.orders) AS o, DESCRIPTOR(id)))",
    "SELECT * FROM TABLE(exclude_columns(TABLE(SELECT * FROM orders), DESCRIPTOR(id)))",
    "SELECT * FROM JSON_TABLE((SELECT max(note) FROM orders), 'lax $' COLUMNS (x varchar PATH 'lax $')) t",
    "SELECT * FROM people",
    "SELECT ssn FROM people",
    "SELECT p.ssn FROM people AS p(a, b, ssn)",
    "SELECT name FROM people ORDER BY email, ssn",
    "SELECT count(*) FROM people WHERE email LIKE '%zyxmark'",
    "SELECT p.* FROM people p NATURAL JOIN (VALUES ('zyxmark')) AS v(email)",
    "SELECT * FROM TABLE(exclude_columns(TABLE(people), DESCRIPTOR(id)))",
    "DESCRIBE people",
    "SHOW COLUMNS FROM people",
    "SHOW CREATE TABLE people",
    "SHOW STATS FOR orders",
    "SHOW STATS FOR (SELECT * FROM people)",
    "EXPLAIN SELECT * FROM orders WHERE id = 1",
    "EXPLAIN (TYPE IO) SELECT * FROM people",
]
# A caller's own words for what is hidden: they are told back.
ASKED = ("'zyxmark'", "'%zyxmark'")


@pytest.fixture(scope="module")
async def schema(trino_server, anyio_backend):
    async with trino_server.schema() as name:
        await trino_server.run(*(line.format(s=name) for line in SCHEMA))
        yield name


def opened(trino_server, schema, rows=None, *, tables=("orders",), **part):
    database = trino_server.configure(*schema.split("."), name="db")
    rows = None if rows is None else rows.format(s=schema)
    grants = (
        Grant(database="db", tables=tuple(f"{schema}.{name}" for name in tables), filter=rows, key="grants.0", **part),
        Grant(
            database="db",
            tables=tuple(f"{schema}.{name}" for name in ("people", "members")),
            deny_columns=("ssn",),
            masks={"email": "partial", f"{schema}.people.born": "year", "name": "hash", "people.id": "null"},
            key="grants.1",
        ),
    )
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=grants)
    return Gateway.open(Configuration(databases={"db": database}, roles={"seller": role}))


async def ask(toolbox, tool, principal=SAM, **arguments):
    return json.loads((await toolbox.call(tool, arguments, principal=principal)).text)


@pytest.mark.full
async def test_the_role_of_the_page_on_row_filters_sees_its_rows_and_masks(trino_server, tmp_path):
    (written,) = re.findall(r"```toml\n(\[roles.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    async with trino_server.schema() as schema:
        await trino_server.run(
            f"CREATE TABLE {schema}.orders (id bigint, tenant varchar)",
            f"INSERT INTO {schema}.orders VALUES (1, 'a'), (2, 'b'), (3, 'a')",
            f"CREATE TABLE {schema}.customers (id bigint, email varchar, birthday date, ssn varchar)",
            f"INSERT INTO {schema}.customers VALUES (1, 'ada@x.example', DATE '1990-05-06', '123')",
        )
        file = tmp_path / "dragoman.toml"
        file.write_text(
            '[databases.shop]\nurl = "trino://x@localhost/memory"\n' + written.replace("main.", f"{schema}.")
        )
        shop = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
        configuration = replace(load(file, environ={}, folder=tmp_path), databases={"shop": shop})
        ann = Principal("ann", subject="ann", groups=frozenset({"support"}), claims=Claims({"tenant": "a"}))
        async with Gateway.open(configuration) as gateway:
            orders = await gateway.query("shop", "SELECT id FROM orders ORDER BY id", principal=ann)
            assert json.loads(orders.rows_json) == [[1], [3]]
            customers = await gateway.query("shop", "SELECT email, birthday, ssn FROM customers", principal=ann)
            assert json.loads(customers.rows_json) == [["a***", "1990-01-01", None]]


async def test_no_query_reaches_what_is_hidden(trino_server, schema):
    async with opened(trino_server, schema, FILTERS["exists"]) as gateway:
        toolbox = Toolbox(gateway)
        assert (await ask(toolbox, "execute_query", sql="SELECT id FROM orders ORDER BY 1"))["rows"] == [[1], [3]]
        for attack in ATTACKS:
            sql = attack.format(s=schema)
            answer = await ask(toolbox, "execute_query", sql=sql)
            told = str(answer).replace(sql, "")
            for asked in ASKED:
                told = told.replace(asked, "")
            assert "zyxmark" not in told, answer
            assert "ssn" not in told or "error" in answer, answer
            assert not sql.startswith(("EXPLAIN", "SHOW", "DESC")) or "error" in answer, answer
            if "rows" in answer and any(asked in sql for asked in ASKED):
                assert all(row == [0] for row in answer["rows"]), answer


@pytest.mark.parametrize("rows", FILTERS.values(), ids=FILTERS)
async def test_no_error_tells_of_a_hidden_row(trino_server, schema, rows):
    sources = ("orders", "(SELECT * FROM orders) o", "people p RIGHT JOIN orders o ON o.id = p.id + 1")
    async with opened(trino_server, schema, rows) as gateway:
        toolbox = Toolbox(gateway)
        for condition in ("1 / (total - 20) > -5", "regexp_like('x', CASE total WHEN 20 THEN '(' ELSE '' END)"):
            for source in sources:
                answer = await ask(toolbox, "execute_query", sql=f"SELECT total FROM {source} WHERE {condition}")
                assert len(answer["rows"]) == 2, answer
        empty = "SELECT * FROM orders WHERE tenant = 'b' AND 1 / 0 = 1"
        assert (await ask(toolbox, "execute_query", sql=empty))["rows"] == []


@pytest.mark.parametrize("name", ["orders", "few", "listed"])
async def test_the_server_evaluates_no_condition_below_the_fence(trino_server, schema, name):
    """Of views with a known number of rows too, of which it drops a LIMIT."""
    sql = f"SELECT id FROM {name} WHERE 1 / (id - 8) > -5 AND 1 / 0 = 1"
    relation = Relation(name, *reversed(schema.split(".")))
    columns = (ConfinedColumn(name="id", type="bigint"), ConfinedColumn(name="tenant", type="varchar"))
    part = ConfinedRelation(relation=relation, columns=columns, filter=Expression(("tenant = 'a'",)))
    statement = Statement.parse(sql, sqlglot="trino", lexicon=LEXICON)
    confined = confine(statement, [(NamedRelation(relation, sql.index(name)), part)])
    ((plan,),) = await trino_server.run(f"EXPLAIN {confined.text}", schema=schema)
    above, below = plan.split("Limit[count = 9223372036854775807]", 1)
    assert "$divide" in above
    assert "$divide" not in below
    assert "varchar 'a'" not in above or name == "listed"


@pytest.mark.full
async def test_no_plan_follows_what_is_hidden(trino_server):
    """A kilobyte stands for the hundred megabytes above which the server copies no side of a join."""
    sql = "SELECT a.id FROM orders a JOIN orders b ON a.id = b.other WHERE 1 / (b.other - 3) > -5"
    seen = "SELECT n AS id, 'a' AS tenant, n AS other FROM UNNEST(sequence(1, 5)) AS t(n)"
    hidden = "SELECT n, 'b', n FROM UNNEST(sequence(9, 999)) AS t(n)"
    blind, counted = set[str](), set[str]()
    for rows in (seen, f"{seen} UNION ALL {hidden}"):
        async with twin(trino_server, rows, {"join_max_broadcast_table_size": "1kB"}) as gateway:
            db: Any = gateway.for_principal(SAM).database("db")
            request = (await Query.prepare(db, sql, principal=SAM)).request
            for each, plans in ((request, blind), (replace(request, confinement=None), counted)):
                ((plan,),) = await db.executor.run(f"EXPLAIN (TYPE LOGICAL)\n{each.statement}", each)
                plans.add(str(re.findall(r"Distribution: \w+", plan)))
    assert len(blind) == 1
    assert len(counted) == 2


@pytest.mark.full
async def test_no_cost_follows_what_is_hidden(trino_server):
    """What is planned without counts has no cost, so that the timeout is its bound."""
    seen = "SELECT n AS id, 'a' AS tenant FROM UNNEST(sequence(1, 5)) AS t(n)"
    hidden = "SELECT n, 'b' FROM UNNEST(sequence(9, 999)) AS t(n)"
    for rows in (seen, f"{seen} UNION ALL {hidden}"):
        async with twin(trino_server, rows, {}, max_cost=1.0) as gateway:
            answer = await ask(Toolbox(gateway), "execute_query", sql="SELECT max(id) FROM orders")
            assert answer["rows"] == [[5]]


@asynccontextmanager
async def twin(trino_server, rows, properties, **limits):
    """A gateway over a table with some rows, of which Sam sees those of his tenant."""
    async with trino_server.schema() as schema:
        await trino_server.run(f"CREATE TABLE {schema}.orders AS {rows}")
        database = trino_server.configure(*schema.split("."), name="db", options={"session_properties": properties})
        grant = Grant(database="db", tables=(f"{schema}.orders",), filter=FILTERS["claim"], key="grants.0")
        role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,), **limits)
        async with Gateway.open(Configuration(databases={"db": database}, roles={"seller": role})) as gateway:
            yield gateway


async def test_masks_show_what_they_show_everywhere(trino_server, schema):
    async with opened(trino_server, schema) as gateway:
        toolbox = Toolbox(gateway)
        answer = await ask(toolbox, "execute_query", sql="SELECT * FROM people WHERE email = 'a***'")
        assert answer["columns"] == ["id", "name", "email", "born"]
        (row,) = answer["rows"]
        assert (row[0], len(row[1]), *row[2:]) == (None, 64, "a***", "1815-01-01")
        hidden = await ask(toolbox, "execute_query", sql="SELECT ssn FROM people")
        assert hidden["error"]["code"] == "COLUMN_NOT_FOUND"


async def test_values_stand_where_the_text_has_them(trino_server, schema):
    async with opened(trino_server, schema, FILTERS["claim"]) as gateway:
        toolbox = Toolbox(gateway)
        sql = "SELECT ? AS x, id FROM orders WHERE total > ? AND id IN (SELECT id FROM orders WHERE note <> ?)"
        answer = await ask(toolbox, "execute_query", sql=sql, params=["p", 5, "third"])
        assert answer["rows"] == [["p", 1]]
        error = (await ask(toolbox, "execute_query", sql=sql, params=["p"]))["error"]
        assert error["message"] == "The statement uses 3 values; 1 came."
        for tenant, rows in {"b": [[8]], "' OR true --": []}.items():
            who = Principal("sam", groups=frozenset({"sellers"}), claims=Claims({"tenant": tenant}))
            assert (await ask(toolbox, "execute_query", who, sql="SELECT id FROM orders"))["rows"] == rows


async def test_a_value_of_a_wrong_type_is_told_as_the_tokens_or_the_callers_own(trino_server, schema):
    sql = "SELECT id FROM orders WHERE note <> ?"
    for rows in ("total = $claim.limit", "CAST(note AS date) = $claim.limit", "contains($claim.limit, id)"):
        async with opened(trino_server, schema, rows) as gateway:
            toolbox = Toolbox(gateway)
            for limit in ({"zyx": "mark"}, "zyxmark"):
                who = Principal("sam", groups=frozenset({"sellers"}), claims=Claims({"limit": limit}))
                error = (await ask(toolbox, "execute_query", who, sql=sql, params=["x"]))["error"]
                assert (error["code"], "claim.limit" in error["message"]) == ("PERMISSION_DENIED", True), error
                assert "a wrong type" in error["message"]
                told = str(error)
                assert not any(word in told for word in ("Parameter", "?", "zyx", "total", "note", "integer", "date"))
            values = {"limit": [1]} if "contains" in rows else {"limit": None}
            who = Principal("sam", groups=frozenset({"sellers"}), claims=Claims(values))
            own = (await ask(toolbox, "execute_query", who, sql=sql, params=[["x"]]))["error"]
            assert (own["code"], own["message"][:12]) == ("PARAMETER_ERROR", "Parameter 1 ")


@pytest.mark.parametrize("rows", FILTERS.values(), ids=FILTERS)
async def test_an_answer_of_a_filtered_table_is_kept(trino_server, schema, rows):
    sql = "SELECT id FROM orders WHERE id > ? ORDER BY id"
    async with opened(trino_server, schema, rows) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        answer = await ask(toolbox, "execute_query", sql=sql, params=[1], keep="later")
        while answer.get("status") == "running":
            answer = await ask(toolbox, "get_result", result="later")
        assert answer.get("rows") == [[3]], answer


@pytest.mark.parametrize("mask", ["CAST(CAST(note AS bigint) % 10 AS varchar)", "CAST(date(note) AS varchar)"])
async def test_no_error_shows_the_value_on_which_a_mask_fails(trino_server, schema, mask):
    async with opened(trino_server, schema, masks={"note": mask}) as gateway:
        error = (await ask(Toolbox(gateway), "execute_query", sql="SELECT note FROM orders WHERE id = 8"))["error"]
        assert (error["code"], "zyxmark" in str(error)) == ("QUERY_ERROR", False), error


CHANGES = [
    "ALTER TABLE {s}.others RENAME COLUMN place TO elsewhere",
    "ALTER TABLE {s}.others RENAME TO gone",
    "DROP TABLE {s}.others",
    "ALTER TABLE {s}.ledger RENAME COLUMN secret TO elsewhere",
    "DROP TABLE {s}.ledger; CREATE TABLE {s}.ledger AS SELECT 1 AS id, ROW(1) AS secret",
]


@pytest.mark.parametrize("change", CHANGES)
async def test_no_error_names_what_a_filter_misses(trino_server, change):
    async with trino_server.schema() as schema:
        for table in ("ledger AS SELECT 1 AS id, 'x' AS secret", "others AS SELECT 'x' AS place", "orders (id int)"):
            await trino_server.run(f"CREATE TABLE {schema}.{table}")
        for table in ("people (id int, name varchar, email varchar, ssn varchar, born date)", "members (id int)"):
            await trino_server.run(f"CREATE TABLE {schema}.{table}")
        rows = "secret IN (SELECT o.place FROM {s}.others o)"
        async with opened(trino_server, schema, rows, tables=("ledger",), deny_columns=("secret",)) as gateway:
            toolbox, sql = Toolbox(gateway), "SELECT count(*) FROM ledger"
            assert (await ask(toolbox, "execute_query", sql=sql))["rows"] == [[1]]
            await trino_server.run(*change.format(s=schema).split("; "))
            for tool in ("execute_query", "explain_query"):
                error = (await ask(toolbox, tool, sql=sql))["error"]
                assert error["code"] == "PERMISSION_DENIED"
                assert not any(word in str(error) for word in ("others", "place", "secret", "row(", "varchar"))


async def test_an_error_is_shown_in_the_callers_own_text(trino_server, schema):
    async with opened(trino_server, schema, FILTERS["claim"]) as gateway:
        sql = "SELECT id\nFROM orders\nWHERE ttotal > 0"
        error = (await ask(Toolbox(gateway), "execute_query", sql=sql))["error"]
        assert error["code"] == "COLUMN_NOT_FOUND"
        assert "rand" not in str(error)
        assert "total" in error["suggestion"]


async def test_groups_are_an_array(trino_server, schema):
    async with opened(trino_server, schema, "contains($groups, tenant)") as gateway:
        who = Principal("x", groups=frozenset({"sellers", "b"}))
        assert (await ask(Toolbox(gateway), "execute_query", who, sql="SELECT id FROM orders"))["rows"] == [[8]]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("tenat = $user", "tenat"),
        ("tenant IN (SELECT tenant FROM members)", "members"),
        ("tenant = (SELECT max(x) FROM TABLE(system.query('SELECT 1')))", "query"),
        ("tenant = $1", "stands for no value"),
    ],
)
async def test_a_filter_that_does_not_hold_stops_the_start(trino_server, schema, rows, told):
    with pytest.raises(ConfigurationError, match=told):
        async with opened(trino_server, schema, rows):
            pass


OF_ROWS = ("count(*)", "max_by(note, id)", "array_agg(note)[1]", "row_number() OVER ()", "lag(note) OVER (ORDER BY id)")
OF_ONE_ROW = ("$user", "NULL", "greatest(note, 'g')", "(SELECT max(x) FROM UNNEST(split(note, 'i')) AS t(x))")


async def test_a_filter_or_mask_is_an_expression_of_one_row_and_a_mask_reads_no_relation(
    trino_server, schema, subtests
):
    def opened_with(**part):
        grant = Grant(database="db", tables=(f"{schema}.orders",), key="grants.0", **part)
        role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
        database = trino_server.configure(*schema.split("."), name="db")
        return Gateway.open(Configuration(databases={"db": database}, roles={"seller": role}))

    wrong = [({"masks": {"note": each}}, "the mask of note must be an expression of one row") for each in OF_ROWS]
    wrong += [({"filter": f"({each}) IS NULL"}, "the filter must be an expression of one row") for each in OF_ROWS]
    other = f"(SELECT max(ssn) FROM {schema}.people)"
    wrong.append(({"masks": {"note": other}}, "may read only the table's own columns"))
    for part, told in wrong:
        with subtests.test(part=part), pytest.raises(ConfigurationError, match=told):
            async with opened_with(**part):
                pass
    for expression in OF_ONE_ROW:
        with subtests.test(expression=expression):
            async with opened_with(masks={"note": expression}) as gateway:
                answer = await ask(Toolbox(gateway), "execute_query", sql="SELECT id, note FROM orders")
                assert len(answer["rows"]) == 3


async def test_a_question_mark_in_a_row_pattern_is_no_parameter(trino_server, schema):
    async with opened(trino_server, schema, "tenant = 'a'") as gateway:
        sql = (
            "SELECT n FROM orders MATCH_RECOGNIZE (ORDER BY id MEASURES count(*) AS n"
            " PATTERN (^ a?? (b{1,2}?)? c+? $) DEFINE c AS id > 0)"
        )
        assert (await ask(Toolbox(gateway), "execute_query", sql=sql))["rows"] == [[2]]
