"""Rasters of PostGIS read no file outside the database, whatever the server allows."""

from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import pytest
from dragoman import DragomanError, Gateway, ParameterError, Secret, UnsafeSql
from dragoman.testing.asking import value_of
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.testing import Server

# A raster of 4 by 4 pixels that are in a file, as a caller writes it: PostGIS' binary format, in hexadecimal digits.
HEAD = "0100000100000000000000F03F000000000000F0BF" + "00" * 32 + "E6100000" + "04000400" + "C40000"
PICTURE = "ST_AsTIFF(ST_AddBand(ST_MakeEmptyRaster(4, 4, 0, 0, 1, -1, 0, 0, 4326), '8BUI'::text, 77, 0))"
READING = ("SELECT ST_AsBinary('{}', true)", "SELECT ST_AsText(ST_Polygon('{}'))")
ALLOWS = """
ALTER DATABASE "{0}" SET postgis.enable_outdb_rasters = on;
ALTER DATABASE "{0}" SET postgis.gdal_enabled_drivers = 'ENABLE_ALL';
"""


@pytest.fixture(scope="module")
async def raster(server: Server, database_name: str) -> AsyncGenerator[str]:
    """A raster whose pixels are in a file beside the server's data, in a database that allows it."""
    connection = await asyncpg.connect(server.address(database_name))
    if not await connection.fetchval(
        "SELECT EXISTS (SELECT FROM pg_available_extensions WHERE name = 'postgis_raster')"
    ):
        await connection.close()
        pytest.skip("this server has no rasters")
    await connection.execute("CREATE EXTENSION postgis_raster CASCADE; SET postgis.gdal_enabled_drivers = 'ENABLE_ALL'")
    file = f"{await connection.fetchval('SHOW data_directory')}/{database_name}.tif"
    number = await connection.fetchval(f"SELECT lo_from_bytea(0, {PICTURE})")
    await connection.execute(f"SELECT lo_export({number}, '{file}'); SELECT lo_unlink({number})")
    await connection.execute(ALLOWS.format(database_name))
    await connection.close()
    yield HEAD + file.encode().hex() + "00"
    Path(file).unlink(missing_ok=True)


@pytest.fixture
async def role(server: Server, database_name: str, raster: str) -> AsyncGenerator[str]:
    """A role that may read."""
    role = f"reader_{database_name}"
    await server.run(f"CREATE ROLE {role} LOGIN PASSWORD 'x'", database_name)
    yield role
    await server.run(f"DROP ROLE {role}", database_name)


async def test_a_raster_that_a_caller_writes_reads_no_file(server: Server, database_name: str, role: str, raster: str):
    for login in ({}, {"user": role, "password": Secret("x")}):
        async with Gateway.open([server.configure(database_name, **login)]) as gateway:
            for query in READING:
                with pytest.raises(DragomanError, match=r"Access to offline bands disabled|may name any picture"):
                    await gateway.query(None, query.format(raster))


async def test_rasters_outside_the_database_are_read_where_the_configuration_says_so(
    server: Server, database_name: str, raster: str
):
    open_ = server.configure(database_name, options={"outdb_rasters": True})
    async with Gateway.open([open_]) as gateway:
        for query in READING:
            assert (await gateway.query(None, query.format(raster))).rows


async def test_a_role_that_may_not_switch_them_off_still_connects(
    server: Server, database_name: str, role: str, raster: str
):
    """Where every session loads the library, the setting is the superuser's."""
    loads = f'ALTER DATABASE "{database_name}" {{}} session_preload_libraries'
    await server.run(loads.format("SET") + " = 'postgis_raster-3'")
    async with Gateway.open([server.configure(database_name, user=role, password=Secret("x"))]) as gateway:
        assert (await gateway.query(None, "SELECT 1")).rows
    await server.run(loads.format("RESET"))


