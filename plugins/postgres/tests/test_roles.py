"""Roles on Postgres: names mean what the server finds under them, also where that is not granted."""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from unittest.mock import ANY

import anyio
import asyncpg
import pytest
from dragoman import ConfigurationError, Gateway, Principal
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.tools import Toolbox

SCHEMA = """
CREATE SCHEMA sales;
CREATE SCHEMA hr;
CREATE SCHEMA staff;
CREATE TABLE public.orders (id int PRIMARY KEY, secret text);
CREATE TYPE sales.mood AS ENUM ('ok');
CREATE TABLE sales.orders (id int PRIMARY KEY, total numeric, note text);
CREATE TABLE sales.felt (mood sales.mood);
CREATE TABLE sales.people (id int PRIMARY KEY, name text, ssn text CHECK (ssn > '0'));
CREATE INDEX ON sales.people (name);
CREATE INDEX ON sales.people (name) INCLUDE (ssn);
CREATE TABLE hr.salaries (id int PRIMARY KEY, person int REFERENCES sales.people, amount int);
CREATE TABLE hr.mood (id int);
CREATE TABLE staff.salaries (id int);
CREATE TABLE staff.bonus (id int);
CREATE VIEW sales.paid AS SELECT id, total FROM sales.orders WHERE total > 0;
CREATE VIEW sales.rich AS SELECT person FROM hr.salaries WHERE amount > 100;
CREATE VIEW sales.numbers AS SELECT ssn FROM sales.people;
INSERT INTO public.orders VALUES (1, 'zyxmark');
INSERT INTO sales.orders VALUES (1, 10, 'first'), (2, 20, 'second');
INSERT INTO sales.people VALUES (1, 'Ada', 'zyxmark');
INSERT INTO hr.salaries VALUES (1, 1, 1000);
"""
WITHOUT_SSN = (
    "SELECT * FROM sales.people",
    "TABLE sales.people",
    "SELECT p FROM sales.people p",
    "SELECT p.*::text FROM sales.people p",
    "SELECT to_jsonb(p) FROM sales.people p",
    "SELECT id FROM sales.people NATURAL JOIN (VALUES ('zyxmark')) AS v(ssn)",
)
"""Answered as if the column were not there."""
SELLER = Principal("sam", subject="sam", groups=frozenset({"sellers"}))


async def build(server, name, more="SELECT"):
    """Make what the tests read anew, and then what one of them needs beside it."""
    await server.run(
        "DROP SCHEMA IF EXISTS sales, hr, staff CASCADE; DROP TABLE IF EXISTS public.orders;" + SCHEMA, name
    )
    await server.run(more, name)


@pytest.fixture
async def toolbox(server, database_name):
    """The tools as a seller has them."""
    await build(server, database_name)
    database = server.configure(database_name)
    grants = (Grant(database=database.name, tables=("sales.*",), deny_columns=("ssn",), key="roles.seller.grants.0"),)
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=grants)
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        yield Toolbox(gateway)


async def ask(toolbox, tool, **arguments):
    answer = await toolbox.call(tool, arguments, principal=SELLER)
    return json.loads(answer.text)


async def test_lists_show_the_granted_schema_alone(toolbox):
    assert await ask(toolbox, "list_tables") == {
        "tables": {"sales": ["felt", "orders", "people"]},
        "views": {"sales": ["paid"]},
    }
    told = str(await ask(toolbox, "describe_table", table_name="sales.people", detail="full"))
    assert "ssn" not in told
    assert "salaries" not in told
    assert (await ask(toolbox, "list_schemas", include_system=True))["schemas"] == [
        each for each in (await ask(toolbox, "list_schemas"))["schemas"] if each["name"] == "sales"
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM orders",
        "SELECT secret FROM orders",
        "SELECT * FROM public.orders",
        "TABLE orders",
        "SELECT amount FROM hr.salaries",
        "SELECT * FROM sales.rich",
        "SELECT * FROM sales.numbers",
        "SELECT * FROM sales.people",
        "TABLE sales.people",
        "SELECT ssn FROM sales.people",
        "SELECT p FROM sales.people p",
        "SELECT p.*::text FROM sales.people p",
        "SELECT to_jsonb(p) FROM sales.people p",
        "SELECT (p).ssn FROM sales.people p",
        "SELECT id FROM sales.people ORDER BY ssn",
        "SELECT x FROM sales.people AS p(a, b, x)",
        "SELECT id FROM sales.people NATURAL JOIN (VALUES ('zyxmark')) AS v(ssn)",
        "WITH people AS (SELECT * FROM sales.people) SELECT ssn FROM people",
        "SELECT (SELECT ssn FROM sales.people LIMIT 1)",
        "SELECT id FROM sales.orders o, LATERAL (SELECT ssn FROM sales.people WHERE id = o.id) x",
        "SELECT most_common_vals FROM pg_stats",
        "SELECT count(*) FROM pg_class",
        "SELECT table_name FROM information_schema.tables",
        "SELECT 'hr.salaries'::regclass",
        "SELECT 'orders'::regclass",
        "SELECT 'orders'::regtype",
        "SELECT NULL::orders",
        "SELECT NULL::_orders",
        "SELECT NULL::hr.salaries",
        "SELECT (NULL::orders).secret",
        "SELECT * FROM json_populate_record(NULL::orders, '{}')",
        "SELECT * FROM json_populate_record(NULL::sales.people, '{}')",
        "SELECT (NULL::sales.people).ssn",
        "SELECT * FROM jsonb_to_record('{}') AS x(a orders)",
        "SELECT pg_input_is_valid('', 'orders')",
        "SELECT pg_relation_size('hr.salaries')",
    ],
)
async def test_what_is_not_granted_is_read_by_no_statement(toolbox, sql):
    for tool in ("execute_query", "explain_query"):
        answer = await ask(toolbox, tool, sql=sql)
        assert "zyxmark" not in str(answer).replace(sql, "").replace("'zyxmark'", "")
        assert "error" in answer or sql in WITHOUT_SSN, answer
        assert "ssn" not in str(answer.get("columns"))


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT id, total FROM sales.orders ORDER BY id", [[1, "10"], [2, "20"]]),
        ("SELECT name FROM sales.people", [["Ada"]]),
        ("SELECT count(*) FROM sales.paid", [[2]]),
        ("WITH orders AS (SELECT 1 AS a) SELECT a FROM orders", [[1]]),
        ("SELECT 'ok'::sales.mood, NULL::sales.orders, '{ok}'::sales.mood[]", [["ok", None, ["ok"]]]),
        ("SELECT '1'::int, '{1}'::_int4, '(1,2)'::point, 'a'::name, to_tsvector('english'::regconfig, 'a')", ANY),
        ("SELECT p.name FROM sales.people p JOIN sales.orders o ON o.id = p.id", [["Ada"]]),
    ],
)
async def test_what_is_granted_is_read(toolbox, sql, rows):
    assert (await ask(toolbox, "execute_query", sql=sql))["rows"] == rows


