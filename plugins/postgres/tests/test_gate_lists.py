"""The shipped lists beside live servers of every major version, and beside the extensions these have."""

from collections.abc import AsyncGenerator

import asyncpg
import pytest
from dragoman import Database, Gateway, UnsafeSql
from dragoman_postgres.rules import MAJORS, inventory, load_allowed
from dragoman_postgres.rules.policy import fits, patterns, read_policy
from dragoman_postgres.testing import Server

POLICY = read_policy()
# PostGIS calls them volatile; they compute.
OF_POSTGIS = """
SELECT p.proname, p.provolatile, p.pronargs FROM pg_proc p
JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
JOIN pg_extension e ON e.oid = d.refobjid WHERE e.extname = 'postgis'
  AND NOT p.proargtypes::oid[] && ARRAY['internal'::regtype::oid, 'cstring'::regtype]
"""
HARMLESS = {"st_symmetricdifference", "st_clusterkmeans", "st_generatepoints"}


@pytest.fixture(scope="module")
async def database(server: Server, database_name: str) -> Database:
    """A database with every well-known extension the server has."""
    wanted = [*POLICY["extensions"]["names"].split(), "postgis"]
    connection = await asyncpg.connect(server.address(database_name))
    try:
        there = {row[0] for row in await connection.fetch("SELECT name FROM pg_available_extensions")}
        for name in wanted:
            if name in there:
                await connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{name}" CASCADE')
    finally:
        await connection.close()
    return server.configure(database_name)


@pytest.fixture
async def connection(server: Server, database: Database) -> AsyncGenerator["asyncpg.Connection"]:
    opened = await asyncpg.connect(server.address(database.name))
    yield opened
    await opened.close()


async def extensions(connection: asyncpg.Connection) -> set[str]:
    return {row[0] for row in await connection.fetch("SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'")}


async def test_the_shipped_lists_are_what_the_policy_makes_of_this_server(connection: asyncpg.Connection):
    if connection.get_server_version().major not in MAJORS:
        pytest.skip("no list of this major")
    lists, rules = await inventory.own(connection, POLICY), load_allowed()
    assert lists["functions"] <= rules.functions
    assert lists["refused"] <= rules.refused
    assert lists["operators"] <= rules.operators
    assert lists["relations"] <= rules.relations


async def test_no_volatile_function_is_allowed_but_those_the_policy_names(connection: asyncpg.Connection):
    rows = await connection.fetch("SELECT proname FROM pg_proc WHERE pronamespace = 11 AND provolatile = 'v'")
    named = patterns(POLICY["volatile"])
    assert {row[0] for row in rows if not fits(row[0], named)} & load_allowed().functions == set()


async def test_the_lists_of_extensions_are_what_the_policy_makes_of_them(connection: asyncpg.Connection):
    if not await extensions(connection) - {"postgis"}:
        pytest.skip("this server has none of the well-known extensions")
    lists, rules = await inventory.extensions(connection, POLICY), load_allowed()
    assert lists["functions"] <= rules.extension_functions | rules.functions
    assert lists["refused"] - rules.extension_functions <= rules.refused | rules.functions
    assert lists["operators"] <= rules.extension_operators | rules.operators


async def test_postgis_has_nothing_volatile_on_its_list_but_what_computes(connection: asyncpg.Connection):
    if "postgis" not in await extensions(connection):
        pytest.skip("this server has no PostGIS")
    rows = await connection.fetch(OF_POSTGIS)
    volatile = {row["proname"] for row in rows if row["provolatile"] == b"v"}
    shipped = set(POLICY["postgis"]["names"].split())
    assert volatile & shipped == HARMLESS
    assert {row["proname"] for row in rows if row["pronargs"] == 1} & volatile - shipped <= load_allowed().refused
    # The list is PostGIS': hardly anything on it is unknown to this version.
    assert len(shipped - {row["proname"] for row in rows}) < 15


# They return a value of a type that an argument has, and read it from another argument.
FILLING = """
SELECT DISTINCT p.proname::text FROM pg_proc p
WHERE p.prorettype IN (SELECT oid FROM pg_type WHERE typtype = 'p' AND typname ~ '^any')
  AND EXISTS (SELECT FROM unnest(p.proargtypes::oid[]) AS a (oid) JOIN pg_type t ON t.oid = a.oid
              WHERE t.oid >= 16384 OR t.typcategory = 'S' OR t.oid IN ('json'::regtype, 'jsonb'::regtype))
UNION SELECT o.oprname::text FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
WHERE p.prorettype IN (SELECT oid FROM pg_type WHERE typtype = 'p' AND typname ~ '^any')
  AND (o.oprright >= 16384 OR o.oprleft >= 16384)
"""


async def test_what_reads_values_for_rows_of_any_type_is_known_to(connection: asyncpg.Connection):
    found = {row[0] for row in await connection.fetch(FILLING)}
    assert {"json_populate_record", "jsonb_populate_recordset"} <= found
    assert found & (load_allowed().functions | load_allowed().extension_functions) <= load_allowed().mixing
    assert found & (load_allowed().operators | load_allowed().extension_operators) <= load_allowed().mixing


