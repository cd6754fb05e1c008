"""Holds callers to parts of relations: where a statement names one, a subquery stands in its place.

A subquery of rows ends with OFFSET 0, behind which the server evaluates nothing of the query around it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from dragoman import Confined, ConfinedRelation, Expression, NamedPart, Statement, Unsupported

from dragoman_postgres.gate import in_characters, walk
from dragoman_postgres.spelling import quote

_AS_TEXT = "CAST({column} AS pg_catalog.text)"
MASKS: Mapping[str, str] = {
    "null": "CAST(NULL AS {type})",
    "hash": f"pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to({_AS_TEXT}, 'UTF8')), 'hex')",
    "partial": f"pg_catalog.substr({_AS_TEXT}, 1, 1) OPERATOR(pg_catalog.||) '***'",
    "year": "CAST(pg_catalog.date_trunc('year', {column}) AS {type})",
}


def confine(statement: Statement, named: Sequence[NamedPart]) -> Confined:
    """Return a statement with a subquery in place of each relation of which callers have a part.

    Values follow the caller's own parameters. Raises `Unsupported` for ONLY.
    """
    parts = {each.offset: part for each, part in named if part is not None}
    places = in_characters(statement.text)
    found = [(places(var.get("location")), var) for var in walk(statement.text).variables]
    own = max((int(token.text[1:]) for token in statement.tokens if token.kind == "parameter"), default=0)
    spliced = [(offset, var, parts[offset]) for offset, var in found if offset is not None and offset in parts]
    return _Splicing(statement, own).splice(sorted(spliced, key=lambda each: each[0]))


@lru_cache(maxsize=1024)
def _check_names(expression: Expression) -> None:
    """Raise `Unsupported` for a relation without a schema: a query could give its name a meaning of its own."""
    for var in walk(f"SELECT {expression.write(lambda _: 'NULL')}").variables:
        if "schemaname" not in var:
            raise Unsupported(f"{var['relname']} stands in a filter or mask without its schema.")


class _Splicing:
    """Puts subqueries into a statement that has `own` parameters."""

    def __init__(self, statement: Statement, own: int) -> None:
        self._statement = statement
        self._parameters: list[int | str] = list(range(own))
        self._text = ""
        self._done = 0
        self._replaced: list[tuple[int, int, int]] = []

    def splice(self, places: Sequence[tuple[int, Mapping[str, Any], ConfinedRelation]]) -> Confined:
        """Return the statement with a subquery at each place."""
        for offset, var, part in places:
            start, end, before = self._span(offset)
            alias = "" if "alias" in var else f" AS {quote(var['relname'])}"
            if not var.get("inh"):
                raise Unsupported(f"ONLY {part.relation.name} cannot be read: you see a part of it.")
            self._replace(start, end, f"{before}({self._subquery(part)}){alias}")
        self._text += self._statement.text[self._done :]
        return Confined(self._text, tuple(self._parameters), tuple(self._replaced))

    def _span(self, offset: int) -> tuple[int, int, str]:
        """Where a dotted name stands, TABLE before it included, and what stands for that."""
        tokens = self._statement.tokens
        index = last = next(place for place, token in enumerate(tokens) if token.start == offset)
        while last + 2 < len(tokens) and tokens[last + 1].text == ".":
            last += 2
        if index and tokens[index - 1].text.lower() == "table":
            return tokens[index - 1].start, tokens[last].end, "SELECT * FROM "
        return offset, tokens[last].end, ""

    def _replace(self, start: int, end: int, text: str) -> None:
        self._text += self._statement.text[self._done : start] + text
        self._done = end
        self._replaced.append((start, end, len(text)))

    def _subquery(self, part: ConfinedRelation) -> str:
        columns = part.write_columns(quote, lambda expression: expression.write(self._bind))
        for expression in part.expressions:
            _check_names(expression)
        relation = ".".join(quote(name) for name in (part.relation.schema, part.relation.name) if name)
        if part.filter is None:
            return f"SELECT {columns} FROM {relation}"
        return f"SELECT {columns} FROM {relation} WHERE (\n{part.filter.write(self._bind)}\n) OFFSET 0"

    def _bind(self, value: str) -> str:
        self._parameters.append(value)
        return f"${len(self._parameters)}"
