"""Names mean what was judged: the system's schema is searched first, temporary objects last, whatever path there is."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import asyncpg
import pytest
from dragoman import ConnectionFailed, Database, ExplainOptions, Gateway, Scope, UnsafeSql
from dragoman_postgres.search_path import order_path
from dragoman_postgres.testing import Server

HOSTILE = (Path(__file__).parent / "hostile.sql").read_text()
TABLES = """
CREATE TABLE public.orders (id integer PRIMARY KEY, at date DEFAULT now(), note varchar(9) CHECK (note <> ''));
CREATE INDEX ON public.orders (lower(note)) WHERE id > 0;
CREATE VIEW public.recent AS SELECT * FROM public.orders WHERE id > 3;
INSERT INTO public.orders SELECT n, NULL, 'x' FROM generate_series(1, 200) AS n;
"""
PATHS = (
    'pg_temp, "hostile", "pg_catalog", "$user", public',
    pytest.param("hostile, pg_catalog, public", marks=pytest.mark.full),
    pytest.param("hostile, public", marks=pytest.mark.full),
    pytest.param("public, PG_CATALOG, hostile", marks=pytest.mark.full),
)


@pytest.fixture(scope="module")
async def hostile(server: Server, anyio_backend: str) -> AsyncGenerator[Database]:
    name = await server.create(HOSTILE + TABLES)
    yield server.configure(name, catalog_ttl=0.0)
    await server.drop(name)


@pytest.fixture(scope="module", params=PATHS)
async def gateway(request: pytest.FixtureRequest, server: Server, hostile: Database) -> AsyncGenerator[Gateway]:
    await server.run(f'ALTER DATABASE "{hostile.name}" SET search_path = {request.param}', hostile.name)
    async with Gateway.open([hostile]) as opened:
        yield opened


@pytest.mark.parametrize("path", PATHS)
async def test_the_paths_are_hostile(server: Server, hostile: Database, path: str):
    connection = await asyncpg.connect(server.address(hostile.name))
    await connection.execute(f"SET search_path = {path}")
    with pytest.raises(asyncpg.PostgresError, match="taken over"):
        await connection.fetch("SELECT 'x'::pg_catalog.name ~ 'y'::pg_catalog.varchar")
    await connection.close()


async def test_the_catalog_is_read_from_the_system_s_relations(gateway: Gateway, hostile: Database):
    inspector = gateway.database(hostile.name).inspector
    tables = (await inspector.tables(Scope(schemas=frozenset({"public"})))).tables
    orders, recent = sorted(tables, key=lambda table: table.relation.name)
    assert [column.name for column in orders.columns] == ["id", "at", "note"]
    assert orders.indexes
    assert recent.definition


async def test_callers_names_are_the_system_s(gateway: Gateway):
    for query in ("SELECT relname FROM pg_class LIMIT 1", "SELECT '1'::integer::text, typname FROM pg_type LIMIT 1"):
        assert all(isinstance(value, str) for value in (await gateway.query(None, query)).rows[0])


async def test_queries_and_plans_of_ours_run_nobody_s_functions(gateway: Gateway):
    rows = (await gateway.query(None, "SELECT o.*, ARRAY[o.id], ROW(o.note) FROM public.orders AS o LIMIT 1")).rows
    assert rows[0][0] == 1
    plan = await gateway.explain(None, "SELECT 1 FROM public.orders", options=ExplainOptions(analyze=True))
    assert plan.plan


async def test_operators_that_fit_better_are_refused(gateway: Gateway):
    with pytest.raises(UnsafeSql, match="operator"):
        await gateway.query(None, "SELECT 1::smallint + 1::bigint")


def test_a_path_keeps_its_order_and_its_quotes():
    assert order_path('"$user", public') == '"$user", public, pg_temp'
    assert order_path('pg_temp, app, "pg_catalog", "My, shop"') == 'app, "My, shop", pg_temp'
    assert order_path('""') == "pg_temp"
    assert order_path("") == "pg_temp"


@pytest.mark.parametrize("path", ["''", "'', public", "'\"\"', pg_temp"])
async def test_a_path_without_schemas_is_followed(server: Server, path: str):
    name = await server.create(TABLES)
    await server.run(f'ALTER DATABASE "{name}" SET search_path = {path}', name)
    async with Gateway.open([server.configure(name)]) as opened:
        assert (await opened.query(None, "SELECT count(*) FROM public.orders")).row_count == 1
    await server.drop(name)


@pytest.mark.usefixtures("anyio_backend")
async def test_a_name_means_the_same_for_new_connections_after_the_role_s_path_has_changed(server: Server):
    name = await server.create(
        "CREATE SCHEMA a; CREATE TABLE a.t AS SELECT 'a' AS x; CREATE SCHEMA b; CREATE TABLE b.t AS SELECT 'b' AS x"
    )
    await server.run(f'ALTER DATABASE "{name}" SET search_path = a, b')
    async with Gateway.open([server.configure(name)]) as gateway:
        for _ in range(2):
            assert (await gateway.query(None, "SELECT x FROM t")).rows == [["a"]]
            assert (await gateway.sample(None, "t")).rows == [["a"]]
            await server.run(
                f'ALTER DATABASE "{name}" SET search_path = b, a;'
                f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"
            )
    await server.drop(name)


APART = {
    "citext": ("'Ada'", "x = 'ADA' AND x IN ('ada')"),
    "vector": ("'[1,2]'", "x <-> '[1,3]' < 2 AND x = '[1,2]'::vector"),
}
"""By extension, a value of its type and a condition that holds only by its own operators."""
AROUND = {
    "nothing": "",
    "a function": "CREATE FUNCTION apart.hook() RETURNS int LANGUAGE sql AS 'SELECT 1'",
    "defaults": "ALTER DEFAULT PRIVILEGES IN SCHEMA apart GRANT SELECT ON TABLES TO public",
}


async def with_extensions(server: Server, around: str) -> tuple[str, list[str]]:
    """Return a database with those extensions that the server has in a schema, and their names."""
    name = await server.create(f"CREATE SCHEMA apart; CREATE SCHEMA app; {around}")
    connection = await asyncpg.connect(server.address(name))
    found = await connection.fetch("SELECT name FROM pg_available_extensions WHERE name = ANY ($1)", list(APART))
    extensions = [record["name"] for record in found]
    for extension in extensions:
        await connection.execute(f"CREATE EXTENSION {extension} SCHEMA apart")
    await connection.close()
    if not extensions:
        pytest.skip("the server has none of the extensions")
    return name, extensions


@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
async def test_operators_of_extensions_in_a_schema_of_their_own_are_found(server: Server, around: str):
    name, extensions = await with_extensions(server, around)
    for extension in extensions:
        value, _ = APART[extension]
        await server.run(f"CREATE TABLE app.{extension}s AS SELECT {value}::apart.{extension} AS x", name)
    async with Gateway.open([server.configure(name, schemas=("app",))]) as opened:
        for extension in extensions:
            sql = f"SELECT count(*) FROM app.{extension}s WHERE {APART[extension][1]}"
            assert (await opened.query(None, sql)).rows == [[1]]
        assert (await opened.query(None, "SHOW search_path")).rows == [["app, apart, pg_temp"]]
    await server.drop(name)


HELD = {
    "a table": "CREATE TABLE apart.hidden (id int)",
    "a type": "CREATE TYPE apart.hidden AS ENUM ('x')",
    "a collation": 'CREATE COLLATION apart.hidden FROM "C"',
    "a configuration": "CREATE TEXT SEARCH CONFIGURATION apart.hidden (COPY = pg_catalog.english)",
}


@pytest.mark.parametrize("held", HELD.values(), ids=HELD)
async def test_no_name_is_found_beside_extensions_in_a_schema_with_other_things(
    server: Server, held: str, caplog: pytest.LogCaptureFixture
):
    name, _ = await with_extensions(server, held)
    async with Gateway.open([server.configure(name, schemas=("app",))]) as opened:
        assert (await opened.query(None, "SHOW search_path")).rows == [["app, pg_temp"]]
    assert f"database {name}: schemas leaves out apart" in caplog.text
    await server.drop(name)


OF_TEXT = """
CREATE TYPE apart.folded;
CREATE FUNCTION apart.folded_in(cstring) RETURNS apart.folded LANGUAGE internal IMMUTABLE STRICT AS 'textin';
CREATE FUNCTION apart.folded_out(apart.folded) RETURNS cstring LANGUAGE internal IMMUTABLE STRICT AS 'textout';
CREATE TYPE apart.folded (INPUT = apart.folded_in, OUTPUT = apart.folded_out, LIKE = text, CATEGORY = 'S');
CREATE CAST (apart.folded AS text) WITHOUT FUNCTION AS IMPLICIT;
CREATE FUNCTION apart.is_equal(apart.folded, apart.folded) RETURNS bool LANGUAGE sql IMMUTABLE
    AS 'SELECT lower($1::text) = lower($2::text)';
