"""With `schemas`, what lies outside does not exist: a secret schema bears a mark everywhere, which no answer holds."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import asyncpg
import pytest
from dragoman import DragomanError, Gateway, UnsafeSql
from dragoman.tools import Toolbox
from dragoman_postgres.rules import load_allowed
from dragoman_postgres.rules.policy import fits, read_policy

pytestmark = pytest.mark.timeout(600)

MARK, ABSENT = "zyxmark", "zyxmurk"
"""A word that is in every name and text of the secret schema, and one that is nowhere."""
SECRET = f"""
CREATE SCHEMA {MARK}_s;
COMMENT ON SCHEMA {MARK}_s IS '{MARK}';
SET search_path = {MARK}_s;
CREATE TYPE {MARK}_enum AS ENUM ('calm', '{MARK}');
CREATE DOMAIN {MARK}_domain AS int CONSTRAINT {MARK}_check CHECK (VALUE > 0);
CREATE TYPE {MARK}_composite AS (x int, y text);
CREATE TYPE {MARK}_range AS RANGE (subtype = int);
CREATE SEQUENCE {MARK}_sequence;
CREATE COLLATION {MARK}_collation FROM "C";
CREATE TEXT SEARCH CONFIGURATION {MARK}_config (COPY = pg_catalog.english);
CREATE TEXT SEARCH DICTIONARY {MARK}_dictionary (TEMPLATE = pg_catalog.simple);
CREATE FUNCTION {MARK}_f(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT $1 + 1 /* {MARK} */';
COMMENT ON FUNCTION {MARK}_f(int) IS '{MARK}';
CREATE OPERATOR <=> (LEFTARG = int, RIGHTARG = int, FUNCTION = int4eq);
COMMENT ON OPERATOR <=> (int, int) IS '{MARK}';
CREATE TABLE {MARK}_t (id int PRIMARY KEY, {MARK}_c text, kind {MARK}_enum, n int REFERENCES {MARK}_t);
COMMENT ON TABLE {MARK}_t IS '{MARK}';
COMMENT ON COLUMN {MARK}_t.id IS '{MARK}';
COMMENT ON CONSTRAINT {MARK}_t_pkey ON {MARK}_t IS '{MARK}';
CREATE INDEX {MARK}_i ON {MARK}_t ({MARK}_c);
COMMENT ON INDEX {MARK}_i IS '{MARK}';
CREATE STATISTICS {MARK}_stats ON id, n FROM {MARK}_t;
INSERT INTO {MARK}_t SELECT i, '{MARK}', 'calm', 1 FROM generate_series(1, 200) i;
CREATE VIEW {MARK}_v AS SELECT * FROM {MARK}_t;
CREATE MATERIALIZED VIEW {MARK}_m AS SELECT * FROM {MARK}_t;
CREATE MATERIALIZED VIEW {MARK}_empty AS SELECT id FROM {MARK}_t WITH NO DATA;
CREATE RULE {MARK}_rule AS ON INSERT TO {MARK}_t DO ALSO NOTHING;
CREATE POLICY {MARK}_policy ON {MARK}_t USING (true);
CREATE FUNCTION {MARK}_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NEW; END';
CREATE TRIGGER {MARK}_trigger BEFORE INSERT ON {MARK}_t EXECUTE FUNCTION {MARK}_trigger();
SET search_path = public;
CREATE TABLE orders (
  id int PRIMARY KEY, secret_id int REFERENCES {MARK}_s.{MARK}_t, kind {MARK}_s.{MARK}_enum DEFAULT 'calm',
  amount {MARK}_s.{MARK}_domain, kinds {MARK}_s.{MARK}_enum[], pair {MARK}_s.{MARK}_composite,
  number int DEFAULT nextval('{MARK}_s.{MARK}_sequence'::regclass), word text COLLATE {MARK}_s.{MARK}_collation);
CREATE SEQUENCE seen;
CREATE TABLE defaults (
  id int DEFAULT nextval('{MARK}_s.{MARK}_sequence'::text),
  "it's" int DEFAULT nextval('seen'::regclass) + {MARK}_s.{MARK}_f(length('x')),
  CHECK ("it's" > 0 OR {MARK}_s.{MARK}_f(length('x')) > 0));
CREATE TABLE counted (id int PRIMARY KEY, number int, CHECK ({MARK}_s.{MARK}_f(id) > 0));
COMMENT ON TABLE orders IS 'what customers bought';
CREATE DOMAIN text_of_ours AS text;
CREATE TABLE lines (id int PRIMARY KEY, order_id int REFERENCES orders, note text);
CREATE INDEX counted_f ON counted ({MARK}_s.{MARK}_f(id));
CREATE INDEX counted_some ON counted (number) WHERE {MARK}_s.{MARK}_f(number) > 0;
ALTER TABLE {MARK}_s.{MARK}_t ADD CONSTRAINT {MARK}_back FOREIGN KEY (n) REFERENCES orders NOT VALID;
INSERT INTO orders (id, secret_id, amount, kinds, pair, word)
  SELECT i, 1, 5, '{{calm}}', '(1,a)', 'w' FROM generate_series(1, 100) i;
CREATE VIEW over_secret AS SELECT id, kind, n FROM {MARK}_s.{MARK}_t;
CREATE VIEW over_view AS SELECT id FROM over_secret;
CREATE VIEW over_function AS SELECT id, {MARK}_s.{MARK}_f(id) AS next FROM counted;
CREATE VIEW over_type AS SELECT id, 'calm'::{MARK}_s.{MARK}_enum AS kind FROM orders;
CREATE VIEW over_empty AS SELECT id FROM {MARK}_s.{MARK}_empty;
CREATE VIEW plain AS SELECT o.id, l.note FROM orders o JOIN lines l ON l.order_id = o.id;
CREATE VIEW {MARK}_s.{MARK}_back_view AS SELECT * FROM orders;
CREATE TABLE parts (id int, k int) PARTITION BY LIST (k);
CREATE TABLE {MARK}_s.{MARK}_part PARTITION OF parts FOR VALUES IN (1);
CREATE TABLE {MARK}_s.{MARK}_parent (id int);
CREATE TABLE child () INHERITS ({MARK}_s.{MARK}_parent);
ANALYZE;
"""
VISIBLE = {
    "tables": ["child", "counted", "defaults", "lines", "orders", "parts"],
    "views": ["over_empty", "over_function", "over_secret", "over_type", "over_view", "plain"],
}


@pytest.fixture(scope="module")
async def gateway(server, anyio_backend):
    """Two databases: in one the secret schema bears the mark, in its twin another word; all else is the same."""
    names = {"marked": await server.create(SECRET), "twin": await server.create(SECRET.replace(MARK, ABSENT))}
    databases = [replace(server.configure(name, schemas=("public",)), name=key) for key, name in names.items()]
    async with Gateway.open(databases) as gateway:
        yield gateway
    for name in names.values():
        await server.drop(name)


@pytest.fixture(scope="module")
async def toolbox(gateway) -> Toolbox:
    return Toolbox(gateway, profile="full")


@pytest.fixture(scope="module")
async def admin(server, gateway, anyio_backend):
    """A connection that sees the marked database whole."""
    connection = await asyncpg.connect(server.address(gateway.configuration.databases["marked"].database))
    yield connection
    await connection.close()


NAMES = ["orders", "over_secret", "ordrs", MARK, f"{MARK}_t", f"{MARK}_s.{MARK}_t", f'"{MARK}_s"."{MARK}_v"']
SCHEMAS = [None, "public", f"{MARK}_s", "pg_catalog"]
SORTED = (
    "SELECT {0} FROM orders ORDER BY {0}, id LIMIT 2",
    "SELECT id, rank() OVER (PARTITION BY id ORDER BY {0} DESC) FROM orders",
    "SELECT {0} FROM orders UNION ALL SELECT {0} FROM orders ORDER BY 1",
    "SELECT {0}, count(DISTINCT {0}), array_agg({0} ORDER BY {0}) FROM orders GROUP BY {0}",
    "SELECT a.{0} FROM (SELECT * FROM orders ORDER BY {0}) AS a JOIN orders AS b USING ({0})",
    "SELECT id FROM orders WHERE {0} = (SELECT max({0}) FROM orders)",
)
"""Plans of these show how columns are sorted, grouped, compared."""
QUERIES = [
    *(f"SELECT * FROM {name}" for group in VISIBLE.values() for name in group),
    *(form.format(name) for form in SORTED for name in ("kind", "amount", "kinds", "pair", "number", "word")),
    "SELECT kind::int FROM orders",
    "SELECT kind FROM orders WHERE kind = 1",
    "SELECT kind FROM orders WHERE kind = 'wrong'",
    "SELECT kind FROM orders UNION SELECT 1",
    "SELECT amount::date, word FROM orders",
    "SELECT word FROM orders ORDER BY word COLLATE nowhere",
    "SELECT pair::int FROM orders",
    "SELECT kinds[1] || kinds FROM orders",
    "SELECT max(pair) FROM orders",
    "SELECT next + kind FROM over_function, over_type",
    "SELECT nowhere FROM over_secret",
    "SELECT id FROM over_secret GROUP BY n",
    "SELECT 1 / (id - id) FROM over_function",
    "SELECT * FROM nowhere",
]


def _calls() -> Iterator[tuple[str, dict[str, object]]]:
    yield "list_databases", {}
    for system in (False, True):
        yield "list_schemas", {"include_system": system}
    for schema, detail in product(SCHEMAS, ("compact", "full")):
        yield "list_tables", {"schema_name": schema, "detail": detail}
        yield "list_tables", {"schema_name": schema, "detail": detail, "name_pattern": f"%{MARK[1:5]}%"}
        for name in [
            *NAMES,
            ["orders", "over_secret", "child", "counted", "defaults", "parts"],
            ["orders", f"{MARK}_t"],
        ]:
            more = {"include_indexes": True, "include_constraints": True}
            yield "describe_table", {"table_name": name, "schema_name": schema, "detail": detail, **more}
    for name, schema in product(NAMES, SCHEMAS):
        yield "get_foreign_keys", {"table_name": name, "schema_name": schema}
        yield "get_sample_rows", {"table_name": name, "schema_name": schema}
        for other in NAMES:
            yield "find_join_path", {"from_table": name, "from_schema": schema, "to_table": other}
    for form, schema in product(("sql", "json", "mermaid"), SCHEMAS):
        yield "read_schema", {"format": form, "schema_name": schema}
        yield "read_schema", {"format": form, "tables": ["orders", "over_secret", "over_view", "over_function"]}
    for words in ("", MARK, f"{MARK}_s", "zyx", "orders", "kind", "secret"):
        yield "search_catalog", {"query": words}
    for sql in QUERIES:
        yield "execute_query", {"sql": sql}
        for form, analyze in product(("text", "json", "yaml"), (False, True)):
            yield "explain_query", {"sql": sql, "format": form, "analyze": analyze, "verbose": True}


async def told(toolbox: Toolbox, database: str, tool: str, arguments: Mapping[str, object]) -> str:
    """The answer of a call; the times of a run, which no two share, blotted out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    answer = await toolbox.call(tool, {"database": database, **given})
    return re.sub(r"\d+\.\d+", "0.0", answer.text.replace(database, "it"))


async def check(toolbox: Toolbox, tool: str, arguments: Mapping[str, object]) -> None:
    """The database with the mark and the one without it answer alike, and the mark is said by nobody but the caller."""
    marked = await told(toolbox, "marked", tool, arguments)
    twin = await told(toolbox, "twin", tool, arguments)
    again = await told(toolbox, "marked", tool, arguments) if marked != twin else marked
    assert marked == twin or marked != again, (tool, arguments)
    if MARK not in json.dumps(arguments):
        assert MARK not in marked, (tool, arguments)


async def test_no_tool_tells_what_is_outside_or_whether_it_is_there(toolbox: Toolbox):
    for tool, arguments in _calls():
        await check(toolbox, tool, arguments)


async def test_no_system_relation_tells_of_it(toolbox: Toolbox):
    for relation in sorted(load_allowed().relations):
        answer = await toolbox.call("execute_query", {"database": "marked", "sql": f"SELECT * FROM {relation}"})
        assert answer.is_error, relation
        assert MARK not in answer.text


OBJECTS = """
SELECT oid, relname::text FROM pg_class WHERE relname LIKE $1 AND relkind IN ('r', 'v', 'i', 'S') AND relnatts > 1
UNION ALL SELECT oid, typname FROM pg_type WHERE typname LIKE $1 AND typtype IN ('e', 'd')
UNION ALL SELECT oid, proname FROM pg_proc WHERE proname LIKE $1
UNION ALL SELECT oid, nspname FROM pg_namespace WHERE nspname LIKE $1
UNION ALL SELECT oid, conname FROM pg_constraint WHERE conname LIKE $1
UNION ALL SELECT oid, tgname FROM pg_trigger WHERE tgname LIKE $1
UNION ALL SELECT oid, stxname FROM pg_statistic_ext WHERE stxname LIKE $1
UNION ALL SELECT oid, cfgname FROM pg_ts_config WHERE cfgname LIKE $1
UNION ALL SELECT oid, dictname FROM pg_ts_dict WHERE dictname LIKE $1
UNION ALL SELECT oid, rulename FROM pg_rewrite WHERE rulename LIKE $1
"""
CALLABLE = """
SELECT p.proname::text, array(SELECT t::regtype::text FROM unnest(p.proargtypes::oid[]) AS t) FROM pg_proc AS p
WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND p.proname = ANY ($1) AND p.pronargs > 0
"""
LITERALS = {"integer": "1", "smallint": "1", "bigint": "1", "boolean": "true", '"char"': "'c'", "oidvector": "'{oid}'"}
NAMED = frozenset({"name", "text", "cstring"})


def _arguments(types: Sequence[str], oid: int, name: str) -> str:
    def of(kind: str) -> str:
        if kind == "oid":
            return str(oid)
        if kind.startswith("reg") or kind in NAMED:
            return f"'{MARK}_s.{name}'"
        return LITERALS.get(kind, "NULL").format(oid=oid)

    return ", ".join(map(of, types))


async def test_no_function_tells_of_it(toolbox: Toolbox, admin):
    objects = await admin.fetch(OBJECTS, f"{MARK}%")
    assert len(objects) > 20
    for function, types in await admin.fetch(CALLABLE, sorted(load_allowed().functions)):
        by_number = any(kind in ("oid", "oidvector") for kind in types)
        by_name = any(kind.startswith("reg") or kind in NAMED for kind in types)
        for oid, name in objects if by_number or by_name else ():
            sql = f"SELECT * FROM {function}({_arguments(types, oid, name)})"
            await check(toolbox, "execute_query", {"sql": sql})
            if not by_number or load_allowed().is_telling(function):
                break  # whichever object it is


PLACES = """
SELECT oid, datname::text FROM pg_database WHERE datname = current_database()
UNION ALL SELECT oid, spcname FROM pg_tablespace WHERE spcname = 'pg_default'
UNION ALL SELECT oid, relname FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relname = 'orders'
"""


async def answers_of(gateway: Gateway, statements: Sequence[str]) -> list[object]:
    """The rows of each statement, or what refuses it."""
    answers: list[object] = []
    for sql in statements:
        try:
            answers.append((await gateway.query(None, sql)).rows)
        except DragomanError as error:
            answers.append(error.code)
    return answers


@pytest.mark.full
async def test_no_function_tells_how_much_is_outside(server):
    """The same database before and after rows come to the secret schema: every function that takes a name or number."""
    name = await server.create(SECRET + f"CREATE TABLE {MARK}_s.{MARK}_filled (word text);")
    connection = await asyncpg.connect(server.address(name))
    try:
        async with Gateway.open([server.configure(name, schemas=("public",))]) as gateway:
            places = [tuple(row) for row in await connection.fetch(PLACES)]
            functions = await connection.fetch(CALLABLE, sorted(load_allowed().functions))
            statements = [
                f"SELECT * FROM {function}({_arguments(types, oid, called)})".replace(f"{MARK}_s.{called}", called)
                for function, types in functions
                for oid, called in places
            ]
            before = await answers_of(gateway, statements)
            await connection.execute(
                f"INSERT INTO {MARK}_s.{MARK}_filled SELECT repeat('x', 900) FROM generate_series(1, 900)"
            )
            after = await answers_of(gateway, statements)
    finally:
        await connection.close()
        await server.drop(name)
    assert sum(isinstance(answer, list) for answer in before) > 100
    assert [sql for sql, *said in zip(statements, before, after, strict=True) if said[0] != said[1]] == []


# Functions that take nothing but texts: any of these may be the name of a relation.
OF_TEXTS = """
SELECT DISTINCT n.nspname || '.' || p.proname, p.pronargs::int,
  array(SELECT t::regtype::text FROM unnest(p.proargtypes::oid[]) AS t)
FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
WHERE p.proname = ANY ($1) AND p.prokind = 'f' AND n.nspname IN ('pg_catalog', 'public') AND p.pronargs BETWEEN 1 AND 5
  AND NOT EXISTS (SELECT FROM unnest(p.proargtypes::oid[]) AS t (oid)
                  WHERE oid <> ALL ('{text,varchar,bpchar,name,bool}'::regtype[]))
"""
SPELLINGS: Mapping[int, Sequence[Sequence[str]]] = {
    1: [["hidden.lair"]],
    2: [["hidden", "lair"], ["lair", "place"], ["hidden.lair", "place"]],
    3: [["hidden", "lair", "place"]],
    4: [["test", "hidden", "lair", "place"], ["hidden", "lair", "place", "x"]],
}


def calls_of(function: str, types: Sequence[str]) -> Iterator[str]:
    """Calls of a function with the parts of a relation's name in place of its texts."""
    for words in SPELLINGS.get(sum(kind != "boolean" for kind in types), ()):
        rest = iter(words)
        given = ", ".join("true" if kind == "boolean" else f"'{next(rest)}'" for kind in types)
        yield f"SELECT * FROM {function}({given})"


async def test_no_function_of_texts_tells_whether_a_relation_of_that_name_is_there(server):
    """The same database with a hidden table and without it, with each extension that is well known and installed."""
    name = await server.create()
    connection = await asyncpg.connect(server.address(name))
    try:
        there = {row[0] for row in await connection.fetch("SELECT name FROM pg_available_extensions")}
        for extension in sorted(there & {*read_policy()["extensions"]["names"].split(), "postgis"}):
            await connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{extension}" CASCADE')
        place = "ST_MakePoint(n, n)" if "postgis" in there else "point(n, n)"
        await connection.execute(
            "CREATE SCHEMA hidden;"
            f"CREATE TABLE hidden.lair AS SELECT n, {place} AS place FROM generate_series(1, 9) n;"
            "ANALYZE hidden.lair"
        )
        names = sorted(load_allowed().functions | load_allowed().extension_functions)
        functions = await connection.fetch(OF_TEXTS, names)
        statements = [sql for function, _, types in functions for sql in calls_of(function, types)]
        async with Gateway.open([server.configure(name, schemas=("public",))]) as gateway:
            before = await answers_of(gateway, statements)
            await connection.execute("DROP TABLE hidden.lair")
            after = await answers_of(gateway, statements)
    finally:
        await connection.close()
        await server.drop(name)
    assert sum(isinstance(answer, list) for answer in before) > 50
    assert [sql for sql, *said in zip(statements, before, after, strict=True) if said[0] != said[1]] == []


async def test_every_function_about_objects_is_on_a_list(admin):
    told_nothing = read_policy()["told-nothing"]["names"].split()
    rows = await admin.fetch(
        """SELECT DISTINCT proname::text FROM pg_proc AS p,
             unnest(proargtypes::oid[] || coalesce(proallargtypes, '{}') || prorettype) AS used
           WHERE pronamespace = 'pg_catalog'::regnamespace AND proname = ANY ($1)
             AND (used::regtype::text ~ '^reg' OR used::regtype::text IN ('oid', 'oidvector', 'name', 'aclitem'))""",
        sorted(load_allowed().functions),
    )
    assert [name for (name,) in rows if not load_allowed().is_telling(name) and not fits(name, told_nothing)] == []


HOLDING = """
WITH RECURSIVE holding AS (
  SELECT oid FROM pg_type WHERE typname ~ '^reg' AND typtype = 'b' AND typnamespace = 'pg_catalog'::regnamespace
  UNION SELECT t.oid FROM holding AS h JOIN pg_type AS t ON h.oid IN (t.typelem, t.typbasetype)
    OR EXISTS (SELECT FROM pg_attribute WHERE attrelid = t.typrelid AND atttypid = h.oid AND NOT attisdropped)
) SELECT typname::text FROM holding JOIN pg_type USING (oid)
  WHERE typnamespace IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
"""


async def test_every_type_of_the_system_that_holds_names_is_on_the_list(admin):
    found = {name for (name,) in await admin.fetch(HOLDING)}
    assert {"regclass", "_regproc", "pg_sequences"} <= found
    assert found - load_allowed().naming == set()


async def test_no_type_of_the_system_that_holds_names_can_be_named(gateway, admin):
    for (name,) in await admin.fetch(HOLDING):
        checked = (f"'x', '{name}'", f"'x', ' {name.upper()}'", f"'x', '{name} []'")
        for sql in (
            f"SELECT NULL::{name}",
            f"SELECT NULL::pg_catalog.{name}[]",
            f"SELECT * FROM json_to_record('{{}}') AS x (a {name})",
            *(f"SELECT pg_input_is_valid({arguments})" for arguments in checked),
            *(f"SELECT message FROM pg_input_error_info({arguments})" for arguments in checked),
        ):
            with pytest.raises(UnsafeSql):
                await gateway.query("marked", sql)


TELLING = f"""
SELECT '{MARK}_s.{MARK}_t'::regclass
SELECT '{MARK}_s.{MARK}_t'::pg_catalog.regclass
SELECT regclass '{MARK}_s.{MARK}_t'
SELECT CAST('{MARK}_s.{MARK}_t' AS regclass)
SELECT ('{MARK}_s.' || '{MARK}_t')::regclass
SELECT '{{{MARK}_s.{MARK}_t}}'::regclass[]
SELECT '{{{MARK}_s.{MARK}_t}}'::_regclass
SELECT '"{MARK}_s"."{MARK}_t"'::regclass
SELECT '"{MARK}_s"'::regnamespace
SELECT '{MARK}_s'::regnamespace
SELECT regclass('{MARK}_s.{MARK}_t'::text)
SELECT '{MARK}_s.{MARK}_enum'::regtype
SELECT '{MARK}_s.{MARK}_f'::regproc
SELECT '{MARK}_s.{MARK}_f(int)'::regprocedure
SELECT '{MARK}_s.<=>(int,int)'::regoperator
SELECT '{MARK}_s.<=>'::regoper
SELECT '{MARK}_s.{MARK}_collation'::regcollation
SELECT '{MARK}_s.{MARK}_config'::regconfig
SELECT '{MARK}_s.{MARK}_dictionary'::regdictionary
SELECT g::text::regclass FROM generate_series(16384, 16500) AS g
SELECT string_agg(g::oid::regclass::text, ',') FROM generate_series(16384, 16500) AS g
SELECT string_agg(g::oid::regtype::text, ',') FROM generate_series(16384, 16500) AS g
SELECT '16400'::regclass
SELECT 'orders'::regclass UNION ALL SELECT g FROM generate_series(16384, 17000) AS g
SELECT pg_catalog.regclass 'orders' UNION SELECT 16400
SELECT CASE WHEN g > 0 THEN g ELSE 'orders'::regclass END FROM generate_series(16384, 17000) AS g
SELECT array_append(ARRAY['orders'::regclass], g) FROM generate_series(16384, 17000) AS g
SELECT lag('orders'::regclass, 1, 16400) OVER ()
VALUES ('int4'::regtype), (16400)
SELECT 'now'::regproc UNION ALL SELECT g FROM generate_series(16384, 17000) AS g
SELECT 'now'::regproc UNION ALL SELECT '16400'
SELECT '{{orders}}'::regclass[] || 16400
SELECT NULL::regclass UNION ALL SELECT g FROM generate_series(16384, 17000) AS g
SELECT NULL::regtype UNION ALL SELECT g FROM generate_series(16384, 17000) AS g
SELECT g::oid::regproc FROM generate_series(16384, 16500) AS g
SELECT (tableoid::regclass)::text FROM parts
SELECT NULL::{MARK}_s.{MARK}_t
SELECT (NULL::{MARK}_s.{MARK}_t).*
SELECT to_json(NULL::{MARK}_s.{MARK}_t)
SELECT 'calm'::{MARK}_s.{MARK}_enum
SELECT 'wrong'::{MARK}_s.{MARK}_enum
SELECT NULL::{MARK}_s.{MARK}_enum[]
SELECT 5::{MARK}_s.{MARK}_domain
SELECT {MARK}_s.{MARK}_domain '0'
SELECT * FROM json_to_record('{{}}') AS x (a {MARK}_s.{MARK}_enum)
SELECT * FROM jsonb_populate_record(NULL::{MARK}_s.{MARK}_t, '{{}}')
SELECT * FROM xmltable('/a' PASSING '<a/>' COLUMNS b {MARK}_s.{MARK}_enum)
SELECT 'a' COLLATE {MARK}_s.{MARK}_collation
SELECT 'a' COLLATE "{MARK}_s"."{MARK}_collation"
SELECT word FROM orders ORDER BY word COLLATE {MARK}_s.{MARK}_collation
SELECT {MARK}_s.{MARK}_f(1)
SELECT 1 OPERATOR({MARK}_s.<=>) 1
SELECT nextval('{MARK}_s.{MARK}_sequence')
SELECT last_value FROM {MARK}_s.{MARK}_sequence
SELECT * FROM {MARK}_s.{MARK}_i
SELECT to_tsvector('{MARK}_s.{MARK}_config', 'a')
SELECT to_tsvector('{MARK}_s.{MARK}_config'::regconfig, 'a')
SELECT to_tsquery('{MARK}_s.{MARK}_config', 'a')
SELECT ts_lexize('{MARK}_s.{MARK}_dictionary', 'a')
SELECT ts_lexize('16400', 'a')
SELECT ts_headline('{MARK}_s.{MARK}_config', 'a', 'a')
SELECT ts_headline('{MARK}_s.{MARK}_config', 'a', 'a', '')
SELECT * FROM ts_debug('{MARK}_s.{MARK}_config', 'a')
SELECT pg_typeof(kind), pg_typeof(pair) FROM orders
SELECT (o.pair).pg_typeof FROM orders o
SELECT o.pg_typeof FROM orders o
SELECT pg_collation_for(word) FROM orders
SELECT enum_range(kind) FROM orders
SELECT enum_last(kind) FROM orders
SELECT kind, kinds, pair, amount FROM orders LIMIT 1
SELECT row_to_json(orders) FROM orders LIMIT 1
SELECT xmlforest(kind, amount) FROM orders LIMIT 1
SELECT json_build_object('a', kind) FROM orders LIMIT 1
SELECT pg_input_is_valid('calm', '{MARK}_s.{MARK}_enum')
SELECT pg_input_is_valid('{MARK}_s.{MARK}', 'regclass')
SELECT pg_input_is_valid('{MARK}_s.{MARK}_enum', ' RegType')
SELECT * FROM pg_input_error_info('calm', '{MARK}_s.{MARK}_enum')
SELECT pg_input_is_valid('{{{MARK}_s.{MARK}_t}}', '_regclass')
SELECT pg_input_is_valid('{{{MARK}_s}}', '_regnamespace')
SELECT pg_input_is_valid('(,,,{MARK}_s.{MARK}_t,,,,,,,)', 'pg_sequences')
SELECT json_populate_record(NULL::pg_sequences, json_build_object('data_type', g)) FROM generate_series(16384, 16999) g
SELECT (a).aggfnoid FROM json_to_record('{{"a": {{"aggfnoid": "{MARK}_s.{MARK}_f"}}}}') AS x (a pg_aggregate)
SELECT * FROM {MARK}_s.{MARK}_t
SELECT * FROM {MARK}_s.{MARK}_v
SELECT * FROM {MARK}_t
SELECT {MARK}_s.{MARK}_t.id FROM orders
SELECT o.id FROM orders AS o, {MARK}_s.{MARK}_t
WITH {MARK}_t AS (SELECT 1) SELECT * FROM {MARK}_s.{MARK}_t
TABLE {MARK}_s.{MARK}_t
SELECT EXISTS (SELECT FROM {MARK}_s.{MARK}_t)
EXPLAIN SELECT * FROM over_secret
EXPLAIN (VERBOSE) SELECT * FROM over_view
SHOW search_path
SELECT current_schemas(true)
SELECT kind > 1 FROM orders
SELECT kind || 1 FROM orders
SELECT amount * interval '1 day' + 'x' FROM orders
SELECT (pair).nowhere FROM orders
SELECT pair = 1 FROM orders
SELECT max(pair), sum(kind) FROM orders
SELECT lower(kind) FROM orders
SELECT coalesce(kind, 1) FROM orders
SELECT CASE WHEN true THEN kind ELSE 1 END FROM orders
SELECT ARRAY[kind, 1] FROM orders
SELECT kind FROM orders INTERSECT SELECT id FROM orders
SELECT * FROM orders JOIN lines ON kind = note
SELECT * FROM over_empty
SELECT kind::text::int FROM orders
SELECT * FROM unnest(kind) AS u, orders
SELECT generate_series(kind, kind) FROM orders
SELECT word < word COLLATE "C" || word COLLATE "POSIX" FROM orders
SELECT word = word COLLATE "C" FROM orders UNION SELECT word < (SELECT note COLLATE "POSIX" FROM lines) FROM orders
SELECT current_setting('{MARK}.x')
SELECT '{MARK}_s'
"""


@pytest.mark.parametrize("sql", TELLING.strip().splitlines())
async def test_no_statement_tells_of_it(toolbox: Toolbox, sql: str):
    await check(toolbox, "execute_query", {"sql": sql})


@pytest.mark.parametrize(
    ("sql", "value"),
    [
        ("SELECT $1::regclass", f"{MARK}_s.{MARK}_t"),
        ("SELECT to_tsvector($1, 'a')", f"{MARK}_s.{MARK}_config"),
        ("SELECT to_regclass($1)", f"{MARK}_s.{MARK}_t"),
        ("SELECT has_table_privilege($1, 'SELECT')", f"{MARK}_s.{MARK}_t"),
        ("SELECT pg_relation_size($1)", f"{MARK}_s.{MARK}_t"),
    ],
)
async def test_no_parameter_tells_of_it(toolbox: Toolbox, sql: str, value: str):
    await check(toolbox, "execute_query", {"sql": sql, "params": [value]})


ANSWERED = """
SELECT o.id, l.note FROM orders o JOIN lines l ON l.order_id = o.id
SELECT count(*), pg_size_pretty(1000::bigint), version(), current_database(), now() FROM public.orders
SELECT kind, count(*) FROM orders GROUP BY kind
SELECT to_tsvector('english', note) @@ to_tsquery('english', 'a') FROM lines
SELECT to_tsvector('english'::regconfig, note), ts_headline('pg_catalog.english', note, to_tsquery('a')) FROM lines
SELECT ts_headline(note, to_tsquery('a'), 'MaxWords=5') FROM lines
SELECT word COLLATE "C", word COLLATE pg_catalog."POSIX" FROM orders
SELECT 1::pg_catalog.int8, 'a'::public.text_of_ours, NULL::orders, NULL::public.lines
SELECT * FROM json_to_record('{"a": 1}') AS x (a int)
SELECT over_secret.kind FROM over_secret
SHOW server_version
SELECT length('x.y'), 'a.b', md5('zyx')
"""


@pytest.mark.parametrize("sql", ANSWERED.strip().splitlines())
async def test_queries_of_what_is_visible_are_answered(gateway: Gateway, sql: str):
    await gateway.query("marked", sql)


async def test_what_is_hidden_is_told_as_what_is_not_there(toolbox: Toolbox):
    async def codes(*names: str) -> set[str]:
        asked = [{"database": "marked", "sql": f"SELECT * FROM {name}"} for name in names]
        answers = [json.loads((await toolbox.call("execute_query", each)).text) for each in asked]
        return {answer["error"]["code"] for answer in answers}

    assert await codes("public.nothing", "nothing") == {"TABLE_NOT_FOUND"}
    assert await codes(f"{MARK}_s.{MARK}_t", f"{MARK}_s.nothing", "nowhere.nothing") == {"SCHEMA_NOT_FOUND"}


async def test_without_schemas_all_that_the_role_may_see_is_visible(server, gateway: Gateway):
    whole = server.configure(gateway.configuration.databases["marked"].database)
    async with Gateway.open([whole]) as open_gateway:
        for sql in (f"SELECT '{MARK}_s.{MARK}_t'::regclass", f"SELECT * FROM {MARK}_s.{MARK}_t LIMIT 1"):
            assert MARK in str((await open_gateway.query(None, sql)).rows)


SETTINGS = (
    "SELECT rolconfig FROM pg_roles",
    "SELECT * FROM pg_roles",
    "SELECT r FROM pg_roles r",
    "SELECT q FROM pg_roles a JOIN pg_roles b USING (rolconfig) AS q",
    "SELECT row_to_json(q) FROM pg_roles a JOIN pg_roles b USING (rolname, rolconfig) AS q",
    "SELECT q FROM (pg_roles a JOIN pg_roles b USING (rolconfig)) AS q",
    "SELECT rolname FROM pg_roles NATURAL JOIN (SELECT ARRAY['work_mem=7MB'] AS rolconfig) AS x",
    "SELECT count(*) FROM pg_roles JOIN (SELECT ARRAY['work_mem=7MB'] AS rolconfig) AS x USING (rolconfig)",
    "SELECT x.rolname FROM pg_roles AS x (rolname, a, b, c, d, e, f, g, h, i, j, k, l)",
    "SELECT rolconfig(r) FROM pg_roles r",
    "SELECT (r).rolconfig FROM pg_roles r",
    "WITH q AS (TABLE pg_roles) SELECT rolname FROM q",
)
"""Ways to read or compare the settings of roles."""


async def test_settings_of_roles_are_closed(gateway: Gateway, server):
    whole = server.configure(gateway.configuration.databases["marked"].database)
    async with Gateway.open([whole]) as open_gateway:
        for sql in SETTINGS:
            with pytest.raises(UnsafeSql):
                await open_gateway.query(None, sql)
        assert (await open_gateway.query(None, "SELECT rolname, rolsuper FROM pg_roles")).row_count > 0


async def test_plans_of_what_is_visible_are_told(gateway: Gateway):
    for name in ("lines", "orders", "plain"):
        plan = await gateway.explain("marked", f"SELECT * FROM {name}")
        assert "Scan" in plan.plan


async def test_the_catalog_lists_the_visible_schema_and_nothing_else(gateway: Gateway):
    snapshot = await gateway.database("marked").catalog.snapshot()
    assert [schema.name for schema in snapshot.known_schemas] == ["public"]
    names = [name for group in VISIBLE.values() for name in group]
    assert [table.relation.name for table in snapshot.tables] == sorted(names)
