"""Confines callers to parts of relations: a subquery replaces each relation that a statement names.

A subquery with a row filter has a fence: the server evaluates no condition of the outer query below a LIMIT. It removes
a LIMIT if it knows that fewer rows come, as from some views. It never removes one from a union with a branch of which
it cannot know that its condition is false.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from dragoman import Confined, ConfinedRelation, Expression, NamedPart, Statement, Unsupported

from dragoman_trino.grammar import Mention, Statements
from dragoman_trino.queries import qualify, quote

_AS_TEXT = "CAST({column} AS varchar)"
MASKS: Mapping[str, str] = {
    "null": "IF(false, {column})",
    "hash": f"lower(to_hex(sha256(to_utf8({_AS_TEXT}))))",
    "partial": f"substr({_AS_TEXT}, 1, 1) || '***'",
    "year": "date_trunc('year', {column})",
}
_ALL = 2**63 - 1
_TYPES = {"user": "varchar", "groups": "array(varchar)"}


def confine(statement: Statement, named: Sequence[NamedPart]) -> Confined:
    """Return a statement with a subquery in place of each relation of which callers have a part.

    Raises `Unsupported` for older versions of a table, and for statements that only describe tables.
    """
    parts = {each.offset: part for each, part in named if part is not None}
    found = Statements(statement.text).read()
    if statement.tokens[0].text.upper() in {"EXPLAIN", "SHOW", "DESCRIBE", "DESC"}:
        raise Unsupported(
            "You may see only a part of these tables, so facts about the whole are not shown.",
            suggestion="Use describe_table for columns.",
        )
    splicing = _Splicing(statement, found.quantifiers)
    return splicing.splice([(each, parts[each.offset]) for each in found.mentions if each.offset in parts])


@lru_cache(maxsize=1024)
def _check_names(expression: Expression) -> None:
    """Raise `Unsupported` for a relation without a schema: a query could give its name another meaning."""
    for mention in Statements(f"SELECT {expression.write(lambda _: 'NULL')}").read().mentions:
        if mention.relation.schema is None:
            raise Unsupported(f"{mention.relation.name} stands in a filter or mask without its schema.")


class _Splicing:
    """Inserts subqueries into a statement. Parameters keep the order of the text."""

    def __init__(self, statement: Statement, quantifiers: Collection[int]) -> None:
        self._statement = statement
        marks = (token.start for token in statement.tokens if token.kind == "parameter")
        self._own = [start for start in marks if start not in quantifiers]
        self._parameters: list[int | str] = []
        self._text = ""
        self._done = 0
        self._replaced: list[tuple[int, int, int]] = []

    def splice(self, places: Sequence[tuple[Mention, ConfinedRelation]]) -> Confined:
        """Return the statement with a subquery at each place."""
        for mention, part in places:
            if mention.form == "version":
                raise Unsupported(f"Versions of {part.relation.name} cannot be read: you see a part of it.")
            self._copy(mention.start)
            text = self._relation(mention, part)
            self._text += text
            self._done = mention.end
            self._replaced.append((mention.start, mention.end, len(text)))
        self._copy(len(self._statement.text))
        return Confined(self._text, tuple(self._parameters), tuple(self._replaced))

    def _copy(self, end: int) -> None:
        """Copy the caller's own text up to `end`."""
        self._text += self._statement.text[self._done : end]
        self._parameters += [place for place, start in enumerate(self._own) if self._done <= start < end]

    def _relation(self, mention: Mention, part: ConfinedRelation) -> str:
        """Return the text that replaces a relation's name."""
        alias = "" if mention.aliased else f" AS {quote(part.relation.name)}"
        rows = self._rows(part)
        match mention.form:
            case "query":
                return f"SELECT * FROM ({rows}){alias}"
            case "argument":
                return f"{rows}){alias}"
            case _:
                return f"({rows}){alias}"

    def _rows(self, part: ConfinedRelation) -> str:
        columns = part.write_columns(quote, lambda expression: expression.write(self._bind))
        for expression in part.expressions:
            _check_names(expression)
        relation = qualify(part.relation)
        if part.filter is None:
            return f"SELECT {columns} FROM {relation}"
        nothing = ", ".join("NULL" for _ in part.columns)
        where = f"WHERE (\n{part.filter.write(self._bind)}\n)"
        return f"SELECT {columns} FROM {relation} {where} UNION ALL SELECT {nothing} WHERE rand() < 0 LIMIT {_ALL}"

    def _bind(self, value: str) -> str:
        self._parameters.append(value)
        return f"CAST(? AS {_TYPES[value]})" if value in _TYPES else "?"
