"""Variables of other tools that name a database: used when nothing else is configured."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dragoman.config.sources import KeyPath, Layer

# Key of a database to the variables that may give it, the first one set wins: those of earlier PostgreSQL MCP servers,
# then libpq's. The driver reads libpq's others (PGPASSFILE, PGSSLROOTCERT, ...) by itself.
POSTGRES: dict[KeyPath, tuple[str, ...]] = {
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


def postgres_layer(environ: Mapping[str, str], folder: Path) -> Layer | None:
    """Return the database that PG_* or libpq's variables name, or None. PG_STATEMENT_TIMEOUT is in milliseconds."""
    used = {key: next((name for name in names if environ.get(name)), None) for key, names in POSTGRES.items()}
    if not any(used[key] for key in _NAMING):
        return None
    given = {key: environ[name] for key, name in used.items() if name}
    name = re.sub(r"[^a-z0-9_]", "_", given.get(("database",), "postgres").lower())
    values: dict[str, Any] = {"dialect": "postgres", "options": {}}
    names: dict[KeyPath, str] = {}
    for key, value in given.items():
        place = values if len(key) == 1 else values["options"]
        place[key[-1]] = _seconds(value) if key == ("timeout",) else value
        names["databases", name, *key] = used[key] or ""
    return Layer("environment", {"databases": {name: values}}, folder, names)


def _seconds(milliseconds: str) -> float | str:
    """What is not a number stays, so that the reader of the key complains."""
    try:
        return int(milliseconds) / 1000
    except ValueError:
        return milliseconds


_OTEL = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


def wants_telemetry(environ: Mapping[str, str] | None = None) -> bool:
    """Whether OpenTelemetry's variables name a collector and do not switch it off."""
    given = os.environ if environ is None else environ
    disabled = given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(given.get(name) for name in _OTEL)


def wants_hot_path(environ: Mapping[str, str] | None = None) -> bool:
    """Whether calls may take the short way past the MCP SDK: yes, unless DRAGOMAN_HOT_PATH is off, 0, no or false."""
    given = (os.environ if environ is None else environ).get("DRAGOMAN_HOT_PATH", "on")
    return given.strip().lower() not in ("off", "0", "no", "false")
