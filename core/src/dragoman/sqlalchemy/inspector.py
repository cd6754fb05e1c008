"""An inspector over SQLAlchemy's own reflection, in bulk: one `get_multi_*` call per fact and schema."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

import sqlalchemy
from sqlalchemy.engine.reflection import ObjectKind, ObjectScope
from sqlalchemy.exc import CompileError, DBAPIError

from dragoman.dialect import Inspector
from dragoman.model import (
    Constraint,
    ForeignKey,
    Index,
    Inspection,
    Relation,
    RelationType,
    Schema,
    Scope,
    Table,
    TableColumn,
)
from dragoman.sqlalchemy.executor import SQLAlchemyExecutor
from dragoman.sqlalchemy.information_schema import SYSTEM_SCHEMAS

Facts = Mapping[tuple[str | None, str], Any]
_KINDS: Final[tuple[tuple[ObjectKind, RelationType], ...]] = (
    (ObjectKind.TABLE, "table"),
    (ObjectKind.VIEW, "view"),
    (ObjectKind.MATERIALIZED_VIEW, "materialized view"),
)

_FACTS: Final = (
    "columns",
    "pk_constraint",
    "foreign_keys",
    "unique_constraints",
    "check_constraints",
    "indexes",
    "table_comment",
)


class SQLAlchemyInspector(Inspector):
    """Tells what the driver's reflection tells. A fact the driver does not reflect is left out, with a notice.

    `executor` is the inspector's own, closed with it: the one a plugin's hook is handed may be wrapped by a policy.
    For a driver with poor reflection see `InformationSchemaInspector`.
    """

    def __init__(self, executor: SQLAlchemyExecutor) -> None:
        self.executor = executor

    async def aclose(self) -> None:
        await self.executor.aclose()

    def is_system(self, schema: str) -> bool:
        """Whether a schema is the engine's own, to be shown only when asked for."""
        return schema.lower() in SYSTEM_SCHEMAS

    async def version(self) -> str:
        return await self.executor.run(_version)

    async def schemas(self) -> Sequence[Schema]:
        names = await self.executor.run(lambda connection: sqlalchemy.inspect(connection).get_schema_names())
        return [Schema(name=plain(name), system=self.is_system(name)) for name in names]

    async def tables(self, scope: Scope) -> Inspection:
        schemas = scope.schemas or {schema.name for schema in await self.schemas() if not schema.system}
        read = [await self.executor.run(partial(_read, schema=schema, scope=scope)) for schema in sorted(schemas)]
        notices = dict.fromkeys(notice for inspection in read for notice in inspection.notices)
        return Inspection(tuple(table for inspection in read for table in inspection.tables), tuple(notices))


def plain(name: str) -> str:
    """Return a name as a text and nothing more: SQLAlchemy's reflection hands out a subclass of `str`."""
    return str.__str__(name)


def _version(connection: sqlalchemy.Connection) -> str:
    connection.exec_driver_sql("SELECT 1").close()
    return ".".join(map(str, connection.dialect.server_version_info or ()))


def _read(connection: sqlalchemy.Connection, *, schema: str, scope: Scope) -> Inspection:
    notices: list[str] = []
    reflection = sqlalchemy.inspect(connection)
    names = sorted(scope.names) or None

    def ask(what: str, kind: ObjectKind = ObjectKind.ANY) -> Facts:
        method: Callable[..., Facts] = getattr(reflection, f"get_multi_{what}")
        try:
            return method(schema=schema, filter_names=names, kind=kind, scope=ObjectScope.DEFAULT)
        except (NotImplementedError, DBAPIError):
            connection.rollback()  # some engines refuse everything after a failed statement
            notices.append(f"The driver does not tell {what.replace('_', ' ')}.")
            return {}

    kinds: dict[tuple[str | None, str], RelationType] = {
        key: kind for object_kind, kind in _KINDS for key in ask("columns", object_kind)
    }
    facts = {what: ask(what) for what in _FACTS}
    tables = [
        _table(
            Relation(plain(key[1]), plain(key[0] or schema)),
            kind,
            {what: answers[key] for what, answers in facts.items() if answers.get(key)},
            connection.dialect,
        )
        for key, kind in sorted(kinds.items(), key=lambda item: item[0][1])
    ]
    return Inspection(tuple(tables), tuple(dict.fromkeys(notices)))


def _table(relation: Relation, kind: RelationType, facts: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> Table:
    return Table(
        relation=relation,
        type=kind,
        columns=tuple(_column(column, dialect) for column in facts.get("columns", ())),
        constraints=tuple(_constraints(facts)),
        foreign_keys=tuple(_foreign_key(relation, key) for key in facts.get("foreign_keys", ())),
        indexes=tuple(_index(index) for index in facts.get("indexes", ())),
        comment=facts.get("table_comment", {}).get("text"),
    )


def _column(column: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> TableColumn:
    identity, computed = column.get("identity"), column.get("computed")
    return TableColumn(
        name=plain(column["name"]),
        type=_type(column["type"], dialect),
        nullable=bool(column.get("nullable", True)),
        default=column.get("default"),
        comment=column.get("comment"),
        generated=computed["sqltext"] if computed else None,
        identity=("ALWAYS" if identity.get("always") else "BY DEFAULT") if identity else None,
        enum=tuple(getattr(column["type"], "enums", ())),
    )


def _plain_names(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(plain, names))


def _optional(name: str | None) -> str | None:
    return None if name is None else plain(name)


def _named(fact: Mapping[str, Any]) -> str | None:
    return _optional(fact.get("name"))


def _type(type_: sqlalchemy.types.TypeEngine[Any], dialect: sqlalchemy.Dialect) -> str:
    try:
        return type_.compile(dialect=dialect).lower()
    except CompileError:
        return "any"


def _constraints(facts: Mapping[str, Any]) -> Iterator[Constraint]:
    key = facts.get("pk_constraint", {})
    if key.get("constrained_columns"):
        yield Constraint(type="PRIMARY KEY", name=_named(key), columns=_plain_names(key["constrained_columns"]))
    for unique in facts.get("unique_constraints", ()):
        yield Constraint(type="UNIQUE", name=_named(unique), columns=_plain_names(unique["column_names"]))
    for check in facts.get("check_constraints", ()):
        yield Constraint(type="CHECK", name=_named(check), definition=f"CHECK ({check['sqltext']})")


def _foreign_key(relation: Relation, key: Mapping[str, Any]) -> ForeignKey:
    options: Mapping[str, str] = key.get("options") or {}
    return ForeignKey(
        relation=relation,
        columns=_plain_names(key["constrained_columns"]),
        references=Relation(plain(key["referred_table"]), _optional(key["referred_schema"]) or relation.schema),
        referenced_columns=_plain_names(key["referred_columns"]),
        name=_named(key),
        on_update=options.get("onupdate"),
        on_delete=options.get("ondelete"),
    )


def _index(index: Mapping[str, Any]) -> Index:
    parts = index.get("expressions") or index["column_names"]
    return Index(
        name=plain(index["name"]), parts=_plain_names(part or "?" for part in parts), unique=bool(index.get("unique"))
    )