async def test_a_schema_of_which_nothing_is_granted_is_told_as_one_that_is_not_there(toolbox):
    for table in ("salaries", "nothing"):
        told = [await ask(toolbox, "execute_query", sql=f"SELECT * FROM {name}.{table}") for name in ("hr", "xx")]
        assert told[0]["error"]["code"] == "SCHEMA_NOT_FOUND"
        assert str(told[0]).replace("hr", "xx") == str(told[1])


HIDDEN = (
    ("salaries", "salariex"),  # in two schemas
    ("bonus", "bonux"),  # in one
    ("hr.salaries", "hr.salariex"),
    ("xx.salaries", "xx.salariex"),
    ("public.orders", "nobody.orders"),
    ("sales.rich", "sales.ricx"),
    ("rich", "ricx"),
)
"""What is hidden beside what is not there, also with the name of a hidden relation in a schema that has none."""
PLACES = ("SELECT NULL::{}", "SELECT NULL::{}[]", "SELECT 1 FROM {}", "SELECT x FROM {} AS x", "SELECT {}(1)")
FAULTS = (
    "",
    " UNION SELECT 1 FROM nowhere",
    " UNION SELECT nothing FROM sales.orders",
    " UNION SELECT ssn FROM sales.people",
    " UNION SELECT no_function(1)",
    " UNION SELECT pg_get_viewdef(1)",
    " UNION SELECT NULL::nowhere.at_all",
    " UNION SELECT NULL::no_type",
    " UNION SELECT 1 / 0",
    " UNION SELECT",
)
"""Something else that is wrong with a statement: which of two errors comes first must not tell either."""


async def test_what_is_hidden_is_told_as_what_is_not_there_wherever_it_is_named(toolbox):
    for names, place, fault in product(HIDDEN, PLACES, FAULTS):
        told = []
        for name in names:
            error = (await ask(toolbox, "execute_query", sql=place.format(name) + fault))["error"]
            if error["message"].startswith("The function"):
                error.pop("suggestion")  # names functions of the shipped list that are near
            told.append(re.sub("|".join([re.escape(name), *name.split(".")]), "x", str(error)))
        assert told[0] == told[1], (names, place, fault)


async def test_a_visible_type_may_be_named_whatever_hidden_relations_are_called(toolbox):
    answer = await ask(toolbox, "execute_query", sql="SELECT 'ok'::sales.mood")
    assert answer.get("rows") == [["ok"]]


OTHERS = """
CREATE COLLATION hr.zyxorder FROM "C";
CREATE TABLE sales.zyxpay (id int PRIMARY KEY, amount int);
CREATE TABLE sales."Zyx Pay" (id int);
CREATE TYPE sales.pair AS (a int, b int);
CREATE TYPE hr.zyxpay AS ENUM ('a');
CREATE TABLE sales.paying (id int, one sales.zyxpay, many sales.zyxpay[], odd sales."Zyx Pay", mood sales.mood,
  two sales.pair, grade hr.zyxpay, spelt text COLLATE hr.zyxorder, written text COLLATE "POSIX");
INSERT INTO sales.paying (id, one) VALUES (1, ROW(1, 2));
COMMENT ON SCHEMA sales IS 'Zyxpay has the amounts';
"""
TYPED = ("one", "many", "odd", "many[1]")
FAILING = ("{} + 1", "{} = 1", "{}::int", "coalesce({}, two)", "lower({})", "CASE WHEN id > 0 THEN {} ELSE two END")


async def test_no_type_names_a_hidden_relation(server, database_name, subtests):
    """A column may hold the rows of a relation that its reader does not see."""
    await build(server, database_name, OTHERS)
    database = replace(server.configure(database_name), schema="sales")
    grant = Grant(
        database=database.name, tables=("sales.*",), deny=("sales.zyx*", 'sales."Zyx Pay"'), key="roles.seller.grants.0"
    )
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    statements = [form.format(name) for name in TYPED for form in FAILING]
    statements += ["one + many", "(one).none", "(many[1]).none", "spelt < written", "one IN (1)", "greatest(one, two)"]
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        told = str(await ask(toolbox, "list_tables"))
        assert "paying" in told
        assert "zyx" not in told.lower()
        for tool, arguments in (
            ("describe_table", {"table_name": "paying", "detail": "full"}),
            ("describe_table", {"table_name": "paying"}),
            ("get_sample_rows", {"table_name": "paying"}),
            ("read_schema", {}),
            ("list_schemas", {}),
            *(("execute_query", {"sql": f"SELECT {each} FROM paying"}) for each in (*statements, *TYPED, "*")),
            *(("explain_query", {"sql": f"SELECT {each} FROM paying"}) for each in statements),
            *(("explain_query", {"sql": f"SELECT id FROM paying ORDER BY {each}"}) for each in ("spelt", "grade")),
        ):
            with subtests.test(tool=tool, **arguments):
                answer = await toolbox.call(tool, arguments, principal=SELLER)
                assert "zyx" not in answer.text.lower()
        types = json.loads(
            (await toolbox.call("execute_query", {"sql": "SELECT * FROM paying"}, principal=SELLER)).text
        )
        assert types["types"][:6] == ["integer", "unknown", "unknown[]", "unknown", "mood", "pair"]


