"""What is configured: databases, what may be shown of them, and as whom an engine acts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


class Secret:
    """A text that never shows itself; `reveal()` is the only way to read it."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """Return the text itself. Never log it, never put it into a message."""
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
    """A key the engine cannot tell: a primary key, or a foreign key when `references` is given. Names as in SQL."""

    table: str
    columns: tuple[str, ...]
    references: str | None = None
    referenced_columns: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeSettings:
    """What may be shown of a database beside its structure.

    `values`: from what the engine keeps, or some rows of a file where it keeps nothing (SQLite, DuckDB); also from some
    rows of other databases; or not at all. `show_values` and `hide_values`: patterns of columns (`status`,
    `orders.st*`, `sales.orders.status`) whose values are told, or not, whatever the core thinks of them; hiding wins.
    `infer_joins`: whether joins that nobody declared are looked for.
    `refresh_interval`: seconds. `reports`: those of the dialect's reports that are told only where they are named.
    `files`: what people wrote about the database, relative to its folder; the first that tells of something counts.
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
    """As whom an engine does something that keeps the rights of callers itself.

    `user`: in place of the one who signs in. `role`: what the session becomes. `settings`: names and values, of the
    session meanwhile; names are plain, values are the caller's and any text. Without any of them: as who signs in.
    """

    user: str | None = None
    role: str | None = None
    settings: tuple[tuple[str, str], ...] = field(default=(), repr=False)


IdentityKind = Literal["gateway", "role", "session", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Database:
    """A configured, named place an agent can query. Grows by defaulted fields only.

    A URL in the configuration arrives here as its parts; `url` keeps the whole text for drivers that want it.
    `database` is what follows the host: a database, a catalog, or a file path relative to `folder`. `options` are the
    plugin's own, already checked against the dataclass its dialect declares.

    `identity`: whose rights the engine keeps: the gateway's; those of a role, by `database_roles` from roles of the
    gateway to its own; those that values of the session tell, by `session`; or those of a user, whose name is `act_as`.
    `acting`: as whom the catalog is read, where the engine keeps the rights of callers.

    `administered`: an administrator gave its address while the server ran. What waits there is sent what the address
    holds, and nothing that a driver finds by itself: no variable, password file, certificate or ticket of this machine.
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
    """A database that variables of another tool name, as a plugin of the group `dragoman.environment` finds it.

    `values`: settings, nested as under `[databases.NAME]`; the core checks them. `variables`: which variable gave each,
    by its key; a problem is told by that name.
    """

    name: str
    values: Mapping[str, Any]
    variables: Mapping[tuple[str, ...], str]
