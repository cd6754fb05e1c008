"""Confines callers to parts of relations: the part that they have replaces each relation in a statement.

A member of WITH in front of the statement reads the rows that a filter leaves. Behind OFFSET 0 the server evaluates
nothing of the outer query, and the planner assumes the same number of rows whatever there are. So hidden rows do not
affect the order in which the caller's own conditions are evaluated, and which of them fails. The member stands outside
everything that is planned for the caller, because the cost of a query affects the plan of the surrounding query, except
at the very end.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

from dragoman import Confined, ConfinedRelation, Expression, NamedPart, Statement, Unsupported

from dragoman_postgres.fitting import Edit, fit
from dragoman_postgres.reading import in_characters, walk
from dragoman_postgres.spelling import quote

_AS_TEXT = "CAST({column} AS pg_catalog.text)"
MASKS: Mapping[str, str] = {
    # CASE has the base type of a domain: no domain of NOT NULL takes a CAST.
    "null": "CASE WHEN false THEN CAST(NULL AS {type}) END",
    "hash": f"pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({_AS_TEXT}, 'UTF8')), 'hex')",
    "partial": f"pg_catalog.substr({_AS_TEXT}, 1, 1) OPERATOR(pg_catalog.||) '***'",
    "year": "CAST(pg_catalog.date_trunc('year', {column}) AS {type})",
}

_FEW = "pg_catalog.num_nulls({column}) OPERATOR(pg_catalog.=) ALL (ARRAY(SELECT 0 WHERE false))"
"""True, for which the planner assumes at most one row: it assumes ten elements of an array."""
_THOUSAND = "pg_catalog.generate_series(1, (SELECT 0))"
"""No rows, for which the planner assumes a thousand: it does not know the bound."""
_WHOLE = "SELECT * FROM (\n"
_UNINDEXED = (
    "A table of which you see some rows has no index for your conditions. "
    "Join a subquery with GROUP BY instead of a subquery for each row."
)
_MEMBER = re.compile("WITH (part_[0-9a-f]{24}_)")


def confine(statement: Statement, named: Sequence[NamedPart]) -> Confined:
    """Return a statement with another name or a subquery in place of each relation of which callers have a part.

    Values follow the caller's own parameters. Raises `Unsupported` for ONLY.
    """
    parts = {each.offset: part for each, part in named if part is not None}
    places = in_characters(statement.text)
    read = walk(statement.text)
    found = [(places(var.get("location")), var) for var in read.variables]
    own = max((int(token.text[1:]) for token in statement.tokens if token.kind == "parameter"), default=0)
    spliced = [(offset, var, parts[offset]) for offset, var in found if offset is not None and offset in parts]
    edits = fit(statement, read.query, {var["location"]: part for _, var, part in spliced})
    return _Splicing(statement, own).splice(spliced, edits)


@lru_cache(maxsize=1024)
def _check_names(expression: Expression) -> None:
    """Raise `Unsupported` for a relation without a schema: a query could give its name another meaning."""
    for var in walk(f"SELECT {expression.write(lambda _: 'NULL')}").variables:
        if "schemaname" not in var:
            raise Unsupported(f"{var['relname']} stands in a filter or mask without its schema.")


def find_members(confined: str, lead: int) -> str | None:
    """Return the prefix of the names of a statement's members, or None.

    The statement must start with them within `lead` characters.
    """
    name = _MEMBER.match(confined, 0, lead)
    return name and name[1]


class _Splicing:
    """Inserts parts into a statement that has `own` parameters."""

    def __init__(self, statement: Statement, own: int) -> None:
        self._statement = statement
        self._members: dict[ConfinedRelation, str] = {}
        # No text contains its own hash, so no name of the caller's is one of ours.
        self._name = f"part_{hashlib.sha256(statement.text.encode()).hexdigest()[:24]}"
        self._parameters: list[int | str] = list(range(own))
        self._text = ""
        self._done = 0
        self._replaced: list[tuple[int, int, int]] = []

    def splice(
        self, places: Iterable[tuple[int, Mapping[str, Any], ConfinedRelation]], edits: Iterable[Edit]
    ) -> Confined:
        """Return the statement with a part at each place, and the edits that let its names mean columns of parts."""
        for edit in sorted([*edits, *(self._edit(*place) for place in places)]):
            self._replace(edit)
        self._text += self._statement.text[self._done :]
        return self._with_members() if self._members else self._finish()

    def _edit(self, offset: int, var: Mapping[str, Any], part: ConfinedRelation) -> Edit:
        if not var.get("inh"):
            raise Unsupported(
                f"ONLY {part.relation.name} cannot be read: you see a part of it.", suggestion="Leave ONLY out."
            )
        start, end, before = self._span(offset)
        alias = "" if "alias" in var else f" AS {quote(var['relname'])}"
        return Edit(start, end, f"{before}{self._part(part)}{alias}")

    def _finish(self) -> Confined:
        return Confined(self._text, tuple(self._parameters), tuple(self._replaced))

    def _with_members(self) -> Confined:
        """Return the statement inside another one that begins with the members.

        The statement's own WITH may hide and repeat names.
        """
        members = ", ".join(f"{name} AS MATERIALIZED ({self._rows(part)})" for part, name in self._members.items())
        lead = f"WITH {members}\n"
        self._replaced.insert(0, (0, 0, len(lead) + len(_WHOLE)))
        self._text = f"{lead}{_WHOLE}{self._text}\n) AS {self._name}"
        return replace(self._finish(), lead=len(lead), slow=_UNINDEXED)

    def _span(self, offset: int) -> tuple[int, int, str]:
        """Return the place of a dotted name, including TABLE before it, and the text that replaces it."""
        tokens = self._statement.tokens
        index = last = next(place for place, token in enumerate(tokens) if token.start == offset)
        while last + 2 < len(tokens) and tokens[last + 1].text == ".":
            last += 2
        if index and tokens[index - 1].text.lower() == "table":
            return tokens[index - 1].start, tokens[last].end, "SELECT * FROM "
        return offset, tokens[last].end, ""

    def _replace(self, edit: Edit) -> None:
        self._text += self._statement.text[self._done : edit.start] + edit.text
        self._done = edit.end
        self._replaced.append((edit.start, edit.end, len(edit.text)))

    def _part(self, part: ConfinedRelation) -> str:
        for expression in part.expressions:
            _check_names(expression)
        if part.filter is None:
            return f"({self._columns(part)})"
        return self._members.setdefault(part, f"{self._name}_{len(self._members)}")

    def _columns(self, part: ConfinedRelation) -> str:
        columns = part.write_columns(quote, lambda expression: expression.write(self._bind))
        relation = ".".join(quote(name) for name in (part.relation.schema, part.relation.name) if name)
        return f"SELECT {columns} FROM {relation}"

    def _rows(self, part: ConfinedRelation) -> str:
        """Return a query of the rows that a filter leaves. The planner knows neither their number nor their values."""
        assert part.filter is not None
        rows = f"{self._columns(part)} WHERE (\n{part.filter.write(self._bind)}\n) OFFSET 0"
        names = [f"_part.{quote(column.name)}" for column in part.columns]
        # Computed values have no statistics. From version 17 on, servers look up statistics through WITH.
        computed = (f"coalesce({name}, {name}) AS {name.removeprefix('_part.')}" for name in names)
        one = f"SELECT * FROM ({rows}) AS _part WHERE {_FEW.format(column=names[0])}"
        return f"SELECT {', '.join(computed)} FROM ({one}) AS _part FULL JOIN {_THOUSAND} AS _none ON false"

    def _bind(self, value: str) -> str:
        self._parameters.append(value)
        return f"${len(self._parameters)}"