CREATE OPERATOR apart.= (LEFTARG = apart.folded, RIGHTARG = apart.folded, FUNCTION = apart.is_equal);
"""
"""A type that is made of text as citext is."""
COLUMNS = {
    "a column": "CREATE TABLE app.people (email apart.folded)",
    "a domain": "CREATE DOMAIN app.email AS apart.folded; CREATE TABLE app.people (email app.email)",
    "an array": "CREATE TABLE app.people (email apart.folded[])",
    "a view": "CREATE TABLE apart.all (email apart.folded); CREATE VIEW app.people AS SELECT * FROM apart.all",
    "a field": "CREATE TYPE app.person AS (email apart.folded); CREATE TABLE app.people (email app.person)",
    "a row": "CREATE TABLE apart.all (email apart.folded); CREATE TABLE app.people (email apart.all[])",
    "a range": "CREATE TYPE app.emails AS RANGE (SUBTYPE = apart.folded, SUBTYPE_OPCLASS = pg_catalog.text_ops);"
    "CREATE TABLE app.people (email app.emails)",
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
async def test_no_column_compares_as_another_type_because_its_schema_is_left_out(server: Server, column: str):
    name, _ = await with_extensions(server, f"{OF_TEXT}; {column}")
    async with Gateway.open([server.configure(name, schemas=("app",))]) as opened:
        with pytest.raises(
            ConnectionFailed, match=r"the column app\.people\.email would not compare as its type folded does"
        ):
            await opened.query(None, "SELECT 1")
    async with Gateway.open([server.configure(name, schemas=("app", "apart"))]) as opened:
        assert (await opened.query(None, "SELECT 1")).rows == [[1]]
    await server.drop(name)


LATER = {
    "a table": ("", COLUMNS["a column"]),
    "a type of a column": (
        "CREATE TABLE app.people (email text)",
        "ALTER TABLE app.people ALTER email TYPE apart.folded",
    ),
    "a view": ("CREATE TABLE apart.all (email apart.folded)", "CREATE VIEW app.people AS SELECT * FROM apart.all"),
    "a schema that moves": (
        f"{COLUMNS['a column']}; ALTER SCHEMA apart RENAME TO app2",
        "ALTER SCHEMA app2 RENAME TO x",
    ),
}


@pytest.mark.parametrize(("before", "after"), LATER.values(), ids=LATER)
async def test_no_column_compares_as_another_type_after_a_change(server: Server, before: str, after: str):
    name = await server.create(f"CREATE SCHEMA apart; CREATE SCHEMA app; {OF_TEXT}; {before}")
    async with Gateway.open([server.configure(name, schemas=("app", "app2"), catalog_ttl=0.0)]) as opened:
        assert (await opened.query(None, "SELECT 1")).rows == [[1]]
        await server.run(after, name)
        with pytest.raises(ConnectionFailed, match=r"the column app\.people\.email would not compare"):
            await opened.query(None, "SELECT 1")
        await server.run("DROP SCHEMA app CASCADE; CREATE SCHEMA app", name)
        assert (await opened.query(None, "SELECT 1")).rows == [[1]]
    await server.drop(name)


MEMBERS = "; ".join(
    f"ALTER EXTENSION plpgsql ADD {member}"
    for member in ("TYPE apart.folded", "OPERATOR apart.= (apart.folded, apart.folded)", "CAST (apart.folded AS text)")
)


@pytest.mark.parametrize("configured", [{"schemas": ("app",)}, {"schema": "app"}], ids=["schemas", "schema"])
async def test_operators_of_an_extension_that_moves_are_found_in_its_new_schema(server: Server, configured):
    setup = f"CREATE SCHEMA apart; CREATE SCHEMA app; {OF_TEXT}; {MEMBERS}; {COLUMNS['a column']}"
    name = await server.create(setup)
    async with Gateway.open([server.configure(name, catalog_ttl=0.0, **configured)]) as opened:
        before = (await opened.query(None, "SHOW search_path")).rows
        assert "apart" in before[0][0]
        told = await opened.database().inspector.fingerprint()
        await server.run("ALTER SCHEMA apart RENAME TO moved", name)
        assert (await opened.query(None, "SHOW search_path")).rows == [[before[0][0].replace("apart", "moved")]]
        assert await opened.database().inspector.fingerprint() != told
    await server.drop(name)


@pytest.mark.usefixtures("anyio_backend")
async def test_a_value_compares_by_its_extension_after_that_has_moved(server: Server):
    name, extensions = await with_extensions(server, "")
    if "citext" not in extensions:
        pytest.skip("the server has no citext")
    await server.run("CREATE TABLE app.people AS SELECT 'Ada'::apart.citext AS email", name)
    async with Gateway.open([server.configure(name, schemas=("app",), catalog_ttl=0.0)]) as opened:
        for schema in ("apart", "public", "apart"):
            await server.run(f"ALTER EXTENSION citext SET SCHEMA {schema}", name)
            rows = (await opened.query(None, "SELECT count(*) FROM app.people WHERE email = 'ADA'")).rows
            assert rows == [[1]]
    await server.drop(name)


ROLE = """
DO $$ BEGIN CREATE ROLE of_app LOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$;
GRANT USAGE ON SCHEMA app TO of_app;
"""


@pytest.mark.parametrize("schema", ["apart", '"My Schema"', '"say ""hi"""'])
@pytest.mark.parametrize("configured", [{"schemas": ("app",)}, {"schema": "app"}], ids=["schemas", "schema"])
async def test_a_column_whose_operators_the_role_may_not_use_compares_as_no_other_type(server, schema, configured):
    setup = f"CREATE SCHEMA apart; CREATE SCHEMA app; {OF_TEXT}; {COLUMNS['a column']}; {ROLE}"
    name = await server.create(setup if schema == "apart" else f"{setup}; ALTER SCHEMA apart RENAME TO {schema}")
    shop = replace(server.configure(name, **configured), user="of_app")
    async with Gateway.open([shop]) as opened:
        with pytest.raises(ConnectionFailed, match=r"the column app\.people\.email would not compare"):
            await opened.query(None, "SELECT 1")
    await server.run(f"GRANT USAGE ON SCHEMA {schema} TO of_app", name)
    async with Gateway.open([replace(shop, schemas=("app", schema))]) as opened:
        assert (await opened.query(None, "SELECT 1")).rows == [[1]]
    await server.drop(name)