GUESSES = (
    "SELECT {0}, 'hr {1}', 'hr.{1}' FROM paying",
    'SELECT {0} AS "hr.{1}" FROM paying',
    "SELECT {0}, hr.{1} FROM paying AS hr",
    "SELECT {0} FROM paying AS {1}, paying AS hr",
    "WITH hr AS (SELECT 1), {1}(a) AS (SELECT 1) SELECT {0} FROM paying",
)


@pytest.mark.parametrize("by", ["role", "schemas"])
async def test_no_error_confirms_a_guess_of_a_type_s_name(server, database_name, by, subtests):
    await build(server, database_name, OTHERS)
    database = replace(server.configure(database_name), schema="sales")
    grant = Grant(database=database.name, tables=("sales.*",), deny=("sales.zyx*",), key="roles.seller.grants.0")
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    configuration = (
        Configuration(databases={database.name: database}, roles={"seller": role})
        if by == "role"
        else Configuration(databases={database.name: replace(database, schemas=("sales",))})
    )
    names = ("grade", "one", "many[1]") if by == "role" else ("grade",)
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        for name, failing, guess in product(names, FAILING, GUESSES):
            sql = [guess.format(failing.format(name), guessed) for guessed in ("zyxpay", "abcpay")]
            with subtests.test(sql=sql[0]):
                told = [(await ask(toolbox, "execute_query", sql=each))["error"] for each in sql]
                for error in told:
                    error["context"].pop("position", None)  # a part of the statement, cut anywhere
                assert str(told[0]).replace("zyx", "abc") == str(told[1])


LEAVING_OUT = """
CREATE TABLE hr.notes (id int PRIMARY KEY, tenant text, note text);
INSERT INTO hr.notes SELECT n, 'a', n::text FROM generate_series(1, 200) AS n;
INSERT INTO hr.notes SELECT n, 'b', 'zyxmark' || n FROM generate_series(201, 400) AS n;
CREATE TABLE hr.tenants (tenant text);
INSERT INTO hr.tenants VALUES ('a');
CREATE VIEW sales.cheap AS SELECT id, note FROM hr.notes WHERE tenant = 'a';
CREATE VIEW sales.dear AS SELECT id, note FROM hr.notes WHERE upper(trim(lower(tenant))) = 'A';
CREATE VIEW sales.joined AS SELECT n.id, n.note FROM hr.notes AS n JOIN hr.tenants USING (tenant);
CREATE VIEW sales.above AS SELECT id, note FROM sales.dear;
CREATE VIEW sales.all_orders AS SELECT id, note FROM sales.orders;
"""
VIEWS = ("cheap", "dear", "joined", "above")
COMPUTING = ("note::int > 0", "1 / (id - 300) > -5", "note::date IS NULL", "('x' || note)::int > 0")


@pytest.mark.parametrize("fenced", [False, True])
async def test_no_error_shows_a_value_that_a_view_leaves_out(server, database_name, fenced, subtests):
    """A condition may be evaluated on what a view leaves out, unless the view has a filter."""
    await build(server, database_name, LEAVING_OUT)
    database = server.configure(database_name)
    views = tuple(f"sales.{name}" for name in VIEWS)
    grants = (
        Grant(database=database.name, tables=views, filter="true" if fenced else None, key="roles.seller.grants.0"),
        Grant(database=database.name, tables=("sales.orders", "sales.all_orders"), key="roles.seller.grants.1"),
    )
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=grants)
    failed = 0
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for view, condition in product(VIEWS, COMPUTING):
            sql = f"SELECT count(*) FROM sales.{view} WHERE {condition}"
            for tool, arguments in (("execute_query", {}), ("execute_query", {"keep": "later"}), ("export_result", {})):
                with subtests.test(tool=tool, sql=sql, **arguments):
                    answer = await ask(toolbox, tool, sql=sql, **arguments)
                    assert "zyxmark" not in str(answer)
                    failed += "error" in answer
                    if fenced and condition in COMPUTING[:2]:
                        assert "error" not in answer
        told = await ask(toolbox, "execute_query", sql="SELECT note::int FROM sales.all_orders")
        assert "first" in told["error"]["message"]
    assert failed


MALFORMED = ("('$ ' || note)::jsonpath IS NULL", "left('a ' || note, 99)::tsquery IS NULL")
"""Conditions that fail on texts which are no program: servers call that an error of syntax."""


@pytest.mark.parametrize("condition", MALFORMED)
async def test_no_error_confirms_a_guess_of_a_value_that_a_view_leaves_out(server, database_name, condition):
    await build(server, database_name, LEAVING_OUT)
    await server.run("UPDATE hr.notes SET note = CASE tenant WHEN 'a' THEN '+ 1' ELSE 'zyxmark' END", database_name)
    database = server.configure(database_name)
    grant = Grant(database=database.name, tables=("sales.dear",), key="roles.seller.grants.0")
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        toolbox = Toolbox(gateway)
        for guess in ("zyxmark", "abcmark"):
            told = await ask(toolbox, "execute_query", sql=f"SELECT '{guess}' FROM sales.dear WHERE {condition}")
            assert told["error"]["message"].startswith("The query fails on a value"), told


