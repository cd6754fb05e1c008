"""Refuses what tells of all rows of relations of which the database shows each caller its own rows."""

from __future__ import annotations

from dragoman.dialect import Call, Validator
from dragoman.errors import UnsafeSql
from dragoman.gateway.visible import QUERIES
from dragoman.model import Database, Relation
from dragoman.sql import Statement
from dragoman.validators import find_telling

STANDARD = "information_schema"
"""The engine's own schema without sizes and statistics. Engines show each user its own part of it."""
_ASK = "Use list_tables, describe_table and explain_query."


class Estimates(Validator):
    """Refuses plans, statements that are not queries, and the engine's own facts: sizes, statistics, policies."""

    def __init__(self, database: Database) -> None:
        self._functions = frozenset(name.lower() for name in database.allow_functions)
        self._relations = frozenset(name.lower() for name in database.allow_relations)

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` for a statement that may show how much the caller does not see."""
        if statement.first_word not in QUERIES:
            raise UnsafeSql("It may count rows that you may not see.", suggestion=_ASK, offset=0)
        telling = find_telling(call.dialect.loaded_rules, call.parsed.calls, self._functions, path=False)
        if telling is not None:
            raise UnsafeSql(f"{telling.name} may count rows that you may not see.", suggestion=_ASK)
        for relation in await call.relations():
            if self._tells(relation, call.dialect.loaded_rules.system_schemas):
                raise UnsafeSql(f"{relation} may count rows that you may not see.", suggestion=_ASK)

    def _tells(self, relation: Relation, engine: frozenset[str]) -> bool:
        schema = (relation.schema or "").lower()
        names = {str(relation).lower(), relation.name.lower(), f"{schema}.{relation.name.lower()}"}
        return schema in engine and schema != STANDARD and self._relations.isdisjoint(names)