@pytest.mark.parametrize("schema", ["Apart", "My Schema"])
async def test_no_schema_is_left_out_unseen_because_its_name_is_odd(server: Server, schema: str):
    name = await server.create(
        f"CREATE SCHEMA apart; CREATE SCHEMA app; {OF_TEXT}; {COLUMNS['a column']};"
        f'ALTER SCHEMA apart RENAME TO "{schema}"'
    )
    async with Gateway.open([server.configure(name, schemas=("app",))]) as opened:
        with pytest.raises(ConnectionFailed, match="would not compare"):
            await opened.query(None, "SELECT 1")
    await server.drop(name)


@pytest.mark.parametrize(
    ("stored", "written"), [("app", "APP"), ("app", '"app"'), ("My Schema", "My Schema"), ("My Schema", '"My Schema"')]
)
async def test_names_and_operators_are_found_in_a_schema_however_the_configuration_writes_it(server, stored, written):
    name = await server.create(
        f"CREATE SCHEMA apart; {OF_TEXT}; CREATE TABLE apart.emails (email apart.folded);"
        f"CREATE TABLE apart.people AS SELECT 'Ada' AS name; ALTER SCHEMA apart RENAME TO \"{stored}\""
    )
    async with Gateway.open([server.configure(name, schemas=(written,))]) as opened:
        assert (await opened.query(None, "SELECT name FROM people")).rows == [["Ada"]]
        assert (await opened.query(None, f'SELECT name FROM "{stored}".people')).rows == [["Ada"]]
    await server.drop(name)
