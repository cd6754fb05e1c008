"""What ordinary databases hold stops no ordinary statement: beside the plantings, which must be refused."""

import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import asyncpg
import pytest
from dragoman import DragomanError, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman_postgres.testing import Server

DATABASES: list[dict[str, Any]] = tomllib.loads(Path(__file__).with_name("ordinary.toml").read_text(encoding="utf-8"))[
    "database"
]
TABLE = """
CREATE TABLE o (id int PRIMARY KEY, n text, t int[], v int, d timestamptz, j jsonb, u numeric(8, 2), b boolean);
INSERT INTO o VALUES (1, 'x', '{1}', 1, now(), '{}', 1.5, true);
"""
# What everybody asks, whichever extension is there.
EVERYBODY = """
SELECT id, n FROM o WHERE id = 1 AND n <> 'y' ORDER BY n
SELECT n, count(*) FROM o GROUP BY n HAVING count(*) > 1
SELECT t || 5, v + 1, v = 1, t = '{1}', v - 1, v * 2, u / 3, -v FROM o
SELECT replace(n, 'x', 'y'), split_part(n, ' ', 1), n ~ 'a', n LIKE 'a%', strpos(n, 'a'), lower(n), length(n) FROM o
SELECT max(n), min(v), array_agg(v), string_agg(n, ','), sum(v), avg(u) FROM o
SELECT n::int FROM o WHERE n ~ '^\\d+$'
SELECT id::text, n::varchar(5), to_jsonb(o) FROM o
SELECT * FROM o JOIN o AS p USING (id)
SELECT d, date_trunc('month', d), d - interval '1 day', extract(year FROM d) FROM o WHERE d > now() - interval '1 year'
SELECT j -> 'a', j ->> 'b', j @> '{}', j ? 'a' FROM o
SELECT * FROM o WHERE to_tsvector('english', n) @@ plainto_tsquery('english', 'x')
SELECT DISTINCT n FROM o WHERE id IN (1, 2) AND v BETWEEN 1 AND 5
SELECT t @> '{1}', t && ARRAY[1], 1 = ANY (t) FROM o
SELECT coalesce(n, 'x'), CASE WHEN v > 1 THEN 'a' END, nullif(v, 0), greatest(v, 2) FROM o
SELECT row_number() OVER (ORDER BY v), gen_random_uuid() FROM o
""".strip().splitlines()
EVERYTHING: Final = Role(name="all", principals=frozenset({"*"}))


async def _refused(gateway: Gateway, queries: Sequence[str]) -> list[tuple[str, str]]:
    """Return the queries that are refused, each with what is said."""
    refused: list[tuple[str, str]] = []
    for query in queries:
        try:
            await gateway.query(None, query)
        except DragomanError as error:
            refused.append((query, error.message))
    return refused


@pytest.mark.parametrize("ordinary", DATABASES, ids=[each["name"] for each in DATABASES])
async def test_ordinary_statements_pass(server: Server, admin: asyncpg.Connection, ordinary: dict[str, Any]):
    if admin.get_server_version().major < ordinary.get("since", 13):
        pytest.skip("it has no such object")
    there = {row[0] for row in await admin.fetch("SELECT name FROM pg_available_extensions")}
    if missing := set(ordinary.get("extensions", ())) - there:
        pytest.skip(f"this server lacks the extensions {', '.join(sorted(missing))}")
    name = await server.create()
    await server.run(ordinary["script"], name)
    async with Gateway.open([server.configure(name)]) as gateway:
        assert await _refused(gateway, ordinary["queries"].strip().splitlines()) == []
    await server.drop(name)


@pytest.mark.parametrize("ordinary", [{"name": "table"}, *DATABASES], ids=lambda each: each["name"])
async def test_schemas_and_roles_together_refuse_no_more_than_each_alone(
    server: Server, admin: asyncpg.Connection, ordinary: dict[str, Any]
):
    if admin.get_server_version().major < ordinary.get("since", 13) or ordinary.get("extensions"):
        pytest.skip("it is not there")
    name = await server.create(ordinary.get("script", TABLE))
    queries = ordinary.get("queries", "\n".join(EVERYBODY)).strip().splitlines()
    alone = await _refused_to(server, queries, name, schemas=("public",))
    alone |= await _refused_to(server, queries, name, EVERYTHING)
    assert await _refused_to(server, queries, name, EVERYTHING, schemas=("public",)) == alone
    if ordinary["name"] == "table":
        assert not alone
    await server.drop(name)


async def _refused_to(server: Server, queries: Sequence[str], name: str, *roles: Role, **fields: Any) -> set[str]:
    """Return the queries that are refused to callers with these roles, each with a grant of every table."""
    grants = (Grant(database=name, tables=("public.*",), key="roles.all.grants.0"),)
    known = {role.name: replace(role, grants=grants) for role in roles}
    async with Gateway.open(Configuration(databases={name: server.configure(name, **fields)}, roles=known)) as gateway:
        return {query for query, _ in await _refused(gateway, queries)}


PARTS = 4
"""Of all extensions: one part takes minutes where a server has many."""
OF_PARTS = {"hstore", "intarray", "btree_gist", "citext", "ltree", "vector"}


@pytest.mark.parametrize("part", range(PARTS))
async def test_no_extension_stops_ordinary_statements(
    server: Server, database_name: str, admin: asyncpg.Connection, part: int
):
    await admin.execute(f"DROP TABLE IF EXISTS o; {TABLE}")
    rows = await admin.fetch("SELECT name FROM pg_available_extensions WHERE name <> 'plpgsql' ORDER BY 1")
    names = [row["name"] for row in rows]
    assert OF_PARTS & {*names}
    refused: dict[str, list[tuple[str, str]]] = {}
    async with Gateway.open([server.configure(database_name, catalog_ttl=0.0)]) as gateway:
        for name in names[part::PARTS]:
            try:
                await admin.execute(f'CREATE EXTENSION "{name}" CASCADE')
            except asyncpg.PostgresError:
                # Of a language or a library that this server lacks.
                assert name not in OF_PARTS
                continue
            refused[name] = await _refused(gateway, EVERYBODY)
            await admin.execute(f'DROP EXTENSION "{name}" CASCADE')
    assert {name: told for name, told in refused.items() if told} == {}
