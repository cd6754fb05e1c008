"""An inspector based on SQLAlchemy's own reflection, in bulk: one `get_multi_*` call per fact and schema."""

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
from dragoman.sqlalchemy.types import spell_type

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
    """Reports what the driver's reflection reports. A fact that the driver does not reflect is left out, with a notice.

    `executor` is the inspector's own, closed with it: the executor that a plugin's hook gets may be wrapped by a
    policy. For a driver with poor reflection see `InformationSchemaInspector`.
    """

    def __init__(self, executor: SQLAlchemyExecutor) -> None:
        self.executor = executor

    async def aclose(self) -> None:
        await self.executor.aclose()

    def is_system(self, schema: str) -> bool:
        """Return whether a schema is the engine's own, to be shown only on request."""
        return schema.lower() in SYSTEM_SCHEMAS

    async def version(self) -> str:
        return await self.executor.run(_version)

    async def schemas(self) -> Sequence[Schema]:
        """Return the schemas as they are stored; none for an engine that has no schemas."""
        names = await self.executor.run(_schema_names)
        return [Schema(name=name, system=self.is_system(name)) for name in names]

    async def tables(self, scope: Scope) -> Inspection:
        known = await self.schemas()
        if not known and scope.schemas:
            return Inspection(())
        told = scope.schemas or {schema.name for schema in known if not schema.system}
        schemas: Sequence[str | None] = sorted(told) if known else [None]
        read = [await self.executor.run(partial(_read, schema=schema, scope=scope)) for schema in schemas]
        notices = dict.fromkeys(notice for inspection in read for notice in inspection.notices)
        return Inspection(tuple(table for inspection in read for table in inspection.tables), tuple(notices))


def plain(name: str) -> str:
    """Return a name as a plain `str`: SQLAlchemy's reflection returns a subclass."""
    return str.__str__(name)


def _version(connection: sqlalchemy.Connection) -> str:
    # Compiled by SQLAlchemy, since some engines know no SELECT without FROM.
    one: sqlalchemy.ColumnElement[int] = sqlalchemy.literal_column("1")
    connection.execute(sqlalchemy.select(one)).close()
    return ".".join(map(str, connection.dialect.server_version_info or ()))


def _schema_names(connection: sqlalchemy.Connection) -> list[str]:
    try:
        names = sqlalchemy.inspect(connection).get_schema_names()
    except NotImplementedError:
        return []
    return [_as_stored(name, connection.dialect) for name in names if name]


def _as_stored(name: str, dialect: sqlalchemy.Dialect) -> str:
    """Return a name as the engine stores it. Where that is upper case, SQLAlchemy reports plain names in lower case."""
    stored = dialect.denormalize_name(name) if dialect.requires_name_normalize else name
    return plain(stored)


def _as_asked(name: str, dialect: sqlalchemy.Dialect) -> str:
    """Return a stored name as SQLAlchemy wants it. A name stored in lower case needs quotes to stay so."""
    return dialect.normalize_name(name) if dialect.requires_name_normalize else name


def _read(connection: sqlalchemy.Connection, *, schema: str | None, scope: Scope) -> Inspection:
    notices: list[str] = []
    reflection = sqlalchemy.inspect(connection)
    names = [_as_asked(name, connection.dialect) for name in sorted(scope.names)] or None
    asked = None if schema is None else _as_asked(schema, connection.dialect)

    def ask(what: str, kind: ObjectKind = ObjectKind.ANY) -> Facts:
        method: Callable[..., Facts] = getattr(reflection, f"get_multi_{what}")
        try:
            return method(schema=asked, filter_names=names, kind=kind, scope=ObjectScope.DEFAULT)
        except (NotImplementedError, DBAPIError):
            connection.rollback()  # some engines refuse everything after a failed statement
            notices.append(f"The driver does not report {what.replace('_', ' ')}.")
            return {}

    kinds: dict[tuple[str | None, str], RelationType] = {
        key: kind for object_kind, kind in _KINDS for key in ask("columns", object_kind)
    }
    facts = {what: ask(what) for what in _FACTS}
    tables = [
        _table(
            Relation(_as_stored(key[1], connection.dialect), schema),
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
        constraints=tuple(_constraints(facts, dialect)),
        foreign_keys=tuple(_foreign_key(relation, key, dialect) for key in facts.get("foreign_keys", ())),
        indexes=tuple(_index(index, dialect) for index in facts.get("indexes", ())),
        comment=facts.get("table_comment", {}).get("text") or None,
    )


def _column(column: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> TableColumn:
    identity, computed = column.get("identity"), column.get("computed")
    return TableColumn(
        name=_as_stored(column["name"], dialect),
        type=_type(column["type"], dialect),
        nullable=bool(column.get("nullable", True)),
        default=column.get("default"),
        comment=column.get("comment") or None,
        generated=computed["sqltext"] if computed else None,
        identity=("ALWAYS" if identity.get("always") else "BY DEFAULT") if identity else None,
        enum=tuple(getattr(column["type"], "enums", ())),
    )


def _stored_names(names: Iterable[str], dialect: sqlalchemy.Dialect) -> tuple[str, ...]:
    return tuple(_as_stored(name, dialect) for name in names)


def _optional(name: str | None, dialect: sqlalchemy.Dialect) -> str | None:
    return None if name is None else _as_stored(name, dialect)


def _name_of(fact: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> str | None:
    return _optional(fact.get("name"), dialect)


def _type(type_: sqlalchemy.types.TypeEngine[Any], dialect: sqlalchemy.Dialect) -> str:
    try:
        return spell_type(type_.compile(dialect=dialect))
    except CompileError:
        return "any"


def _constraints(facts: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> Iterator[Constraint]:
    key = facts.get("pk_constraint", {})
    if key.get("constrained_columns"):
        yield Constraint(
            type="PRIMARY KEY", name=_name_of(key, dialect), columns=_stored_names(key["constrained_columns"], dialect)
        )
    for unique in facts.get("unique_constraints", ()):
        yield Constraint(
            type="UNIQUE", name=_name_of(unique, dialect), columns=_stored_names(unique["column_names"], dialect)
        )
    for check in facts.get("check_constraints", ()):
        yield Constraint(type="CHECK", name=_name_of(check, dialect), definition=f"CHECK ({check['sqltext']})")


def _foreign_key(relation: Relation, key: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> ForeignKey:
    options: Mapping[str, str] = key.get("options") or {}
    return ForeignKey(
        relation=relation,
        columns=_stored_names(key["constrained_columns"], dialect),
        references=Relation(
            _as_stored(key["referred_table"], dialect), _optional(key["referred_schema"], dialect) or relation.schema
        ),
        referenced_columns=_stored_names(key["referred_columns"], dialect),
        name=_name_of(key, dialect),
        on_update=options.get("onupdate"),
        on_delete=options.get("ondelete"),
    )


def _index(index: Mapping[str, Any], dialect: sqlalchemy.Dialect) -> Index:
    columns: Sequence[str | None] = index["column_names"]
    expressions: Sequence[str] = index.get("expressions") or [column or "?" for column in columns]
    # An expression is SQL already. Only names are stored in the engine's own way.
    parts = (
        expression if column is None else _as_stored(column, dialect)
        for column, expression in zip(columns, expressions, strict=False)
    )
    return Index(name=_as_stored(index["name"], dialect), parts=tuple(parts), unique=bool(index.get("unique")))
