"""Shows the configuration to people, merged and with secrets masked. Also holds a starter file."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from dragoman.config.readers import is_collection, is_mapping
from dragoman.config.settings import Audit, Configuration
from dragoman.config.urls import as_url, split_url
from dragoman.model import Database, Secret

MASK = "***"
_SECRET_NAME = re.compile(
    r"pass|secret|token|credential|jwt|bearer|cookie|signature|authorization|(^|_)key($|_)|api_?key|sslkey",
    re.IGNORECASE,
)
_PASSWORD = re.compile(r"(://[^:/?#\s]*:)\S*@")
"""Matches a URL anywhere in a text: options may hold one, and only their plugin knows which."""

STARTER = """\
# dragoman: which databases agents may query. Every key is in docs/configuration.md.
# ${NAME} and ${NAME:-default} take values from the environment or from .env.

# default_database = "shop"            # the database of a call that names none

[server]
transport = "stdio"                    # or "http"
# host = "127.0.0.1"                   # to listen beyond this machine, set a token too
# port = 8080
# token = "${DRAGOMAN_TOKEN}"
# tools = "standard"                   # minimal, standard, full, or a list of tool names

[defaults]                             # settings for every database
max_rows = 10000                       # the most rows that an agent may ask for
default_rows = 1000                    # the rows it gets without asking for a number
timeout = 30                           # seconds of one statement

[databases.shop]
url = "sqlite:///shop.db"              # relative to this file; four slashes for an absolute path
description = "What the database holds, for agents"

# [databases.crm]
# url = "postgresql://reader:${CRM_PASSWORD}@db.example/crm?sslmode=verify-full"
# schemas = ["public", "sales"]        # agents see only these
"""


def show(configuration: Configuration) -> dict[str, Any]:
    """Return the configuration as JSON values, structured like a file, with every secret as `***`."""
    shown = {
        "source": str(configuration.source) if configuration.source else None,
        "default_database": configuration.default_database,
        "server": _plain(configuration.server),
        "audit": _audit(configuration.audit) if configuration.audit.path or configuration.audit.url else None,
        "model": _plain(configuration.model) if configuration.model else None,
        "results": _plain(configuration.results) if "results" in _sections(configuration) else None,
        "databases": {name: _database(database) for name, database in configuration.databases.items()},
        "policies": {name: _plain(options) for name, options in configuration.policies.items()},
        "sources": dict(configuration.sources),
        "warnings": list(configuration.warnings),
    }
    for key in configuration.secrets:
        _mask(shown, key.split("."))
    return {key: value for key, value in shown.items() if value not in (None, [], {})}


def _sections(configuration: Configuration) -> set[str]:
    """Return the sections in which some source set a value."""
    return {key.partition(".")[0] for key in configuration.sources}


def _mask(shown: dict[str, Any], path: Sequence[str]) -> None:
    """Mask the value at a path, whatever its key. A default is shown in every database."""
    head, *rest = path
    if head == "defaults":
        for database in shown["databases"].values():
            _mask(database, rest)
    elif rest and is_mapping(shown.get(head)):
        _mask(shown[head], rest)
    elif head in shown:
        shown[head] = MASK


def _database(database: Database) -> dict[str, Any]:
    shown = _plain(database)
    del shown["name"]
    if database.url:
        shown["url"] = mask_url(database.url.reveal())
    return {key: value for key, value in shown.items() if value not in (None, "", [], {}, False)}


def _audit(audit: Audit) -> dict[str, Any]:
    shown = _plain(audit)
    del shown["database"]
    if audit.url:
        shown["url"] = mask_url(audit.url.reveal())
    return {key: value for key, value in shown.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Secret):
        return MASK
    if isinstance(value, datetime):
        return value.isoformat()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if is_mapping(value):
        return {name: MASK if _SECRET_NAME.search(name) else _plain(each) for name, each in value.items()}
    if is_collection(value):
        return [_plain(each) for each in (sorted(value) if isinstance(value, frozenset) else value)]
    return _PASSWORD.sub(rf"\g<1>{MASK}@", str(value)) if isinstance(value, str | Path) else value


def mask_url(text: str) -> str:
    """Return a URL without its secrets: the password, and options with the name of a secret."""
    body, mark, query = as_url(text).partition("?")
    password = split_url(body).parts.get("password")
    if password is not None:
        head, at, tail = body.rpartition("@")
        body = re.sub(r"(://[^:]*:).*", rf"\g<1>{MASK}", head, flags=re.DOTALL) + at + tail
    pairs = (pair.partition("=") for pair in query.split("&"))
    return (
        body
        + mark
        + "&".join(name + sep + (MASK if _SECRET_NAME.search(name) else value) for name, sep, value in pairs)
    )