QUERIES = [
    ("pg_trgm", "SELECT similarity('word', 'words') > 0.3, 'word' % 'words', word_similarity('a', 'abc'), 'a' <-> 'b'"),
    ("pg_trgm", "SELECT show_trgm('word')"),
    ("hstore", "SELECT ('a=>1, b=>2'::hstore) -> 'a', 'a=>1'::hstore @> 'a=>1', akeys('a=>1'), each('a=>1')"),
    ("unaccent", "SELECT unaccent('Hôtel')"),
    ("fuzzystrmatch", "SELECT levenshtein('a', 'b'), soundex('Anne'), metaphone('Thumb', 4), dmetaphone('x')"),
    ("ltree", "SELECT 'a.b.c'::ltree <@ 'a.b', 'a.b'::ltree ~ 'a.*', subpath('a.b.c', 1), nlevel('a.b')"),
    ("intarray", "SELECT ARRAY[1, 2] && ARRAY[2], sort(ARRAY[2, 1]), uniq(ARRAY[1, 1]), idx(ARRAY[5, 6], 6)"),
    ("citext", "SELECT 'A'::citext = 'a', lower('A'::citext)"),
    ("uuid-ossp", "SELECT uuid_generate_v4() IS NOT NULL, uuid_nil()"),
    ("cube", "SELECT cube(ARRAY[1, 2]) @> '(1,2)', cube_distance('(1)', '(3)'), '(1,2)'::cube -> 1"),
    (
        "earthdistance",
        "SELECT earth_distance(ll_to_earth(52, 13), ll_to_earth(48, 2)) > 0, point(13, 52) <@> point(2, 48)",
    ),
    ("isn", "SELECT isbn13('978-0-306-40615-7'), '0-306-40615-2'::isbn"),
    ("pgcrypto", "SELECT encode(digest('a', 'sha256'), 'hex'), gen_random_uuid() IS NOT NULL, hmac('a', 'k', 'md5')"),
    ("seg", "SELECT '1 .. 3'::seg && '2 .. 5', seg_center('1 .. 3')"),
    ("tablefunc", "SELECT * FROM normal_rand(2, 0, 1)"),
    ("btree_gist", "SELECT 1 <-> 2, DATE '2024-01-01' <-> DATE '2024-01-03'"),
    (
        "vector",
        "SELECT '[1,2]'::vector <-> '[2,3]', '[1,2]'::vector <=> '[2,3]', vector_dims('[1,2]'::vector)",
    ),
    ("vector", "SELECT avg(v) FROM (VALUES ('[1,2]'::vector), ('[3,4]')) AS t(v)"),
    (
        "postgis",
        "SELECT ST_AsText(ST_Buffer(ST_SetSRID(ST_MakePoint(1, 2), 4326), 0)), ST_Distance('POINT(0 0)', 'POINT(3 4)')",
    ),
    (
        "postgis",
        "SELECT ST_Within('POINT(0 0)'::geometry, ST_MakeEnvelope(-1, -1, 1, 1))",
    ),
    (
        "postgis",
        "SELECT ST_AsGeoJSON(ST_Transform('SRID=4326;POINT(13 52)'::geometry, 3857))",
    ),
    (
        "postgis",
        "SELECT ST_DWithin('POINT(0 0)'::geography, 'POINT(0 1)'::geography, 200000)",
    ),
]
SEEN = [
    ("isn", "SELECT isn_weak(true)"),
    ("pg_trgm", "SELECT set_limit(0.1)"),
    ("tablefunc", "SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int, b int)"),
]
REFUSED = [
    ("tablefunc", "SELECT * FROM crosstab('SELECT 1, 2, 3') AS t(a int, b int)"),
    ("tablefunc", "SELECT * FROM connectby('t', 'a', 'b', '1', 0) AS t(a int, b int, c int)"),
    ("pg_trgm", "SELECT set_limit(0.1)"),
    ("pgcrypto", "SELECT gen_salt('bf', 31)"),
    ("isn", "SELECT isn_weak(true)"),
    ("postgis", "SELECT postgis_extensions_upgrade()"),
    ("postgis", "SELECT DropGeometryTable('t')"),
    ("postgis", "SELECT ST_FromFlatGeobufToTable('public', 't', 'x')"),
    ("postgis", "SELECT LockRow('t', '1', '2')"),
]


async def test_what_extensions_are_used_for_runs(database: Database, connection: asyncpg.Connection):
    there = await extensions(connection)
    if not there:
        pytest.skip("this server has none of the well-known extensions")
    async with Gateway.open([database]) as gateway:
        for extension, text in QUERIES:
            if extension in there:
                assert (await gateway.query(None, text)).rows, text


async def test_what_extensions_must_not_do_is_refused(database: Database):
    async with Gateway.open([database]) as gateway:
        for _, text in REFUSED:
            with pytest.raises(UnsafeSql):
                await gateway.query(None, text)


async def test_what_extensions_must_not_do_is_refused_behind_a_view(database: Database, connection: asyncpg.Connection):
    there = await extensions(connection)
    views = {f"seen_{extension}": text for extension, text in SEEN if extension in there}
    for view, text in views.items():
        await connection.execute(f"CREATE VIEW {view} AS {text}")
    async with Gateway.open([database]) as gateway:
        for view in views:
            with pytest.raises(UnsafeSql):
                await gateway.query(None, f"SELECT * FROM {view}")
