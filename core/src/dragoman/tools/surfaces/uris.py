"""Addresses of resources: `scheme://part/part`, each part percent-encoded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import quote, unquote

from dragoman.tools.surfaces.items import SQL, Resource, Template

MOST = 2000
"""The most characters of an address."""
_VARIABLE = re.compile(r"\{(\w+)\}")

DATABASES = Resource(
    uri="databases://list",
    name="databases",
    description="The databases, with the numbers of their tables and views.",
    tags=("database",),
)
SCHEMA = Template(
    uri="schema://{database}",
    name="schema",
    description="A database's tables as annotated SQL: keys, enums, indexes, values, joins.",
    mime=SQL,
    tags=("database", "schema"),
)
TABLE = Template(
    uri="schema://{database}/{schema}/{table}",
    name="table",
    description="Everything known of one table or view.",
    tags=("database", "schema"),
)
RESULT = Template(
    uri="dragoman://results/{name}",
    name="result",
    description="The first rows of a kept result.",
    tags=("result",),
)
EXPORT = Template(
    uri="dragoman://results/{name}/{format}",
    name="export",
    description="A file that export_result wrote.",
    mime="application/octet-stream",
    tags=("result",),
)
QUERY = Template(
    uri="queries://{name}",
    name="query",
    description="A saved query: its SQL and parameters.",
    mime=SQL,
    tags=("query",),
)
REPORT = Template(
    uri="stat://{database}/{what}",
    name="report",
    description="A report of a database's server about itself.",
    tags=("database", "server"),
)
TEMPLATES = (SCHEMA, TABLE, RESULT, EXPORT, QUERY, REPORT)


def _pattern(template: Template) -> re.Pattern[str]:
    parts = enumerate(_VARIABLE.split(template.uri))
    return re.compile("".join(f"(?P<{part}>[^/?#]+)" if number % 2 else re.escape(part) for number, part in parts))


_PATTERNS = tuple((template, _pattern(template)) for template in TEMPLATES)


def expand(template: Template, **values: str) -> str:
    """Return the address of a template with these values."""
    return _VARIABLE.sub(lambda match: quote(values[match[1]], safe=""), template.uri)


def match(uri: str) -> tuple[Template | Resource, Mapping[str, str]] | None:
    """Return the kind of resource that an address means, and the values in it; None if it means none."""
    if len(uri) > MOST:
        return None
    if uri == DATABASES.uri:
        return DATABASES, {}
    for template, pattern in _PATTERNS:
        if found := pattern.fullmatch(uri):
            return template, {name: unquote(value) for name, value in found.groupdict().items()}
    return None


def database(uri: str) -> str:
    """Return the database whose schema an address means; empty if it means none."""
    found = match(uri)
    return found[1]["database"] if found is not None and found[0] in (SCHEMA, TABLE) else ""


def whole(uri: str) -> str:
    """Return the address of the schema that an address is a part of. Any other address stands for itself."""
    name = database(uri)
    return expand(SCHEMA, database=name) if name else uri
