"""The gate: asks the catalog what a statement's names mean there, and refuses objects that users made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from dragoman import Call, Database, FunctionCall, Named, ParsedStatement, Relation, Statement, UnsafeSql

from dragoman_postgres.encodings import check_names
from dragoman_postgres.rasters import check_rasters
from dragoman_postgres.rules import load_allowed
from dragoman_postgres.user_defined import Reader, Remembered, UserDefined
from dragoman_postgres.walk import ROW, WHOLE_ROW

_RECORD = 2249
_CALLED = frozenset({"function", "syntax"})


class PostgresGate(Remembered):
    """Checks the objects that users of the database made under the names that a statement uses."""

    def __init__(self, database: Database, reader: Reader) -> None:
        super().__init__(reader, database)
        self._functions = frozenset(name.lower() for name in database.allow_functions)
        self._relations = frozenset(name.lower() for name in database.allow_relations)

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` for anything that may run code of the database's users, and for ambiguous names.

        Names mean what the server finds under them now, not what a cached catalog has.
        """
        made, parsed = await self.state(), call.parsed
        check_names(statement, made.encoding)
        if made.everything:
            raise UnsafeSql(
                f"Any query may run code that users of this database made: {', '.join(sorted(made.everything))}.",
                suggestion="The server's administrator can allow the functions behind it with allow_functions.",
            )
        check_rasters(parsed, made.rasters)
        relations = [replace(named.relation, catalog=None) for named in parsed.relations]
        self._check_names(parsed, made, relations)
        self._check_active(relations, made.relation)
        used = {call.name for call in parsed.calls} | {operator.name for operator in parsed.operators}
        if used & load_allowed().mixing:
            self._check_active(relations, made.checked)

    def _check_names(self, parsed: ParsedStatement, made: UserDefined, relations: Iterable[Relation]) -> None:
        held = self._find_held_types(parsed, made, relations)
        attributes = {call.name for call in parsed.calls if call.kind == "attribute"}
        fields = {call.name for call in parsed.calls if call.kind == "field"}
        used = {
            "function": (
                made.functions(_names(call for call in parsed.calls if call.kind in _CALLED), held),
                "Write the schema of the one that is meant, such as pg_catalog.name().",
            ),
            "operator": (
                made.operators(_names(parsed.operators), held),
                "Write the schema of the one that is meant, such as OPERATOR(pg_catalog.+).",
            ),
            "function or type, named like a column,": (
                (fields & made.single) | (attributes & made.attribute),
                "Name the columns of the table, or rename them in a subquery.",
            ),
            "cast to the type": (made.types(_names(parsed.types), held), "Leave the cast out."),
        }
        for kind, (names, suggestion) in used.items():
            for name in sorted(names - self._functions):
                way_out = "Write the query without it." if "." in name else suggestion
                raise UnsafeSql(
                    f"The {kind} {name} may run code that users of this database made, which nobody has looked at.",
                    suggestion=f"{way_out} The server's administrator can allow it with allow_functions.",
                )

    def _find_held_types(
        self, parsed: ParsedStatement, made: UserDefined, relations: Iterable[Relation]
    ) -> frozenset[int] | None:
        """Return the types whose values a query reads, as far as it matters.

        None: any type, since a function may return it.
        """
        if not self._functions.isdisjoint(name for call in parsed.calls for name in (call.name, call.dotted)):
            return None
        return frozenset[int]().union(
            *(made.binding.get(relation, ()) for relation in relations),
            *(made.binding_type.get(named.name, ()) for named in parsed.types),
            {_RECORD for call in parsed.calls if call.name in (ROW, WHOLE_ROW)},
        )

    def _check_active(self, relations: Iterable[Relation], active: Mapping[Relation, Relation]) -> None:
        for written in relations:
            relation = active.get(written)
            if relation is not None and str(relation).lower() not in self._relations:
                raise UnsafeSql(
                    f"{relation} reads a foreign table, or runs code that users of this database made.",
                    suggestion="Query other tables. The server's administrator can allow it with allow_relations, the"
                    " functions behind it with allow_functions, or all foreign tables with allow_foreign_tables.",
                )


def _names(named: Iterable[Named | FunctionCall]) -> frozenset[str]:
    """Return names as in `UserDefined`: dotted if a schema was written."""
    return frozenset(f"{each.schema}.{each.name}" if each.schema else each.name for each in named)
