"""Names mean what was judged: whatever takes the names of other things, on whatever path, answers stay the same."""

import itertools
import json
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from typing import Any

import asyncpg
import pytest
from dragoman import Database, Gateway, UnsafeSql
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

MARK = "taken over"
SCRIPT = """
CREATE TABLE public.items (id integer PRIMARY KEY, label text NOT NULL);
CREATE TABLE public."Items" (id integer PRIMARY KEY, weight numeric);
CREATE VIEW public.heavy AS SELECT id FROM public."Items" WHERE weight > 1;
INSERT INTO public.items VALUES (1, 'one'), (2, 'Two');
INSERT INTO public."Items" VALUES (7, 1.5);
"""
PLANTED = """
CREATE SCHEMA {schema};
CREATE FUNCTION {schema}.raised() RETURNS pg_catalog.bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'taken over'; END $$;
"""
SCHEMAS = ("planted", '"Planted"', "information", '"a, b"')
PATHS = (
    "{schema}, public",
    "{schema}, pg_catalog, public",
    "public, {schema}, pg_catalog",
    "pg_temp, {schema}, public, pg_catalog",
    '"$user", {schema}, public',
    "pg_catalog, {schema}, public",
    "{schema}",
)
RELATIONS = ("pg_class", "pg_type", "pg_namespace", "pg_attribute", "pg_settings", "pg_proc")
TYPES = ("text", "int4", "int8", "bool", "numeric", "date", "uuid", "name", "json", "varchar", "timestamptz")
FUNCTIONS = ("lower", "upper", "length", "abs", "count", "sum", "max", "coalesce", "now", "unnest", "to_char", "md5")
OPERATORS = ("=", "<>", "<", "||", "+", "-", "~~", "~", "@>")
QUERIES = (
    "SELECT id, label FROM items ORDER BY id",
    'SELECT * FROM "Items"',
    "SELECT count(*) FROM heavy",
    "TABLE items",
    "SELECT count(*) FROM pg_class WHERE relname = 'pg_class' AND oid < 16384",
    "SELECT typname FROM pg_type WHERE typname = 'int4' AND oid < 16384",
    "SELECT nspname FROM pg_namespace WHERE nspname = 'public'",
    "SELECT count(*) FROM pg_catalog.pg_proc WHERE oid = 870",
    "SELECT i.label, h.id FROM items i CROSS JOIN heavy h ORDER BY i.id",
    "SELECT items FROM items WHERE id = 1",
    "SELECT lower(label) FROM items ORDER BY id",
    "SELECT abs(-1), length('abc'), md5('x')",
    "SELECT upper('a') || 'b'",
    "SELECT sum(id), max(label) FROM items",
    "SELECT array_agg(id ORDER BY id) FROM items",
    "SELECT 1 + 1, 2 - 1",
    "SELECT '1'::int4, '1'::numeric, 'x'::text, '2020-01-01'::date",
    "SELECT 1 = 1, 'a' < 'b', 'abc' LIKE 'a%'",
    "SELECT id FROM items WHERE label = 'one'",
    "SELECT id FROM items WHERE id IN (1, 3)",
    "SELECT cast(id AS text) FROM items",
    "WITH items AS (SELECT 5 AS id) SELECT id FROM items",
    "SELECT public.items.label FROM public.items WHERE id = 1",
    "SELECT unnest(ARRAY[1, 2])",
    "SELECT coalesce(NULL, 1)",
    "SELECT to_char(1, '9')",
    "SELECT json_build_object('a', 1)",
    "SELECT DISTINCT label FROM items ORDER BY 1",
    'SELECT id FROM items UNION SELECT id FROM "Items" ORDER BY 1',
)


def relation(chance: random.Random, schema: str) -> str:
    taken = f"{schema}.{chance.choice(RELATIONS)}"
    body = (
        f"SELECT {schema}.raised() AS id, 'taken over'::pg_catalog.text AS label, 9 AS weight, 'taken over' AS relname"
    )
    return chance.choice(
        (
            f"CREATE VIEW {taken} AS {body}",
            f"CREATE TABLE {taken} AS SELECT 1 AS id, 'taken over' AS label, 'taken over' AS relname, 9 AS weight",
            f"CREATE MATERIALIZED VIEW {taken} AS SELECT 'taken over' AS id, 'taken over' AS typname",
        )
    )


def value_type(chance: random.Random, schema: str) -> str:
    return f"CREATE DOMAIN {schema}.{chance.choice(TYPES)} AS pg_catalog.text CHECK ({schema}.raised())"


