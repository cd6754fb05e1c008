"""What a statement may not write while rasters of PostGIS may have their pixels outside the database.

Such a raster names a file or an address that holds its pixels. A session cannot always switch that off: not behind a
pooler, nor where the server's environment allows it and the role is not a superuser. Then no statement may make a
raster of a text. Those in tables are the database's own.
"""

from __future__ import annotations

import re
from typing import Any

import asyncpg
from dragoman import ParsedStatement, UnsafeSql

TEXT = "raster.text"
"""Reads as a call where a literal holds what may be a raster's text."""
_HEX = re.compile(r"0[01]0000[0-9a-f]{116}", re.IGNORECASE)
_QUOTES = str.maketrans("", "", '"\\')
_POPULATING = re.compile(r"(jsonb?_)?populate_record")
# A function in C, which only superusers make: it loads the library, which then says what the setting is.
_LIBRARY = """
SELECT format('%I.%I', n.nspname, p.proname) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
JOIN pg_language l ON l.oid = p.prolang
WHERE p.proname = 'postgis_raster_lib_version' AND p.pronargs = 0 AND l.lanname = 'c'
"""
_HOLDING = """
WITH RECURSIVE holding AS (
  SELECT 'pg_type'::regclass::oid AS class, t.oid FROM pg_type t WHERE t.typname = 'raster' AND t.oid >= 16384
  UNION SELECT larger.class, larger.oid FROM holding h CROSS JOIN LATERAL (
    SELECT d.classid AS class, d.objid AS oid FROM pg_depend d WHERE d.refclassid = h.class AND d.refobjid = h.oid
      AND d.classid IN ('pg_type'::regclass, 'pg_class'::regclass)
    UNION ALL SELECT 'pg_type'::regclass, c.reltype FROM pg_class c
      WHERE h.class = 'pg_class'::regclass AND c.oid = h.oid AND c.reltype <> 0
  ) AS larger
)
SELECT t.typname FROM holding h JOIN pg_type t ON t.oid = h.oid WHERE h.class = 'pg_type'::regclass
"""


def may_be_raster(text: str) -> bool:
    """Return whether a literal holds what may be a raster's text, alone or in an array, a row or JSON."""
    return _HEX.search(text.translate(_QUOTES)) is not None


async def find_open_rasters(connection: Any) -> frozenset[str]:
    """Return the types that hold rasters, if rasters may have their pixels outside the database in this session."""
    library = await connection.fetchval(_LIBRARY)
    if library is None:
        return frozenset()
    await connection.execute("SAVEPOINT rasters")
    try:
        await connection.fetchval(f"SELECT {library}()")
    except asyncpg.PostgresError:  # the library is missing, and with it all that reads rasters
        await connection.execute("ROLLBACK TO SAVEPOINT rasters")
        return frozenset()
    if await connection.fetchval("SHOW postgis.enable_outdb_rasters") != "on":
        return frozenset()
    return frozenset(row["typname"] for row in await connection.fetch(_HOLDING))


def check_rasters(parsed: ParsedStatement, types: frozenset[str]) -> None:
    """Raise `UnsafeSql` for a statement that may make a raster of a text. `types`: those that hold rasters."""
    called = {call.name for call in parsed.calls if call.kind != "attribute"}
    named = called | {each.name for each in (*parsed.types, *parsed.operators)}
    if types and (named & (types | {TEXT, "#="}) or any(map(_POPULATING.match, called))):
        raise UnsafeSql(
            "A raster that is written in a statement may name any picture of the server as its pixels here.",
            suggestion="Read rasters from tables. A superuser can switch that off, with ALTER DATABASE name SET"
            " postgis.enable_outdb_rasters = off, and dragoman's administrator can allow it with outdb_rasters.",
        )
