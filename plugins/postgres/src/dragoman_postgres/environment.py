"""Variables of other PostgreSQL tools that name a database. dragoman reads them if nothing else is configured."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from dragoman import EnvironmentDatabase

# For each key of a database, the variables that may set it; the first one that is set wins. First those of earlier
# PostgreSQL MCP servers, then libpq's. The driver reads libpq's others (PGPASSFILE, PGSSLROOTCERT, ...) by itself.
VARIABLES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("host",): ("PG_HOST", "PGHOST"),
    ("port",): ("PG_PORT", "PGPORT"),
    ("database",): ("PG_DATABASE", "PGDATABASE"),
    ("user",): ("PG_USER", "PGUSER"),
    ("password",): ("PG_PASSWORD", "PGPASSWORD"),
    ("schema",): ("PG_DEFAULT_SCHEMA",),
    ("pool_size",): ("PG_POOL_SIZE",),
    ("timeout",): ("PG_STATEMENT_TIMEOUT",),
    ("options", "service"): ("PGSERVICE",),
    ("options", "sslmode"): ("PGSSLMODE",),
    ("options", "application_name"): ("PGAPPNAME",),
}
_NAMING = (("host",), ("database",), ("options", "service"))


def find_database(environ: Mapping[str, str]) -> EnvironmentDatabase | None:
    """Return the database that PG_* or libpq's variables name, or None. PG_STATEMENT_TIMEOUT is in milliseconds."""
    names = {key: next((name for name in names if environ.get(name)), None) for key, names in VARIABLES.items()}
    if not any(names[key] for key in _NAMING):
        return None
    used = {key: name for key, name in names.items() if name}
    values: dict[str, Any] = {"dialect": "postgres", "options": {}}
    for key, name in used.items():
        place = values if len(key) == 1 else values["options"]
        place[key[-1]] = _seconds(environ[name]) if key == ("timeout",) else environ[name]
    database = re.sub(r"[^a-z0-9_]", "_", values.get("database", "postgres").lower())
    return EnvironmentDatabase(name=database, values=values, variables=used)


def _seconds(milliseconds: str) -> float | str:
    """Return seconds. A value that is not a number is returned unchanged, so that the core refuses it."""
    try:
        return int(milliseconds) / 1000
    except ValueError:
        return milliseconds
