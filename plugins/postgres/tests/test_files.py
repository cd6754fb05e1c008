"""No text that a caller gives a function makes the server open the file that the text names."""

import contextlib
import ctypes
import os
import sys
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from pathlib import Path

import asyncpg
import pytest
from dragoman import DragomanError, Gateway
from dragoman_postgres.rules import load_allowed, rules
from dragoman_postgres.rules.policy import read_policy
from dragoman_postgres.testing import Server

OPENED, READ = 0x20, 0x1
# Ways to say a file to whatever reads a text: a name, a projection, a document.
WAYS = (
    "{file}",
    "file://{file}",
    "+init={file}:x",
    "+proj=longlat +ellps=GRS80 +nadgrids={file} +no_defs",
    "+proj=longlat +ellps=GRS80 +geoidgrids={file} +no_defs +type=crs",
    "+proj=pipeline +step +proj=hgridshift +grids={file}",
    "+proj=pipeline +step +proj=tinshift +file={file}",
    "+proj=pipeline +step +proj=defmodel +model={file}",
    '<!DOCTYPE a [<!ENTITY e SYSTEM "file://{file}">]><a>&e;</a>',
    '<!DOCTYPE a SYSTEM "{file}"><a>1</a>',
    '<a xmlns:i="http://www.w3.org/2001/XInclude"><i:include href="{file}"/></a>',
    '<gml:Point xmlns:gml="http://www.opengis.net/gml" srsName="+init={file}:x"><gml:pos>1 2</gml:pos></gml:Point>',
    '{{"type": "Point", "coordinates": [1, 2], "crs": {{"type": "name", "properties": {{"name": "+init={file}:x"}}}}}}',
)
TEXTS = frozenset("text xml json jsonb name varchar bpchar citext hstore tsvector tsquery jsonpath".split())
OTHERS = {
    "int4": "1",
    "int8": "1::bigint",
    "float8": "1.5::float8",
    "bool": "true",
    "regconfig": "'simple'::regconfig",
    "geometry": "'SRID=4326;POINT(10 50)'::geometry",
    "geography": "'POINT(10 50)'::geography",
}
FUNCTIONS = """
SELECT p.proname::text AS name, quote_ident(n.nspname) || '.' || quote_ident(p.proname) AS called,
  ARRAY(SELECT typname::text FROM unnest(p.proargtypes) WITH ORDINALITY AS a (oid, place) JOIN pg_type t USING (oid)
        ORDER BY place) AS types
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE p.prokind IN ('f', 'a') AND p.proname = ANY ($1::text[]) AND p.proargtypes::oid[] && $2::oid[]
"""
EACH = """
DO $do$ DECLARE each text; BEGIN
  FOREACH each IN ARRAY ARRAY[{calls}]::text[] LOOP
    BEGIN EXECUTE each; EXCEPTION WHEN OTHERS THEN NULL; END;
  END LOOP;
END $do$
"""


@dataclass
class Watched:
    """A file of the server, and whoever opens it."""

    file: str
    handle: int
    connection: asyncpg.Connection
    gateway: Gateway

    def was_opened(self) -> bool:
        """Whether anybody has opened the file since the last call."""
        with contextlib.suppress(BlockingIOError):
            return bool(os.read(self.handle, 65536))
        return False

    async def calls(self, names: frozenset[str]) -> list[tuple[str, list[str]]]:
        """Return the functions of these names that take a text, each with calls that name the file."""
        texts = await self.connection.fetchval("SELECT array_agg(oid) FROM pg_type WHERE typname = ANY ($1)", [*TEXTS])
        rows = await self.connection.fetch(FUNCTIONS, sorted(names), texts)
        return [(row["called"], list(self._spell(row["called"], row["types"]))) for row in rows]

    def _spell(self, called: str, types: list[str]) -> Iterator[str]:
        for place, type_ in enumerate(types):
            for way in WAYS if type_ in TEXTS else ():
                others = [OTHERS.get(other, "NULL") for other in types]
                others[place] = "'" + way.format(file=self.file).replace("'", "''") + "'"
                yield f"SELECT * FROM (SELECT {called}({', '.join(others)})) AS q"


@pytest.fixture(scope="module")
async def watched(server: Server, database_name: str) -> AsyncGenerator[Watched]:
    """A file beside the server's data, in a database with every well-known extension that the server has."""
    if sys.platform != "linux":
        pytest.skip("only Linux tells who opens a file")
    connection = await asyncpg.connect(server.address(database_name), statement_cache_size=0)
    there = {row[0] for row in await connection.fetch("SELECT name FROM pg_available_extensions")}
    for name in sorted(there & {*read_policy()["extensions"]["names"].split(), "postgis"}):
        await connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{name}" CASCADE')
    file = f"{await connection.fetchval('SHOW data_directory')}/opened_{database_name}"
    await connection.execute(f"COPY (VALUES ('<x>'), ('+proj=longlat'), ('<>')) TO '{file}'")
    await connection.execute("SET default_transaction_read_only = on; SET statement_timeout = '3s'")
    library = ctypes.CDLL(None, use_errno=True)
    handle = library.inotify_init1(os.O_NONBLOCK)
    if library.inotify_add_watch(handle, os.fsencode(file), OPENED | READ) < 0:
        pytest.skip("the server's files are elsewhere, or not for us")
    async with Gateway.open([server.configure(database_name)]) as gateway:
        yield Watched(file, handle, connection, gateway)
    os.close(handle)
    Path(file).unlink(missing_ok=True)
    await connection.close()


async def test_who_opens_the_file_is_seen(watched: Watched):
    assert not watched.was_opened()
    await watched.connection.execute(f"SELECT pg_read_file('{watched.file}')")
    assert watched.was_opened()


@pytest.mark.timeout(600)
async def test_no_function_that_queries_may_call_opens_a_file_that_a_text_names(watched: Watched):
    """Those that the lists allow with any arguments, as the superuser that the server's own wall would let through."""
    allowed = load_allowed()
    opening: list[str] = []
    found = await watched.calls((allowed.functions | allowed.extension_functions) - _formed())
    assert len(found) > 100
    for called, calls in found:
        quoted = ", ".join("'" + call.replace("'", "''") + "'" for call in calls)
        with contextlib.suppress(asyncpg.QueryCanceledError):
            await watched.connection.execute(EACH.format(calls=quoted))
        opening += [called] * watched.was_opened()
    assert opening == []


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_no_function_that_is_allowed_with_some_arguments_opens_a_file_that_a_text_names(watched: Watched):
    opening: list[str] = []
    for _, calls in await watched.calls(_formed()):
        for call in calls:
            with contextlib.suppress(DragomanError):
                await watched.gateway.query(None, call)
            opening += [call] * watched.was_opened()
    assert opening == []


def _formed() -> frozenset[str]:
    return frozenset(name.rpartition(".")[2] for name in rules().forms)