SAME_NAME = """
CREATE TABLE public.ledger (id int, zyxcol text);
INSERT INTO public.ledger SELECT n, 'zyxmark' || n FROM generate_series(1, 100) AS n;
CREATE TABLE sales.ledger (id int);
CREATE VIEW sales.late AS SELECT id, zyxcol AS note FROM public.ledger WHERE upper(trim(lower(zyxcol))) < 'ZYXLOW';
"""


async def test_a_view_of_a_hidden_table_is_not_taken_for_one_of_a_visible_table_of_that_name(server, database_name):
    await build(server, database_name, "DROP TABLE IF EXISTS public.ledger CASCADE;" + SAME_NAME)
    database = server.configure(database_name)
    grant = Grant(database=database.name, tables=("sales.late", "sales.ledger"), key="roles.seller.grants.0")
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        told = await ask(toolbox, "describe_table", table_name="sales.late", detail="full")
        failed = await ask(toolbox, "execute_query", sql="SELECT count(*) FROM sales.late WHERE note::int > 0")
        planned = await ask(toolbox, "explain_query", sql="SELECT count(*) FROM sales.late")
    assert "note" in str(told)
    assert failed["error"]["code"] == "QUERY_ERROR"
    assert "zyx" not in f"{told} {failed} {planned}"


async def test_a_plan_names_no_column_that_is_not_granted(toolbox):
    arguments = {"sql": "SELECT count(*) FROM sales.people", "verbose": True, "format": "json"}
    told = await ask(toolbox, "explain_query", **arguments)
    assert told["plan"] is None
    assert "ssn" not in str(told)


async def test_every_type_of_the_servers_own_may_be_named(toolbox, server, database_name):
    connection = await asyncpg.connect(server.address(database_name))
    query = """SELECT typname FROM pg_type WHERE typnamespace = 'pg_catalog'::regnamespace AND typrelid = 0
        AND typtype IN ('b', 'r', 'm') AND typelem = 0 AND typname !~ '^(reg|pg_|gtsv)'"""
    names = [row["typname"] for row in await connection.fetch(query)]
    await connection.close()
    answers = [await ask(toolbox, "execute_query", sql=f'SELECT NULL::pg_catalog."{name}"') for name in names]
    assert [answer["error"]["message"] for answer in answers if "error" in answer] == []


async def test_a_row_of_any_type_may_be_named(toolbox):
    sql = "SELECT * FROM json_populate_recordset(NULL::record, '[{\"a\": 1}]') AS rows (a int)"
    assert (await ask(toolbox, "execute_query", sql=sql))["rows"] == [[1]]


TEXTS = """
CREATE SCHEMA zyx_aside; CREATE SEQUENCE zyx_aside.zyx_number; CREATE SEQUENCE zyx_public;
CREATE FUNCTION zyx_aside.zyx_holds(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE FUNCTION zyx_holds_too(int) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE OPERATOR zyx_aside.### (leftarg = int, rightarg = int, function = int4eq);
CREATE TYPE mood AS ENUM ('sad', 'glad'); CREATE TABLE zyx (id int PRIMARY KEY, zyx_secret text);
CREATE FUNCTION zyx_row(zyx) RETURNS boolean LANGUAGE sql IMMUTABLE AS 'SELECT true';
CREATE TABLE shown (
  id serial PRIMARY KEY, name varchar(20) DEFAULT 'none'::text CHECK (length(name) > 1.5 AND name !~ '^zyx'),
  price numeric(10, 2) DEFAULT 0 CHECK (price >= 0), gross numeric GENERATED ALWAYS AS (round(price * 1.19, 2)) STORED,
  mood mood DEFAULT 'sad', at timestamptz DEFAULT now(), "Odd one" int CHECK ("Odd one" BETWEEN 1 AND 5)
);
CREATE INDEX ON shown (lower(name)) WHERE price > 0;
"""
# What each says names something that a role which sees `shown` alone must not hear of.
NAMING = """
ALTER TABLE shown ADD CHECK (zyx_aside.zyx_holds(id))
ALTER TABLE shown ADD CHECK (zyx_holds_too(id))
ALTER TABLE shown ADD CHECK ((ROW(id, 'x')::zyx).zyx_secret <> 'y')
ALTER TABLE shown ADD CHECK (zyx_row(ROW(id, 'x')::zyx))
ALTER TABLE shown ADD CHECK (id OPERATOR(zyx_aside.###) id)
ALTER TABLE shown ADD CHECK (id <> 'zyx'::regclass::oid::int)
ALTER TABLE shown ADD EXCLUDE USING btree (id WITH =) WHERE (zyx_holds_too(id))
ALTER TABLE shown ALTER price SET DEFAULT nextval('zyx_aside.zyx_number')
ALTER TABLE shown ALTER price SET DEFAULT nextval('zyx_public')
ALTER TABLE shown ALTER price SET DEFAULT nextval('zyx_public'::text)
ALTER TABLE shown ADD "it's" int CHECK ("it's" > 0 OR zyx_holds_too(length('x')))
ALTER TABLE shown ALTER name SET DEFAULT (ROW(1, 'x')::zyx).zyx_secret
ALTER TABLE shown ADD g boolean GENERATED ALWAYS AS (zyx_holds_too(id)) STORED
CREATE INDEX shown_i ON shown (zyx_aside.zyx_holds(id))
CREATE INDEX shown_j ON shown (id) WHERE zyx_holds_too(id)
""".strip().splitlines()


