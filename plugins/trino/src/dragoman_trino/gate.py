"""The gate: only a query passes, and only through the functions and relations the rules list."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from weakref import WeakKeyDictionary

from dragoman import (
    Call,
    Database,
    DragomanError,
    InvalidSql,
    Reading,
    Relation,
    Statement,
    UnsafeSql,
    Validator,
)

from dragoman_trino.grammar import Call as FunctionCall
from dragoman_trino.grammar import Found, Statements
from dragoman_trino.rules import allowed

BUILTIN = "system.builtin."
"""What may stand before the engine's own functions."""

_found: WeakKeyDictionary[Statement, Found] = WeakKeyDictionary()


def judge(statement: Statement, database: Database | None = None) -> Reading:
    """Return what a statement reads and calls; its configuration's `allow_functions` and `allow_relations` count.

    Raises `WriteDenied` for what is reserved for writes, `UnsafeSql` for a query through what the rules do not list,
    `InvalidSql` for what is neither a query nor harmless inspection, or does not parse. No database is asked.
    """
    found = _read(statement, database)
    _check_calls(found.calls, database)
    _check_relations(found.relations, database)
    return Reading(tuple(found.relations), tuple(dict.fromkeys(call.name for call in found.calls)))


class TrinoGate(Validator):
    """Keeps a database to its configured schemas, in queries and in SHOW."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._relations = _lower(database.allow_relations)
        self._schemas = frozenset(_name(schema) for schema in database.schemas)

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` for what reads or shows other schemas, and all that `judge` raises."""
        judge(statement, self._database)
        if not self._schemas:
            return
        found = _read(statement, self._database)
        for relation, offset in found.relations.items():
            if str(relation) not in self._relations and not self._is_open(relation.catalog, relation.schema):
                raise self._closed(f"The schema of {relation} is", offset)
        for catalog, schema in found.schemas:
            if not self._is_open(catalog, schema):
                raise self._closed(f"The schema {schema or 'of this session'} is", 0)
        if found.lists_schemas:
            raise UnsafeSql(
                "It shows more schemas than are open to queries.",
                suggestion="Use list_schemas and list_tables.",
                offset=0,
            )

    def _is_open(self, catalog: str | None, schema: str | None) -> bool:
        database = self._database
        home = (database.database or "").lower()
        catalog, schema = catalog or home, schema or (database.schema or "").lower()
        # A schema alone is one of the session's catalog, if it has one.
        return (catalog, schema) in self._schemas or ((not home or catalog == home) and (schema,) in self._schemas)

    def _closed(self, what: str, offset: int) -> UnsafeSql:
        return UnsafeSql(
            f"{what} not open to queries.",
            suggestion=f"Query relations of {', '.join(self._database.schemas)}.",
            offset=offset,
        )


def _name(written: str) -> tuple[str, ...]:
    """A dotted name of the configuration in parts; one that is none as it is."""
    try:
        return Statements(written).read_names()
    except InvalidSql:
        return (written.lower(),)


def _read(statement: Statement, database: Database | None) -> Found:
    found = _found.get(statement)
    if found is None:
        reader = Statements(statement.text)
        try:
            found = reader.read()
        except InvalidSql as error:
            # That a function is refused is the better reason, wherever it stands.
            _check_calls(reader.found.calls, database)
            raise error from None
        except RecursionError:
            raise InvalidSql(
                "The statement is nested too deeply.", suggestion="Split it, or name inner queries with WITH."
            ) from None
        _found[statement] = found
    return found


def _check_calls(calls: Iterable[FunctionCall], database: Database | None) -> None:
    rules = allowed()
    opened = _lower(database.allow_functions if database else ())
    for call in calls:
        name = call.name.removeprefix(BUILTIN)
        listed = rules.tables.fullmatch(name) is not None if call.table else name in rules.functions
        if not listed and call.name not in opened:
            raise _refused(call, name)


def _refused(call: FunctionCall, name: str) -> DragomanError:
    if call.table:
        return UnsafeSql(
            f"The table function {call.name} is not on the list of those known to be harmless.",
            suggestion="Query the tables themselves. Its operator can allow it with allow_functions.",
            offset=call.offset,
        )
    near = get_close_matches(name, allowed().functions, n=3)
    hint = f"Did you mean {', '.join(near)}?" if near else "Write the query without it."
    return UnsafeSql(
        f"The function {call.name} is not on the list of functions known to be harmless.",
        suggestion=f"{hint} Its operator can allow it with allow_functions.",
        offset=call.offset,
    )


def _check_relations(relations: dict[Relation, int], database: Database | None) -> None:
    opened = _lower(database.allow_relations if database else ())
    for relation, offset in relations.items():
        if str(relation) not in opened and _is_closed(relation, database):
            raise UnsafeSql(
                f"The relation {relation} is not open to queries.",
                suggestion="Query what list_tables shows. Its operator can allow it with allow_relations.",
                offset=offset,
            )


def _is_closed(relation: Relation, database: Database | None) -> bool:
    """Whether a relation is one of the engine's own that stay closed, in the session's catalog and schema."""
    rules = allowed()
    catalog = relation.catalog or (database and database.database) or ""
    schema = relation.schema or (database and database.schema) or ""
    name = f"{schema}.{relation.name}".lower()
    if rules.closed.fullmatch(name):
        return True
    if catalog.lower() == "system":
        return not rules.system.fullmatch(name)
    # With no catalog to be in, what is called as the engine's own is taken for it.
    return not catalog and schema.lower() == "runtime" and not rules.system.fullmatch(name)


def _lower(names: Iterable[str]) -> frozenset[str]:
    return frozenset(name.lower() for name in names)
