"""Where names without a schema are looked up. The workers set it, and the inspector reports it."""

from __future__ import annotations

from collections.abc import Iterable

from dragoman import Database
from dragoman.words import lower_ascii

MAIN = "main"


def home_of(database: Database) -> str:
    """Return the schema where such names are looked up first: the configured, or only open one, else main."""
    if database.schema:
        return _unquote(database.schema)
    return _unquote(database.schemas[0]) if len(database.schemas) == 1 else MAIN


def open_schemas(database: Database) -> tuple[str, ...] | None:
    """Return the schemas that the configuration opens. None: all."""
    return tuple(map(_unquote, database.schemas)) or None


def in_order(names: Iterable[str], home: str, only: Iterable[str] | None) -> list[str]:
    """Return the schemas in the order in which names are looked up: `home`, main, the others. DuckDB ignores case."""
    opened = None if only is None else set(map(lower_ascii, only))
    found = [name for name in names if opened is None or lower_ascii(name) in opened]
    return sorted(found, key=lambda name: (lower_ascii(name) != lower_ascii(home), name != MAIN, name))


def _unquote(name: str) -> str:
    """Return the name of a schema as the configuration writes it, without quotes."""
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