async def _told_of_shown(server, script: str) -> str:
    """What every tool that tells of structure says to who sees `shown` alone."""
    name = await server.create()
    await server.run(script, name)
    await server.run(f'ALTER DATABASE "{name}" SET search_path = public, zyx_aside', name)
    database = server.configure(name)
    grants = (Grant(database=name, tables=("public.shown",), key="roles.seller.grants.0"),)
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=grants)
    async with Gateway.open(Configuration(databases={name: database}, roles={"seller": role})) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        calls = [("describe_table", {"table_name": "shown", "detail": detail}) for detail in ("compact", "full")]
        calls += [("read_schema", {"format": form}) for form in ("json", "sql", "mermaid")]
        answers = [(await toolbox.call(tool, arguments, principal=SELLER)).text for tool, arguments in calls]
    await server.drop(name)
    return "\n".join(answers)


async def test_what_names_nothing_hidden_is_told(server):
    told = await _told_of_shown(server, TEXTS)
    for text in ("length(", "price >= ", "round(", "'sad'", "now()", "Odd one", "lower(", "nextval('shown_id_seq'"):
        assert text in told.replace('\\"', '"')


@pytest.mark.parametrize("naming", NAMING)
async def test_no_check_default_or_index_names_what_is_hidden(server, naming: str):
    told = await _told_of_shown(server, f"{TEXTS}; {naming}")
    found = told.replace("'^zyx'", "")
    assert "zyx" not in found.replace("shown_zyx", "")
    assert "###" not in found
    assert "price" in found


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT current_schema",
        "SELECT current_schema()",
        "SELECT pg_catalog.current_schemas(true)",
        "SELECT * FROM current_schemas(false) AS s",
        "SELECT current_setting('search_path')",
        "SELECT current_setting('Search_Path', true)",
        "SELECT id FROM sales.orders WHERE note = current_schema",
        "SHOW search_path",
    ],
)
async def test_no_query_tells_the_search_path(toolbox, sql):
    answer = await ask(toolbox, "execute_query", sql=sql)
    assert answer["error"]["code"] == "UNSAFE_SQL"
    assert "public" not in str(answer)


async def test_other_settings_are_told(toolbox):
    answer = await ask(toolbox, "execute_query", sql="SELECT current_setting('block_size'), current_database()")
    assert answer["row_count"] == 1


INHERITED = {
    "a child": "CREATE TABLE sales.kid (shout text GENERATED ALWAYS AS (upper(ssn)) STORED) INHERITS (sales.whole);",
    "a grandchild": (
        "CREATE TABLE sales.between () INHERITS (sales.whole);"
        "CREATE TABLE sales.kid (shout text GENERATED ALWAYS AS (upper(ssn)) STORED) INHERITS (sales.between);"
    ),
    "a partition": (
        "DROP TABLE sales.whole;"
        "CREATE TABLE sales.whole (LIKE sales.listed INCLUDING GENERATED) PARTITION BY LIST (id);"
        "CREATE TABLE sales.kid (id int, name text, ssn text, shout text GENERATED ALWAYS AS (upper(ssn)) STORED);"
        "ALTER TABLE sales.whole ATTACH PARTITION sales.kid FOR VALUES IN (1);"
    ),
}
"""Tables that compute a column of the whole otherwise than the whole does, since PostgreSQL 16."""
PLAIN = "(id int, name text, ssn text, shout text)"
OF_A_PLAIN_COLUMN = {
    "a child": INHERITED["a child"],
    "a partition": INHERITED["a partition"],
}
"""Tables that compute a column that the whole does not compute, before PostgreSQL 16."""
COMPUTED = "(id int, name text, ssn text, shout text GENERATED ALWAYS AS (upper(name)) STORED)"
OWN = "CREATE TABLE sales.kid (own text, shout text GENERATED ALWAYS AS (upper(own)) STORED) INHERITS (sales.whole)"


async def make_whole(server, columns: str, script: str, ssn: str = "ssn") -> str:
    """Create a database with a table of which another, `kid`, computes a column otherwise."""
    return await server.create(
        f"CREATE SCHEMA sales; CREATE TABLE sales.whole {columns}; CREATE TABLE sales.listed {columns};"
        f"{script}; INSERT INTO sales.kid (id, name, {ssn}) VALUES (1, 'ada', 'zyxmark')"
    )


def hiding(server, name: str, *, masks: Mapping[str, str] | None = None, **fields) -> Configuration:
    denied = () if masks else ("ssn",)
    grant = Grant(
        database=name, tables=("sales.whole",), deny_columns=denied, masks=masks or {}, key="roles.seller.grants.0"
    )
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    return Configuration(databases={name: server.configure(name, **fields)}, roles={"seller": role})


async def check_hidden(toolbox: Toolbox) -> None:
    """Check that no tool shows the column of the whole that another computes of a hidden one."""
    assert "error" not in await ask(toolbox, "execute_query", sql="SELECT id, name FROM sales.whole")
    for sql in ("SELECT * FROM sales.whole", "SELECT shout FROM sales.whole", "SELECT w::text FROM sales.whole w"):
        assert "zyxmark" not in str(await ask(toolbox, "execute_query", sql=sql)).lower()
    assert "shout" not in str(await ask(toolbox, "describe_table", table_name="sales.whole", detail="full"))


@pytest.mark.parametrize("masks", [{}, {"ssn": "null"}], ids=["hidden", "masked"])
@pytest.mark.parametrize("script", INHERITED.values(), ids=INHERITED)
async def test_no_part_of_a_table_computes_a_visible_column_of_a_hidden_one(server, script: str, masks):
    if await version_of(server) < 160000:
        pytest.skip("before PostgreSQL 16 a part computes a computed column as the whole does")
    name = await make_whole(server, COMPUTED, script)
    async with Gateway.open(hiding(server, name, masks=masks)) as gateway:
        await check_hidden(Toolbox(gateway))
    await server.drop(name)