WRITTEN = (
    "SELECT ST_Polygon(E'{escaped}')",
    "SELECT ST_Polygon('{start}'\n'{rest}')",
    "SELECT ST_Polygon($$ {{{raster}}} $$::text::raster)",
    "SELECT ST_Polygon(('{start}' || '{rest}')::public.raster)",
    "SELECT ST_Polygon(('{start}' || '{rest}'::text).raster)",
    "SELECT ST_Polygon(x.raster) FROM unnest(ARRAY['{start}' || '{rest}']) AS x",
    "SELECT ST_Polygon((ARRAY[rast, '{raster}'])[2]) FROM held",
    "SELECT ST_Polygon(coalesce(rast, '{raster}')) FROM held",
    "SELECT ST_Polygon(rast) FROM (SELECT rast FROM held UNION ALL SELECT '{raster}') AS x",
    "SELECT ST_Polygon(rs[1]) FROM (SELECT array_agg(rast) AS rs FROM held UNION ALL SELECT '{{0\\{cut}}}') AS x",
    "SELECT ST_Polygon((('(,' || '{start}' || '{rest})')::held).rast)",
    "SELECT ST_Polygon(('{start}' || '{rest}')::worn)",
    "SELECT ST_Polygon(rast) FROM json_to_record(json_build_object('rast', '{start}' || '{rest}')) AS x (rast raster)",
    "SELECT ST_Polygon((json_populate_record(h, json_build_object('rast', '{start}' || '{rest}'))).rast) FROM held h",
)
"""Statements that make a raster of a text."""
ORDINARY = (
    "SELECT ST_AsText(ST_Polygon(rast)), ST_SRID(rast), h.rast FROM held AS h",
    "SELECT ST_Intersects(ST_MakePoint(1, 2), 'POLYGON((0 0,3 0,3 3,0 3,0 0))')",
    "SELECT ST_AsText('0101000020E6100000000000000000F03F0000000000000040'::geometry)",
)


@pytest.fixture
async def held(server: Server, database_name: str, role: str) -> AsyncGenerator[None]:
    """A table of rasters that are in the database."""
    await server.run(
        "CREATE TABLE held (id int, rast raster); CREATE DOMAIN worn AS raster;"
        "INSERT INTO held VALUES (1, ST_AddBand(ST_MakeEmptyRaster(2, 2, 0, 0, 1, -1, 0, 0, 4326), '8BUI'::text, 7));"
        f"GRANT SELECT ON held TO {role}",
        database_name,
    )
    yield
    await server.run("DROP TABLE held; DROP DOMAIN worn", database_name)


@pytest.mark.usefixtures("held")
async def test_where_sessions_do_not_switch_them_off_no_statement_makes_a_raster_of_a_text(
    server: Server, database_name: str, role: str, raster: str
):
    parts = {
        "raster": raster,
        "start": raster[:40],
        "rest": raster[40:],
        "cut": raster[1:],
        "escaped": "\\x30" + raster[1:],
    }
    login = {"user": role, "password": Secret("x"), "options": {"pgbouncer": True}}
    async with Gateway.open([server.configure(database_name, **login)]) as gateway:
        for query in (*(query.format(raster) for query in READING), *(query.format(**parts) for query in WRITTEN)):
            with pytest.raises(UnsafeSql, match="may name any picture"):
                await gateway.query(None, query)
        with pytest.raises(ParameterError):
            await gateway.query(None, "SELECT ST_AsText(ST_Polygon($1))", [raster])
        for query in ORDINARY:
            assert (await gateway.query(None, query)).rows


async def test_what_a_superuser_has_switched_off_stays_as_it_is(server: Server, database_name: str, role: str):
    """A setting that the role may not change would take its place, and would then be dropped for the server's own."""
    await server.run(f"ALTER ROLE {role} SET postgis.enable_outdb_rasters = off", database_name)
    executor = PostgresExecutor(server.configure(database_name, user=role, password=Secret("x"), pool_size=1))
    assert await value_of(executor, "SELECT postgis_raster_lib_version()")
    source = "SELECT source FROM pg_settings WHERE name = 'postgis.enable_outdb_rasters'"
    assert await value_of(executor, source) == "user"
    await executor.aclose()


ACTING = (
    "AddRasterConstraints('rasters', 'rast')",
    "UpdateRasterSRID('rasters', 'rast', 4326)",
    "ST_CreateOverview('rasters'::regclass, 'rast', 2)",
    "AddGeometryColumn('rasters', 'shape', 4326, 'POINT', 2)",
    "Populate_Geometry_Columns()",
)


@pytest.mark.usefixtures("raster")
async def test_what_changes_tables_is_refused_behind_a_view_too(server: Server, database_name: str):
    views = [f"CREATE VIEW acting_{place} AS SELECT {call} AS done" for place, call in enumerate(ACTING)]
    await server.run("; ".join(["CREATE TABLE rasters (rast raster)", *views]), database_name)
    async with Gateway.open([server.configure(database_name)]) as gateway:
        for place in range(len(ACTING)):
            with pytest.raises(UnsafeSql):
                await gateway.query(None, f"SELECT * FROM acting_{place}")
        assert (await gateway.query(None, "SELECT count(*) FROM rasters")).rows
