"""Configured values: databases, what may be shown of them, and the identities under which an engine acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Secret:
    """A text that never shows itself. Only `reveal()` returns it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself. Never log it, and never put it into a message."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __str__(self) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)


@dataclass(frozen=True, slots=True)
class DeclaredKey:
    """A key that the engine does not know: a primary key, or a foreign key if `references` is given.

    Names as in SQL.
    """

    table: str
    columns: tuple[str, ...]
    references: str | None = None
    referenced_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSettings:
    """What may be shown of a database beside its structure.

    - `values`: which values may be shown. Those that the engine keeps, or some rows of a file if it keeps none (SQLite,
      DuckDB); also from some rows of other databases; or none.
    - `show_values`, `hide_values`: patterns of columns (`status`, `orders.st*`, `sales.orders.status`) whose values are
      shown, or not, whatever the core would decide. Hiding wins.
    - `infer_joins`: whether to look for joins that nobody declared.
    - `refresh_interval`: seconds.
    - `reports`: the dialect's opt-in reports that may be shown.
    - `files`: documentation of the database, relative to its folder. The first file that describes something counts.
    """

    values: Literal["statistics", "sample", "off"] = "statistics"
    show_values: tuple[str, ...] = ()
    hide_values: tuple[str, ...] = ()
    infer_joins: bool = True
    refresh_interval: float = 3600.0
    reports: tuple[str, ...] = ()
    files: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acting:
    """The identity under which an engine acts that applies the rights of callers itself.

    - `user`: replaces the user who signs in.
    - `role`: the role that the session assumes.
    - `settings`: names and values that the session gets meanwhile. Names are plain; values are the caller's and may be
      any text.

    Without any of these, it is the role that signs in.
    """

    user: str | None = None
    role: str | None = None
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


IdentityKind = Literal["gateway", "role", "session", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A configured, named place that an agent can query. Grows only by fields with defaults.

    - A URL in the configuration arrives here as its parts; `url` keeps the whole text for drivers that want it.
    - `database`: what follows the host: a database, a catalog, or a file path relative to `folder`.
    - `options`: the plugin's own, already checked against the dataclass that its dialect declares.
    - `identity`: whose rights the engine applies: the gateway's; those of a role, which `database_roles` maps from
      roles of the gateway; those that values of the session determine, by `session`; or those of a user, whose name is
      `act_as`.
    - `acting`: the identity that reads the catalog, if the engine applies the rights of callers.
    - `administered`: an administrator gave its address while the server ran. Only what the address contains is sent
      there, and nothing that a driver finds by itself: no variable, password file, certificate or ticket of this
      machine.
    """

    name: str
    dialect: str
    url: Secret | None = None
    host: str | None = None
    port: int | None = None
    database: str | None = None
    schema: str | None = None
    user: str | None = None
    password: Secret | None = None
    options: Mapping[str, Any] = field(default_factory=_nothing, hash=False, repr=False)
    folder: Path = Path()
    description: str = ""
    schemas: tuple[str, ...] = ()
    allow_functions: frozenset[str] = frozenset()
    allow_relations: frozenset[str] = frozenset()
    allow_foreign_tables: bool = False
    accept_unenforced: bool = False
    keys: tuple[DeclaredKey, ...] = ()
    max_rows: int = 10_000
    default_rows: int = 1000
    max_bytes: int = 100_000
    timeout: float = 30.0
    pool_size: int = 5
    catalog_ttl: float = 300.0
    knowledge: KnowledgeSettings = field(default_factory=KnowledgeSettings)
    identity: IdentityKind = "gateway"
    database_roles: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    session: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    act_as: str = "{user}"
    acting: Acting | None = None
    administered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvironmentDatabase:
    """A database named by variables of another tool, as a plugin of the group `dragoman.environment` finds it.

    - `values`: settings, nested as under `[databases.NAME]`; the core checks them.
    - `variables`: by key, the variable that gave each value. Problems are reported with its name.
    """

    name: str
    values: Mapping[str, Any]
    variables: Mapping[tuple[str, ...], str]
