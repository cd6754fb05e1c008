"""The gate: PostgreSQL's own grammar reads a statement, and only a query through what the rules list may pass."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import Any
from weakref import WeakKeyDictionary

from dragoman import (
    Call,
    Database,
    DragomanError,
    InvalidSql,
    Reading,
    Relation,
    Statement,
    TableNotFound,
    UnsafeSql,
    Validator,
    WriteDenied,
)

from dragoman_postgres.rules import allowed
from dragoman_postgres.userland import NOTHING, Reader, Remembered, Userland
from dragoman_postgres.walk import Walk

_WORD = re.compile(r"[a-zA-Z_]+")
_READ_ONLY = "Only queries are run here: SELECT, VALUES, TABLE, and WITH in front of them."
LONGEST_NAME = 63
"""Bytes of an identifier (PostgreSQL's NAMEDATALEN - 1)."""
_LONG_OPERATOR = re.compile(rf"[-+*/<>=~!@#%^&|`?]{{{LONGEST_NAME + 1}}}")
_FALSE = frozenset({"false", "off", "0"})
# Of EXPLAIN; what runs the query (ANALYZE) must be switched off if it is there.
_EXPLAIN_OPTIONS = frozenset(
    {"verbose", "costs", "generic_plan", "buffers", "wal", "timing", "summary", "memory", "format", "settings"}
)

_pgparse: Any = import_module("pgparse")  # it has no types
_walks: WeakKeyDictionary[Statement, Walk] = WeakKeyDictionary()


def judge(statement: Statement, database: Database | None = None) -> Reading:
    """Return what a statement reads and calls; its configuration's `allow_functions` and `allow_relations` count.

    Raises `WriteDenied` for what is no query, `UnsafeSql` for a query through what the rules do not list, `InvalidSql`
    for what PostgreSQL cannot parse. No database is asked.
    """
    walk = _walked(statement, database)
    return Reading(tuple(walk.relations), tuple(walk.functions))


def _walked(statement: Statement, database: Database | None) -> Walk:
    if statement not in _walks:
        walk = Walk(database)
        _check_operators(statement)
        try:
            _judge(statement.text, walk)
        except DragomanError as error:
            raise _in_characters(error, statement.text) from None
        _walks[statement] = walk
    return _walks[statement]


def _check_operators(statement: Statement) -> None:
    """Refuse an operator longer than any name: PostgreSQL's lexer takes time quadratic to it. Raises `InvalidSql`."""
    if not _LONG_OPERATOR.search(statement.text):
        return
    start = end = 0
    for token in statement.tokens:
        if token.kind == "mark" and token.start == end:
            end = token.end
        else:
            start, end = token.start, token.end
        if token.kind == "mark" and end - start > LONGEST_NAME:
            raise InvalidSql("An operator is too long.", suggestion="Separate operators with spaces.", offset=start)


class PostgresGate(Validator):
    """What only the catalog can tell: what the users of the database have made of the names a statement uses."""

    def __init__(self, database: Database, reader: Reader | None = None) -> None:
        self._database = database
        self._functions = frozenset(name.lower() for name in database.allow_functions)
        self._relations = frozenset(name.lower() for name in database.allow_relations)
        self._userland = (
            Remembered(reader, database.catalog_ttl, foreign=database.allow_foreign_tables) if reader else None
        )

    async def state(self) -> object:
        """Return what the users of the database have made. Raises what the connection raises."""
        return await self._userland.get() if self._userland else None

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `WriteDenied`, `UnsafeSql` or `InvalidSql` for anything but an allowed query."""
        walk = _walked(statement, self._database)
        made = await self._userland.get() if self._userland else NOTHING
        relations: tuple[Relation, ...] = ()
        if walk.relations and (self._database.schemas or made.relation or made.binding):
            relations = await call.relations()
        self._check_names(
            walk, made, bound=not (made.binding.isdisjoint(relations) and walk.types.isdisjoint(made.binding_type))
        )
        self._check_active(relations, made)
        self._check_schemas(relations)

    def _check_names(self, walk: Walk, made: Userland, *, bound: bool) -> None:
        more = made.bound if bound else frozenset[str]()
        singles = walk.singles | walk.attributes if walk.calls_in_from else walk.singles
        used = {
            "function": (walk.plain & (made.function | more), "Write pg_catalog.name() for the system's own."),
            "operator": (
                walk.operators & (made.operator | more),
                "Write OPERATOR(pg_catalog.name) for the system's own.",
            ),
            "function, called as a column,": (
                (singles & made.single) | (walk.attributes & made.attribute),
                "Name the columns of the table, or rename them in a subquery.",
            ),
            "cast to the type": (walk.types & made.type, "Leave the cast out."),
        }
        for kind, (names, suggestion) in used.items():
            for name in sorted(names - self._functions):
                raise UnsafeSql(
                    f"The {kind} {name} may be one that users of this database made, which nobody has looked at.",
                    suggestion=f"{suggestion} Its operator can allow it with allow_functions.",
                )

    def _check_active(self, relations: Iterable[Relation], made: Userland) -> None:
        for relation in relations:
            if relation in made.relation and str(relation).lower() not in self._relations:
                raise UnsafeSql(
                    f"Reading {relation} reaches a foreign table, or a volatile function or a cast that users made.",
                    suggestion="Query other tables. Its operator can allow it with allow_relations, or all foreign"
                    " tables with allow_foreign_tables.",
                )

    def _check_schemas(self, relations: Iterable[Relation]) -> None:
        schemas = self._database.schemas
        for relation in relations:
            if not schemas or relation.schema in schemas or str(relation).lower() in self._relations:
                continue
            if relation.schema is None:
                # The catalog does not know it, so where the server would find it cannot be told.
                raise TableNotFound(
                    f"There is no relation {relation} in the schemas that are open to queries.",
                    suggestion="Use list_tables to see what is there.",
                    identifier=relation.name,
                )
            raise UnsafeSql(
                f"The relation {relation} is not in a schema that is open to queries.",
                suggestion=f"Query relations of {', '.join(schemas)}.",
            )


def _judge(text: str, walk: Walk) -> None:
    tree = _parsed(text)
    if len(tree) != 1:
        raise UnsafeSql("Several statements were sent.", suggestion="Send one at a time.") if tree else _empty()
    ((kind, root),) = tree[0]["stmt"].items()
    if kind == "VariableShowStmt":
        _check_setting(root["name"])
        return
    if kind == "ExplainStmt":
        ((kind, root),) = _explained(root).items()
    if kind != "SelectStmt":
        raise _no_query(text)
    walk.run(root)


def _parsed(text: str) -> list[dict[str, Any]]:
    try:
        tree: list[dict[str, Any]] = _pgparse.parse(text)
    except _pgparse.PGQueryError as error:
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
