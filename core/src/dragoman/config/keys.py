"""Every key of a configuration, with its reader. A test compares the reference page with these tables."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from dragoman.config import readers
from dragoman.config.readers import Reader, Wrong
from dragoman.config.urls import name_dialect

SERVER: dict[str, Reader] = {
    "transport": readers.choice("stdio", "http"),
    "host": readers.text,
    "port": readers.whole(0, 65535),
    "tools": readers.tools,
    "result_format": readers.choice("both", "structured", "text"),
    "log_level": readers.choice("debug", "info", "warning", "error"),
    "log_format": readers.choice("json", "text"),
    "tls_cert": readers.path,
    "tls_key": readers.path,
    "watch": readers.boolean,
    "token": readers.closing(readers.secret),
    "tokens": readers.tables,
    "auth": readers.table,
    "trusted_proxies": readers.closing(readers.networks),
    "allowed_hosts": readers.texts,
    "allowed_origins": readers.texts,
    "max_concurrent": readers.whole(1),
    "workers": readers.whole(1, 64),
    "metrics": readers.boolean,
    "slow_query": readers.seconds(zero=True),
    "drain": readers.seconds(zero=True),
    "grace": readers.seconds(zero=True),
    "queries_dir": readers.text,
    "prompts_dir": readers.text,
    "state_dir": readers.text,
    "save_queries": readers.boolean,
    "results": readers.boolean,
}

STATIC_TOKEN: dict[str, Reader] = {
    "name": readers.text,
    "hash": readers.token_hash,
    "expires": readers.moment,
    "groups": readers.text_set,
}

AUDIT: dict[str, Reader] = {
    "path": readers.path,
    "url": readers.closing(readers.secret),
    "text": readers.choice("full", "hash", "off"),
    "values": readers.boolean,
    "required": readers.boolean,
}

AUTH: dict[str, Reader] = {
    "issuer": readers.http_url,
    "audience": readers.closing(readers.texts),
    "scopes": readers.closing(readers.scopes),
    "implied_scopes": readers.scopes_by_scope,
    "jwks_url": readers.http_url,
    "introspection_url": readers.http_url,
    "client_id": readers.text,
    "client_secret": readers.secret,
    "user_claim": readers.text,
    "groups_claim": readers.text,
}


def _named_texts(value: Any) -> Mapping[str, str]:
    return MappingProxyType({name: readers.text(each) for name, each in readers.table(value).items()})


def _dialect(value: Any) -> str:
    """Accept any text."""
    return name_dialect(readers.text(value))


# The place of a database. A URL from a stronger source replaces all of these.
CONNECTION: dict[str, Reader] = {
    "url": readers.secret,
    "dialect": _dialect,
    "host": readers.text,
    "port": readers.whole(1, 65535),
    "database": readers.text,
    "schema": readers.text,
    "user": readers.text,
    "password": readers.secret,
    "options": readers.table,
}

DATABASE: dict[str, Reader] = {
    **CONNECTION,
    "description": readers.text,
    "schemas": readers.closing(readers.texts),
    "allow_functions": readers.text_set,
    "allow_relations": readers.text_set,
    "allow_foreign_tables": readers.boolean,
    "accept_unenforced": readers.boolean,
    "keys": readers.tables,
    "max_rows": readers.whole(1),
    "default_rows": readers.whole(1),
    "max_bytes": readers.whole(1),
    "timeout": readers.seconds(),
    "pool_size": readers.whole(1),
    "catalog_ttl": readers.seconds(zero=True),
    "knowledge": readers.table,
    "identity": readers.choice("gateway", "role", "session", "user"),
    "database_roles": _named_texts,
    "session": _named_texts,
    "act_as": readers.text,
}

# A default URL would give every database the same place.
DEFAULTS: dict[str, Reader] = {name: read for name, read in DATABASE.items() if name != "url"}

RESULTS: dict[str, Reader] = {
    "dir": readers.text,
    "max_rows": readers.whole(1),
    "max_bytes": readers.whole(1),
    "max_bytes_per_caller": readers.whole(1),
    "ttl": readers.seconds(),
    "timeout": readers.seconds(),
    "reuse": readers.seconds(zero=True),
}

MODEL: dict[str, Reader] = {
    "name": readers.text,
    "base_url": readers.http_url,
    "api_key": readers.secret,
    "max_tokens": readers.whole(200),  # no answer to a question is shorter, and none is asked for
    "max_attempts": readers.whole(1, 5),
    "send": readers.choice("schema", "values", "rows"),
    "check": readers.choice("empty", "always"),
    "candidates": readers.whole(1, 9),
    "timeout": readers.seconds(),
    "max_concurrent": readers.whole(1),
    "max_plan_cost": readers.number,
    "max_tokens_per_call": readers.whole(200),
    "max_tokens_per_day": readers.whole(200),
    "input_price": readers.number,
    "output_price": readers.number,
    "max_cost_per_call": readers.number,
    "max_cost_per_day": readers.number,
    "examples_dir": readers.text,
    "record": readers.text,
    "replay": readers.text,
}

DECLARED_KEY: dict[str, Reader] = {
    "table": readers.text,
    "columns": readers.texts,
    "references": readers.text,
    "referenced_columns": readers.texts,
}

KNOWLEDGE: dict[str, Reader] = {
    "values": readers.choice("statistics", "sample", "off"),
    "show_values": readers.texts,
    "hide_values": readers.closing(readers.texts),
    "infer_joins": readers.boolean,
    "refresh_interval": readers.seconds(),
    "reports": readers.texts,
    "files": readers.texts,
}


def _names(value: Any) -> tuple[str, ...]:
    names = readers.texts(value)
    if not names or not all(name.strip() for name in names):
        raise Wrong("expected a list of names, none of them empty")
    return names


def _tools(value: Any) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) and "," not in value and "[" not in value else readers.texts(value)


HOLDERS: dict[str, Reader] = {
    "groups": readers.text_set,
    "principals": readers.text_set,
    "tokens": readers.text_set,
    "scopes": readers.text_set,
}
ROLE: dict[str, Reader] = {**HOLDERS, "tools": _tools, "grants": readers.tables, "limits": readers.table}
GRANT: dict[str, Reader] = {
    "database": readers.text,
    "tables": _names,
    "deny": readers.closing(readers.texts),
    "columns": _names,
    "deny_columns": readers.closing(readers.texts),
    "filter": readers.text,
    "masks": _named_texts,
}
ROLE_LIMITS: dict[str, Reader] = {
    "max_rows": readers.whole(1),
    "timeout": readers.seconds(),
    "max_cost": readers.positive,
    "calls_per_minute": readers.whole(1),
    "rows_per_hour": readers.whole(1),
    "bytes_per_day": readers.whole(1),
}

TOP = ("default_database", "server", "audit", "results", "model", "defaults", "databases", "policies", "roles")
