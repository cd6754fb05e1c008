"""Where names without a catalog or a schema are looked for."""

from __future__ import annotations

from dataclasses import replace

from dragoman.catalog.names import parse_name
from dragoman.dialect import Capability, Dialect
from dragoman.model import Database


def placed(database: Database, dialect: Dialect) -> Database:
    """Return a database of a dialect with catalogs with its default catalog and schema apart; any other as it is.

    They come as `catalog/schema`, as a URL has them, or from the only entry of `schemas`.
    """
    if Capability.CATALOGS not in dialect.capabilities:
        return database
    catalog, _, schema = (database.database or "").partition("/")
    only = parse_name(database.schemas[0], dialect.lexicon) or () if len(database.schemas) == 1 else ()
    if len(only) == 2:
        catalog = catalog or only[0].text
    if only and (len(only) == 1 or only[0].names(catalog, dialect)):
        schema = schema or only[-1].text
    return replace(database, database=catalog or None, schema=database.schema or schema or None)