def function(chance: random.Random, schema: str) -> str:
    types = [f"pg_catalog.{chance.choice(TYPES)}" for _ in range(chance.randint(0, 2))]
    result = chance.choice(("text", "int4", "bool"))
    body = f"SELECT {schema}.raised()::pg_catalog.text::pg_catalog.{result}"
    name = chance.choice(FUNCTIONS)
    head = f'CREATE FUNCTION {schema}."{name}"({", ".join(types)}) RETURNS pg_catalog.{result}'
    return f"{head} LANGUAGE sql AS $f$ {body} $f$"


def operator(chance: random.Random, schema: str) -> str:
    one, two = (f"pg_catalog.{chance.choice(TYPES)}" for _ in range(2))
    sides = f"LEFTARG = {one}, RIGHTARG = {two}"
    return (
        f"CREATE FUNCTION {schema}.act({one}, {two}) RETURNS pg_catalog.bool LANGUAGE sql"
        f" AS $f$ SELECT {schema}.raised() $f$;"
        f"CREATE OPERATOR {schema}.{chance.choice(OPERATORS)} (FUNCTION = {schema}.act, {sides})"
    )


MAKERS: tuple[Callable[[random.Random, str], str], ...] = (relation, relation, value_type, function, operator)


@pytest.fixture(scope="module")
async def shop(server: Server, anyio_backend: str) -> AsyncGenerator[Database]:
    name = await server.create(SCRIPT)
    yield server.configure(name, catalog_ttl=0.0)
    await server.drop(name)


@pytest.fixture(scope="module")
async def answers(shop: Database) -> dict[str, object]:
    """What the queries answer while nothing is planted."""
    async with Gateway.open([shop]) as gateway:
        return {query: (await gateway.query(None, query)).rows for query in QUERIES}


@pytest.fixture
async def planted(seed: int, server: Server, shop: Database, answers) -> AsyncGenerator[str]:
    """A schema in which other things take names, somewhere on the path of every session."""
    chance = random.Random(seed)
    schema = chance.choice(SCHEMAS)
    await server.run(PLANTED.format(schema=schema), shop.name)
    for _ in range(chance.randint(1, 5)):
        await server.run(
            f"DO $do$ BEGIN EXECUTE $plant${chance.choice(MAKERS)(chance, schema)}$plant$; "
            "EXCEPTION WHEN duplicate_object OR duplicate_table OR duplicate_function THEN END $do$",
            shop.name,
        )
    await server.run(f'ALTER DATABASE "{shop.name}" SET search_path = {chance.choice(PATHS).format(schema=schema)}')
    yield schema
    await server.run(f'DROP SCHEMA {schema} CASCADE; ALTER DATABASE "{shop.name}" RESET search_path', shop.name)


WRITTEN = (
    "items",
    "Items",
    '"Items"',
    '"items"',
    "ITEMS",
    "heavy",
    *(f"{schema}.items" for schema in (*SCHEMAS, "public")),
)
"""Names as callers write them."""


