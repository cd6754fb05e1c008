"""The gate: PostgreSQL's own grammar reads a statement, and only a query through what the rules list may pass."""

from __future__ import annotations

import re
from typing import Any
from weakref import WeakKeyDictionary

import pgparse
from dragoman import Call, Database, DragomanError, InvalidSql, Reading, Statement, UnsafeSql, Validator, WriteDenied

from dragoman_postgres.rules import allowed
from dragoman_postgres.walk import Walk

_WORD = re.compile(r"[a-zA-Z_]+")
_READ_ONLY = "Only queries are run here: SELECT, VALUES, TABLE, and WITH in front of them."
_FALSE = frozenset({"false", "off", "0"})
# Of EXPLAIN; what runs the query (ANALYZE) must be switched off if it is there.
_EXPLAIN_OPTIONS = frozenset(
    {"verbose", "costs", "generic_plan", "buffers", "wal", "timing", "summary", "memory", "format", "settings"}
)

_readings: WeakKeyDictionary[Statement, Reading] = WeakKeyDictionary()


def judge(statement: Statement, database: Database | None = None) -> Reading:
    """Return what a statement reads and calls; its configuration's `allow_functions` and `allow_relations` count.

    Raises `WriteDenied` for what is no query, `UnsafeSql` for a query through what the rules do not list, `InvalidSql`
    for what PostgreSQL cannot parse. No database is asked.
    """
    if statement not in _readings:
        try:
            _readings[statement] = _judge(statement, database)
        except DragomanError as error:
            raise _in_characters(error, statement.text) from None
    return _readings[statement]


class PostgresGate(Validator):
    """What only the catalog can tell: whether a statement stays within the configured schemas."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._relations = frozenset(name.lower() for name in database.allow_relations)

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `WriteDenied`, `UnsafeSql` or `InvalidSql` for anything but an allowed query."""
        judge(statement, self._database)
        if not self._database.schemas and self._database.allow_foreign_tables:
            return
        resolution = await call.resolve()
        if not self._database.allow_foreign_tables:
            self._check_foreign(resolution.foreign)
        if self._database.schemas:
            self._check_schemas(resolution.relations)

    def _check_foreign(self, relations: Any) -> None:
        for relation in relations:
            if str(relation).lower() not in self._relations:
                raise UnsafeSql(
                    f"{relation} is a foreign table: what reading it does on the other side cannot be judged here.",
                    suggestion="Query tables of this database. Its operator can allow it with allow_foreign_tables.",
                )

    def _check_schemas(self, relations: Any) -> None:
        # A name the catalog does not know has no schema: where the server would find it cannot be told.
        for relation in relations:
            if relation.schema not in self._database.schemas and str(relation).lower() not in self._relations:
                raise UnsafeSql(
                    f"The relation {relation} is not in a schema that is open to queries.",
                    suggestion=f"Query relations of {', '.join(self._database.schemas)}.",
                )


def _judge(statement: Statement, database: Database | None) -> Reading:
    tree = _parsed(statement.text)
    if len(tree) != 1:
        raise UnsafeSql("Several statements were sent.", suggestion="Send one at a time.") if tree else _empty()
    ((kind, root),) = tree[0]["stmt"].items()
    if kind == "VariableShowStmt":
        _check_setting(root["name"])
        return Reading((), ())
    if kind == "ExplainStmt":
        ((kind, root),) = _explained(root).items()
    if kind != "SelectStmt":
        raise _no_query(statement.text)
    walk = Walk(database)
    walk.run(root)
    return Reading(tuple(walk.relations), tuple(walk.functions))


def _parsed(text: str) -> list[dict[str, Any]]:
    try:
        tree: list[dict[str, Any]] = pgparse.parse(text)
    except pgparse.PGQueryError as error:
        position = error.position
        raise InvalidSql(
            f"The statement does not parse: {error.message}.",
            suggestion="Check its syntax.",
            offset=len(text[: position - 1].encode()) if position > 0 else None,
        ) from None
    except RecursionError:
        raise InvalidSql(
            "The statement is nested too deeply.", suggestion="Split it, or name inner queries with WITH."
        ) from None
    return tree


def _empty() -> InvalidSql:
    return InvalidSql("There is no statement.", suggestion=_READ_ONLY)


def _no_query(text: str) -> WriteDenied:
    first = _WORD.search(text)
    word = first[0].upper() if first else "This"
    hint = {"EXPLAIN": "Use explain_query with the query itself.", "SHOW": "Use SELECT."}.get(word, _READ_ONLY)
    return WriteDenied(f"{word} is not a query.", suggestion=hint, offset=first.start() if first else 0)


def _check_setting(name: str) -> None:
    if name.lower() not in allowed().settings:
        raise UnsafeSql(
            f"The setting {name} is not on the list of settings known to hold no secret.",
            suggestion="Show one of server_version, search_path, timezone, ...",
            offset=0,
        )


def _explained(root: dict[str, Any]) -> dict[str, Any]:
    """What an EXPLAIN explains. Raises `WriteDenied` when it would also run it."""
    for option in (item["DefElem"] for item in root.get("options", ())):
        name = option["defname"]
        if name in ("analyze", "serialize") and _value(option) not in _FALSE | {"none"}:
            raise WriteDenied(
                f"EXPLAIN ({name.upper()}) runs the query.",
                suggestion="Use explain_query with analyze=true.",
                offset=option.get("location"),
            )
        if name not in _EXPLAIN_OPTIONS | {"analyze", "serialize"}:
            raise InvalidSql(
                f"EXPLAIN has no option {name}.", suggestion="Use explain_query.", offset=option.get("location")
            )
    query: dict[str, Any] = root["query"]
    return query


def _value(option: dict[str, Any]) -> str:
    """The value of an option as text; one without a value is switched on."""
    ((kind, value),) = option.get("arg", {"Boolean": {"boolval": True}}).items()
    if kind == "String":
        return str(value.get("sval", "")).lower()
    return str(value.get("ival", 0)) if kind == "Integer" else str(value.get("boolval", False)).lower()


def _in_characters(error: DragomanError, text: str) -> DragomanError:
    """The error with its offset in characters: the grammar counts bytes."""
    if error.offset is not None:
        error.offset = len(text.encode()[: error.offset].decode(errors="ignore"))
    return error