@pytest.mark.parametrize("script", OF_A_PLAIN_COLUMN.values(), ids=OF_A_PLAIN_COLUMN)
async def test_no_part_of_a_table_computes_a_plain_column_of_a_hidden_one(server, script: str):
    if await version_of(server) >= 160000:
        pytest.skip("since PostgreSQL 16 a part computes no column that the whole does not compute")
    name = await make_whole(server, PLAIN, script)
    async with Gateway.open(hiding(server, name)) as gateway:
        await check_hidden(Toolbox(gateway))
    await server.drop(name)


async def test_no_part_of_a_table_computes_a_visible_column_of_one_that_only_it_has(server):
    new = await version_of(server) >= 160000
    name = await make_whole(server, COMPUTED if new else PLAIN, OWN, "own")
    async with Gateway.open(hiding(server, name)) as gateway:
        await check_hidden(Toolbox(gateway))
    await server.drop(name)


@pytest.mark.parametrize("locked", ["whole", "kid"])
async def test_a_table_that_is_locked_while_its_columns_are_read_shows_no_computed_one(server, locked: str):
    columns = COMPUTED.replace("upper(name)", "upper(ssn)")
    name = await make_whole(server, columns, "CREATE TABLE sales.kid () INHERITS (sales.whole)")
    holder = await asyncpg.connect(server.address(name))
    transaction = holder.transaction()
    await transaction.start()
    await holder.execute(f"LOCK TABLE sales.{locked} IN ACCESS EXCLUSIVE MODE")
    async with Gateway.open(hiding(server, name)) as gateway:
        toolbox = Toolbox(gateway)
        assert "shout" not in str(await ask(toolbox, "describe_table", table_name="sales.whole", detail="full"))
        await transaction.rollback()
        await check_hidden(toolbox)
    await holder.close()
    await server.drop(name)


async def test_a_column_computed_by_a_function_out_of_sight_counts_as_made_of_hidden_ones(server):
    function = "CREATE SCHEMA made; CREATE FUNCTION made.loud(text) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1'"
    name = await server.create(
        f"{function}; CREATE SCHEMA sales; CREATE TABLE sales.whole"
        " (id int, name text, ssn text, shout text GENERATED ALWAYS AS (made.loud(ssn)) STORED);"
        " INSERT INTO sales.whole VALUES (1, 'ada', 'zyxmark')"
    )
    async with Gateway.open(hiding(server, name, schemas=("sales",))) as gateway:
        await check_hidden(Toolbox(gateway))
    await server.drop(name)


async def test_no_key_is_told_that_holds_a_hidden_column(server):
    name = await server.create(
        "CREATE SCHEMA sales; CREATE TABLE sales.whole (id int PRIMARY KEY, name text, ssn text);"
        "ALTER TABLE sales.whole ADD UNIQUE (id, name) INCLUDE (ssn)"
    )
    async with Gateway.open(hiding(server, name)) as gateway:
        told = str(await ask(Toolbox(gateway), "describe_table", table_name="sales.whole", detail="full"))
    assert "whole_pkey" in told
    assert "ssn" not in told
    await server.drop(name)


async def version_of(server) -> int:
    connection = await asyncpg.connect(server.address("postgres"))
    version = int(await connection.fetchval("SHOW server_version_num"))
    await connection.close()
    return version


async def test_no_index_that_holds_a_hidden_column_is_told(toolbox):
    told = str(await ask(toolbox, "describe_table", table_name="sales.people", detail="full"))
    assert "people_name_idx" in told
    assert "ssn" not in told


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("SELECT o.totl FROM sales.orders o", "column o.totl does not exist"),
        ("SELECT p.ssn FROM sales.people p", "column p.ssn does not exist"),
        (
            "SELECT o.note, count(*) FROM sales.orders o",
            'column "o.note" must appear in the GROUP BY clause or be used in an aggregate function',
        ),
        (
            "SELECT note, count(*) FROM sales.orders",
            'column "orders.note" must appear in the GROUP BY clause or be used in an aggregate function',
        ),
    ],
)
async def test_a_mistake_is_told_by_the_names_that_the_caller_wrote(toolbox, sql, message):
    error = (await ask(toolbox, "execute_query", sql=sql))["error"]
    assert error["message"] == message
    assert "(hidden)" not in json.dumps(error)


@pytest.mark.parametrize("name", ["pg_class", "pg_catalog.pg_class", "information_schema.columns"])
async def test_who_asks_the_closed_catalog_is_told_where_to_ask(toolbox, name):
    error = (await ask(toolbox, "execute_query", sql=f"SELECT * FROM {name}"))["error"]
    assert (error["code"], "list_tables, describe_table" in error["suggestion"]) == ("TABLE_NOT_FOUND", True)


# What a filter or a mask says of columns that are varchar, and what users make later of a name in it.
FORGED = {
    "the operator of a filter": (
        {"filter": "tenant = 'a'"},
        "made.same(varchar, varchar) RETURNS boolean",
        "true",
        "CREATE OPERATOR made.= (function = made.same, leftarg = varchar, rightarg = varchar)",
    ),
    "the operator that a word of a filter means": (
        {"filter": "tenant IN ('a', 'c')"},
        "made.same(varchar, varchar) RETURNS boolean",
        "true",
        "CREATE OPERATOR made.= (function = made.same, leftarg = varchar, rightarg = varchar)",
    ),
    "the function of a filter": ({"filter": "lower(tenant) = 'a'"}, "made.lower(varchar) RETURNS text", "'a'", ""),
    "the function of a mask": ({"masks": {"*.note": "upper(note)"}}, "made.upper(varchar) RETURNS text", "'zyx'", ""),
    "the function of a filter's subquery": (
        {"filter": "EXISTS (SELECT FROM public.tenancies AS t WHERE lower(t.tenant) = rented.tenant)"},
        "made.lower(varchar) RETURNS text",
        "'b'",
        "",
    ),
}
LANGUAGES = {
    "plpgsql": "LANGUAGE plpgsql IMMUTABLE AS $$ BEGIN RETURN {}; END $$",
    "SQL": "LANGUAGE sql IMMUTABLE AS $$ SELECT {} $$",
    "standard SQL": "LANGUAGE sql IMMUTABLE RETURN {}",
}
RENTED = """
CREATE TABLE public.rented (tenant varchar(9), note varchar(9)); CREATE TABLE public.tenancies (tenant varchar(9));
INSERT INTO public.rented VALUES ('a', 'seen'), ('b', 'zyxmark'); INSERT INTO public.tenancies VALUES ('a');
CREATE SCHEMA made;
"""