def same(schemas: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The same names in each of the schemas."""
    return itertools.product(schemas, ("items", '"Items"', "heavy"))


def same_names(chance: random.Random, schemas: Sequence[str]) -> Iterator[str]:
    """Relations with the same names in several schemas, each with a column that no other has."""
    for number, (schema, name) in enumerate(same(schemas)):
        if chance.random() < 0.6:
            kind = chance.choice(("TABLE", "VIEW", "MATERIALIZED VIEW"))
            yield f"CREATE {kind} {schema}.{name} AS SELECT 1 AS from_{number}"


SEEDS = [
    *range(3),
    *(pytest.param(seed, marks=pytest.mark.full) for seed in range(3, 15)),
    *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(15, 500)),
]


@pytest.mark.parametrize("seed", SEEDS)
async def test_whatever_takes_a_name_queries_answer_as_without_it(seed: int, shop: Database, answers, planted: str):
    wrong, answered = [], 0
    async with Gateway.open([shop]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for query in QUERIES:
            answer = json.loads((await toolbox.call("execute_query", {"sql": query})).text)
            answered += "error" not in answer
            told = MARK in str(answer) if "error" in answer else answer["rows"] != answers[query]
            wrong += [(query, answer)] * told
    assert wrong == []
    assert answered


@pytest.mark.parametrize("seed", SEEDS)
async def test_a_name_means_one_relation_in_every_tool(seed: int, server: Server):
    chance = random.Random(seed)
    name = await server.create("DROP SCHEMA public CASCADE")
    schemas = ("public", *SCHEMAS)
    await server.run("".join(f"CREATE SCHEMA {schema};" for schema in schemas), name)
    made = list(same_names(chance, schemas))
    await server.run(";".join(made), name)
    path = chance.sample(schemas, chance.randint(1, len(schemas)))
    await server.run(f'ALTER DATABASE "{name}" SET search_path = {", ".join(path)}')
    shown = chance.sample(schemas, chance.randint(1, len(schemas) - 1)) if chance.random() < 0.5 else ()
    async with Gateway.open([server.configure(name, schemas=tuple(shown))]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        found = {written: await meanings(toolbox, written) for written in WRITTEN}
    await server.drop(name)
    assert {written: tools for written, tools in found.items() if differs(tools)} == {}
    hidden = {f"from_{number}" for number, (schema, _) in enumerate(same(schemas)) if shown and schema not in shown}
    assert not hidden & {column for tools in found.values() for column in tools.values()}
    there = {written for written in WRITTEN if any(f" {written} AS" in each for each in made)}
    seen = {written for written in there if not shown or written.rpartition(".")[0] in shown}
    assert all(found[written]["execute_query"] for written in seen)


def differs(tools: dict[str, str]) -> bool:
    """Whether tools take a name for different relations. What no query finds, those that take names may still find."""
    others = {tools["get_sample_rows"], tools["describe_table"]}
    queried = tools["execute_query"]
    return len(others) > 1 or bool(queried and {queried} != others)


async def meanings(toolbox: Toolbox, written: str) -> dict[str, str]:
    """What each tool takes a name for: the only column of a relation; empty: for none."""
    read = await ask(toolbox, "execute_query", sql=f"SELECT * FROM {written}")
    sampled = await ask(toolbox, "get_sample_rows", table_name=written)
    told = await ask(toolbox, "describe_table", table_name=written)
    described = [lines[0].split()[0] for lines in told.get("tables", {}).values()]
    return {
        "execute_query": "".join(read.get("columns", [])),
        "get_sample_rows": "".join(sampled.get("columns", [])),
        "describe_table": "".join(described),
    }


async def ask(toolbox: Toolbox, tool: str, **arguments: object) -> dict[str, Any]:
    """What a tool answers."""
    answer: dict[str, Any] = json.loads((await toolbox.call(tool, arguments)).text)
    return answer


# Functions of standard SQL that fit better than the system's, and queries that then mean them.
NEARER = """
CREATE TABLE public.near (v varchar(9), d date, n smallint);
INSERT INTO public.near VALUES ('Abc', '2026-01-01', 2);
CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'taken';
CREATE FUNCTION public.abs(smallint, integer DEFAULT 1) RETURNS integer LANGUAGE sql IMMUTABLE RETURN -1;
CREATE FUNCTION public.both(varchar, varchar) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'taken';
CREATE FUNCTION public.same(varchar, varchar) RETURNS boolean LANGUAGE sql IMMUTABLE RETURN false;
CREATE FUNCTION public.later(date, smallint) RETURNS date LANGUAGE sql IMMUTABLE RETURN $1;
CREATE FUNCTION public.more(text, varchar) RETURNS text LANGUAGE sql IMMUTABLE RETURN 'taken';
CREATE OPERATOR public.|| (function = both, leftarg = varchar, rightarg = varchar);
CREATE OPERATOR public.= (function = same, leftarg = varchar, rightarg = varchar);
CREATE OPERATOR public.+ (function = later, leftarg = date, rightarg = smallint);
CREATE AGGREGATE public.max(varchar) (sfunc = more, stype = text, initcond = 'taken');
"""
MEANT = (
    "SELECT lower(v) FROM near",
    "SELECT v || v FROM near",
    "SELECT v = v FROM near",
    "SELECT 1 FROM near WHERE v IN ('Abc')",
    "SELECT 1 FROM near AS a JOIN near AS b USING (v)",
    "SELECT CASE v WHEN 'Abc' THEN 1 END FROM near",
    "SELECT nullif(v, 'Abc') FROM near",
    "SELECT d + n FROM near",
    "SELECT max(v) FROM near",
)


async def test_no_function_of_standard_sql_stands_for_the_systems(server: Server):
    name = await server.create()
    try:
        await server.run(NEARER, name)
        async with Gateway.open([server.configure(name)]) as gateway:
            for query in MEANT:
                with pytest.raises(UnsafeSql):
                    await gateway.query(None, query)
            assert (await gateway.query(None, "SELECT initcap(v), d - 1, n * 2 FROM near")).rows
    except asyncpg.PostgresSyntaxError:
        pytest.skip("this server has no bodies of standard SQL")
    finally:
        await server.drop(name)
