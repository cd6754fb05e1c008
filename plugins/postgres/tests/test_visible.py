"""With `schemas`, what lies outside does not exist: a secret schema bears a mark everywhere, which no answer holds."""

import json
import re
from collections.abc import Iterator
from itertools import product
from typing import TypeVar

import pytest
from dragoman import Gateway
from dragoman.tools import Toolbox

T = TypeVar("T")
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
  number int DEFAULT nextval('{MARK}_s.{MARK}_sequence'::regclass), word text COLLATE {MARK}_s.{MARK}_collation,
  CHECK ({MARK}_s.{MARK}_f(id) > 0));
COMMENT ON TABLE orders IS 'what customers bought';
CREATE TABLE lines (id int PRIMARY KEY, order_id int REFERENCES orders, note text);
CREATE INDEX orders_f ON orders ({MARK}_s.{MARK}_f(id));
CREATE INDEX orders_some ON orders (number) WHERE {MARK}_s.{MARK}_f(number) > 0;
ALTER TABLE {MARK}_s.{MARK}_t ADD CONSTRAINT {MARK}_back FOREIGN KEY (n) REFERENCES orders NOT VALID;
INSERT INTO orders (id, secret_id, amount, kinds, pair, word)
  SELECT i, 1, 5, '{{calm}}', '(1,a)', 'w' FROM generate_series(1, 100) i;
CREATE VIEW over_secret AS SELECT id, kind, n FROM {MARK}_s.{MARK}_t;
CREATE VIEW over_view AS SELECT id FROM over_secret;
CREATE VIEW over_function AS SELECT id, {MARK}_s.{MARK}_f(id) AS next FROM orders;
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
    "tables": ["child", "lines", "orders", "parts"],
    "views": ["over_empty", "over_function", "over_secret", "over_type", "over_view", "plain"],
}


@pytest.fixture(scope="module")
async def shop(server, anyio_backend):
    name = await server.create(SECRET)
    yield name
    await server.drop(name)


@pytest.fixture(scope="module")
async def gateway(server, shop, anyio_backend):
    async with Gateway.open([server.configured(shop, schemas=("public",))]) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def toolbox(gateway) -> Toolbox:
    return Toolbox(gateway)


NAMES = ["orders", "over_secret", "ordrs", MARK, f"{MARK}_t", f"{MARK}_s.{MARK}_t", f'"{MARK}_s"."{MARK}_v"']
SCHEMAS = [None, "public", f"{MARK}_s", "pg_catalog"]
QUERIES = [
    *(f"SELECT * FROM {name}" for group in VISIBLE.values() for name in group),
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
        for name in [*NAMES, ["orders", "over_secret", "child", "parts"], ["orders", f"{MARK}_t"]]:
            more = {"include_indexes": True, "include_constraints": True}
            yield "describe_table", {"table_name": name, "schema_name": schema, "detail": detail, **more}
    for name, schema in product(NAMES, SCHEMAS):
        yield "get_foreign_keys", {"table_name": name, "schema_name": schema}
        yield "get_sample_rows", {"table_name": name, "schema_name": schema}
        for other in NAMES:
            yield "find_join_path", {"from_table": name, "from_schema": schema, "to_table": other}
    for words in ("", MARK, f"{MARK}_s", "zyx", "orders", "kind", "secret"):
        yield "search_catalog", {"query": words}
    for sql in QUERIES:
        yield "execute_query", {"sql": sql}
        for form, analyze in product(("text", "json", "yaml"), (False, True)):
            yield "explain_query", {"sql": sql, "format": form, "analyze": analyze, "verbose": True}


async def told(toolbox: Toolbox, tool: str, arguments: dict[str, object]) -> str:
    """The answer of a call; the times of a run, which no two share, blotted out."""
    given = {key: value for key, value in arguments.items() if value is not None}
    answer = await toolbox.call(tool, given)
    return re.sub(r"\d+\.\d+", "0.0", answer.text)


def instead(value: T, name: str) -> T:
    """A value with another word in the place of the mark."""
    changed: T = json.loads(json.dumps(value).replace(MARK, name))
    return changed


async def test_no_tool_tells_what_is_outside_or_whether_it_is_there(toolbox: Toolbox):
    for tool, arguments in _calls():
        hidden = await told(toolbox, tool, arguments)
        if MARK not in json.dumps(arguments):
            assert MARK not in hidden, (tool, arguments)
            continue
        absent = await told(toolbox, tool, instead(arguments, ABSENT))
        assert hidden.replace(MARK, "x") == absent.replace(ABSENT, "x"), (tool, arguments)


async def test_the_catalog_lists_the_visible_schema_and_nothing_else(gateway: Gateway):
    snapshot = await gateway.database().catalog.snapshot()
    assert [schema.name for schema in snapshot.known_schemas] == ["public"]
    names = [name for group in VISIBLE.values() for name in group]
    assert [table.relation.name for table in snapshot.tables] == sorted(names)


async def test_plans_of_what_is_visible_are_told(gateway: Gateway):
    for name in ("lines", "orders", "plain"):
        plan = await gateway.explain(None, f"SELECT * FROM {name}")
        assert "Scan" in plan.plan