@pytest.mark.parametrize("language", ["plpgsql", pytest.param("SQL", marks=pytest.mark.nightly), "standard SQL"])
@pytest.mark.parametrize("place", FORGED)
async def test_no_filter_or_mask_means_what_users_made_of_a_name(server, place: str, language: str):
    if language == "standard SQL" and await version_of(server) < 140000:
        pytest.skip("PostgreSQL 13 has no such bodies")
    limits, head, answer, more = FORGED[place]
    made = f"{head} {LANGUAGES[language].format(answer)}"
    name = await server.create()
    try:
        await server.run(f'{RENTED} ALTER DATABASE "{name}" SET search_path = public, made', name)
        database = replace(server.configure(name), catalog_ttl=0.0)
        grant = Grant(database=database.name, tables=("public.rented",), key="roles.seller.grants.0", **limits)
        role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
        configuration = Configuration(databases={database.name: database}, roles={"seller": role})
        async with Gateway.open(configuration) as gateway:
            toolbox = Toolbox(gateway)
            before = await ask(toolbox, "execute_query", sql="SELECT note FROM rented")
            await server.run(f"CREATE FUNCTION {made}; {more}", name)
            told = await ask(toolbox, "execute_query", sql="SELECT note FROM rented")
            assert told["error"]["code"] == "PERMISSION_DENIED"
            assert "made" not in str(told)
            assert "made" not in str(await ask(toolbox, "get_sample_rows", table_name="rented"))
            await server.run("DROP SCHEMA made CASCADE", name)
            assert await ask(toolbox, "execute_query", sql="SELECT note FROM rented") == before
        await server.run(f"CREATE SCHEMA made; CREATE FUNCTION {made}; {more}", name)
        with pytest.raises(ConfigurationError, match="users of this database made"):
            await Gateway.open(configuration).__aenter__()
    finally:
        await server.drop(name)


async def test_a_filter_may_say_that_it_means_the_systems_own(server):
    name = await server.create(f"""{RENTED} CREATE FUNCTION made.same(varchar, varchar) RETURNS boolean
        LANGUAGE plpgsql AS 'BEGIN RETURN true; END';
        CREATE FUNCTION made.lower(varchar) RETURNS text LANGUAGE plpgsql AS $$ BEGIN RETURN 'a'; END $$;
        CREATE OPERATOR made.= (function = made.same, leftarg = varchar, rightarg = varchar)""")
    await server.run(f'ALTER DATABASE "{name}" SET search_path = public, made', name)
    grant = Grant(
        database=name,
        tables=("public.rented",),
        filter="pg_catalog.lower(tenant) OPERATOR(pg_catalog.=) 'a'",
        masks={"*.note": "partial"},
        key="roles.seller.grants.0",
    )
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    try:
        async with Gateway.open(
            Configuration(databases={name: server.configure(name)}, roles={"seller": role})
        ) as opened:
            told = await ask(Toolbox(opened), "execute_query", sql="SELECT tenant, note FROM rented")
            assert told["rows"] == [["a", "s***"]]
    finally:
        await server.drop(name)


# Functions of standard SQL that read a table which the role does not grant, and where a query meets them.
READING = """
CREATE TABLE public.paid (who text); INSERT INTO public.paid VALUES ('zyxmark');
CREATE TYPE public.mood AS ENUM ('ok'); CREATE TYPE public.pair AS (a int, b text);
CREATE TABLE public.felt (id int, m mood, p pair, name varchar(9)); INSERT INTO felt VALUES (1, 'ok', '(1,x)', 'n');
"""
READERS = {
    "a cast": (
        "read(mood) RETURNS text",
        "CREATE CAST (mood AS text) WITH FUNCTION public.read(mood)",
        ("SELECT m::text FROM felt", "SELECT CAST(m AS text) FROM felt"),
    ),
    "an implicit cast": (
        "read(mood) RETURNS text",
        "CREATE CAST (mood AS text) WITH FUNCTION public.read(mood) AS IMPLICIT",
        ("SELECT initcap(m) FROM felt", "SELECT string_agg(m, ',') FROM felt"),
    ),
    "a cast to JSON": (
        "read(mood) RETURNS json",
        "CREATE CAST (mood AS json) WITH FUNCTION public.read(mood)",
        (
            "SELECT to_json(m) FROM felt",
            "SELECT to_jsonb(felt) FROM felt",
            "SELECT jsonb_build_object('a', m) FROM felt",
        ),
    ),
    "a cast of a row": (
        "read(felt) RETURNS text",
        "CREATE CAST (felt AS text) WITH FUNCTION public.read(felt)",
        ("SELECT felt::text FROM felt",),
    ),
    "a function of the system's name": (
        "lower(mood) RETURNS text",
        "",
        ("SELECT lower(m) FROM felt", "SELECT lower(f.m) FROM felt AS f"),
    ),
    "a nearer function of the system's name": (
        "upper(varchar) RETURNS text",
        "",
        ("SELECT upper(name) FROM felt",),
    ),
    "an operator of the system's name": (
        "read(varchar, varchar) RETURNS text",
        "CREATE OPERATOR public.|| (function = read, leftarg = varchar, rightarg = varchar)",
        ("SELECT name || name FROM felt",),
    ),
    "a function like a column": (
        "total(felt) RETURNS text",
        "",
        ("SELECT felt.total FROM felt", "SELECT (f).total FROM felt f"),
    ),
    "an aggregate of the system's name": (
        "read(text, varchar) RETURNS text",
        "CREATE AGGREGATE public.max(varchar) (sfunc = read, stype = text, initcond = '')",
        ("SELECT max(name) FROM felt",),
    ),
}


TELLING = {"SQL": "AS $$ SELECT {} $$", "standard SQL": "RETURN {}"}


@pytest.mark.parametrize("language", TELLING)
async def test_no_function_in_sql_tells_of_a_table_that_is_not_granted(server, language: str):
    if language == "standard SQL" and await version_of(server) < 140000:
        pytest.skip("PostgreSQL 13 has no such functions")
    body = TELLING[language].format("pg_relation_size('public.paid')::text")
    name = await server.create(f"""{READING}
        CREATE FUNCTION public.upper(varchar) RETURNS text LANGUAGE sql STABLE {body};
        CREATE VIEW public.v_size AS SELECT upper(name) AS size FROM felt""")
    grant = Grant(database=name, tables=("public.felt", "public.v_*"), key="roles.seller.grants.0")
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    try:
        async with Gateway.open(
            Configuration(databases={name: server.configure(name)}, roles={"seller": role})
        ) as opened:
            assert "error" in await ask(Toolbox(opened), "execute_query", sql="SELECT * FROM v_size")
    finally:
        await server.drop(name)


@pytest.mark.parametrize("through", READERS)
async def test_no_function_of_standard_sql_shows_a_table_that_is_not_granted(server, through: str):
    if await version_of(server) < 140000:
        pytest.skip("PostgreSQL 13 has no such functions")
    head, more, queries = READERS[through]
    value = "to_json(max(who))" if "json" in head else "max(who)"
    name = await server.create()
    try:
        body = f"CREATE FUNCTION public.{head} LANGUAGE sql STABLE BEGIN ATOMIC SELECT {value} FROM public.paid; END"
        views = [
            f"CREATE VIEW public.v_{number} AS {query.replace(' FROM', ' AS x FROM', 1)}"
            for number, query in enumerate(queries)
        ]
        await server.run(f"{READING} {body}; {more}; {'; '.join(views)}", name)
        database = server.configure(name)
        grant = Grant(database=database.name, tables=("public.felt", "public.v_*"), key="roles.seller.grants.0")
        role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
        async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
            for query in (*queries, *(f"SELECT * FROM v_{number}" for number in range(len(queries)))):
                told = await ask(Toolbox(gateway), "execute_query", sql=query)
                assert "error" in told, query
                assert "zyxmark" not in str(told), query
    finally:
        await server.drop(name)


async def test_a_view_of_many_columns_is_granted_by_a_pattern(server, database_name):
    """Its definition is longer than a statement of a caller may be."""
    names = [f"measurement_of_the_station_number_{number:04}" for number in range(900)]
    table, view = (", ".join(each.format(name) for name in names) for each in ("{} int", "{0} + 0 AS {0}"))
    await build(
        server,
        database_name,
        f"CREATE TABLE sales.wide ({table}); CREATE VIEW sales.sums AS SELECT {view} FROM sales.wide",
    )
    database = server.configure(database_name)
    grant = Grant(database=database.name, tables=("sales.*",), key="roles.seller.grants.0")
    role = Role(name="seller", groups=frozenset({"sellers"}), grants=(grant,))
    async with Gateway.open(Configuration(databases={database.name: database}, roles={"seller": role})) as gateway:
        assert (await ask(Toolbox(gateway), "execute_query", sql="SELECT * FROM sales.sums"))["columns"] == names


@pytest.mark.usefixtures("lasting")
async def test_a_statement_that_another_caller_prepared_reads_what_the_name_means_now(server, database_name):
    """Whoever sees the hidden table keeps it prepared under the name that then means another one."""
    await build(server, database_name, "CREATE TABLE hr.later AS SELECT 'zyxmark' AS x")
    await server.run(f'ALTER DATABASE "{database_name}" SET search_path = sales, hr')
    database = server.configure(database_name, pool_size=1)
    grants = [(Grant(database=database.name, tables=(f"{schema}.*",), key=""),) for schema in ("sales", "hr")]
    roles = {
        "seller": Role(name="seller", groups=frozenset({"sellers"}), grants=grants[0]),
        "boss": Role(name="boss", groups=frozenset({"bosses"}), grants=grants[0] + grants[1]),
    }
    boss = Principal("bea", subject="bea", groups=frozenset({"bosses"}))
    sql = "SELECT x FROM later"
    async with Gateway.open(Configuration(databases={database.name: database}, roles=roles)) as gateway:
        all_of_it, part = gateway.for_principal(boss), gateway.for_principal(SELLER)
        for _ in range(3):
            assert (await all_of_it.query(None, sql)).rows == [["zyxmark"]]
        await server.run("CREATE TABLE sales.later AS SELECT 'seen' AS x", database_name)
        with anyio.fail_after(30):
            while (rows := (await all_of_it.query(None, sql)).rows) != [["seen"]]:
                assert rows == [["zyxmark"]]
        assert (await part.query(None, sql)).rows == [["seen"]]
    await server.run(f'ALTER DATABASE "{database_name}" RESET search_path')
