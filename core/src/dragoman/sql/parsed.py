"""A statement as sqlglot reads it, for every dialect that brings no grammar of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from dragoman.errors import InvalidSql
from dragoman.parsed import FunctionCall, NamedRelation, ParsedStatement, Refusal
from dragoman.sql.keywords import READ_ONLY, no_query
from dragoman.sql.statement import Statement


def read(
    query: Statement, *, reserved: frozenset[str], default_schema: str | None, exact: bool = False
) -> ParsedStatement:
    """Return what a query names. What is no query by its words is not parsed.

    `reserved`: the dialect's reserved words; `default_schema`: may stand before names; `exact`: names that differ in
    case are different names.
    """
    refusal = no_query(query, reserved)
    if refusal:
        return ParsedStatement(refusal=refusal)
    try:
        effect = query.effect
    except InvalidSql as error:
        # Where the tree cannot tell, the tokens still do: a refused function is the better reason.
        return ParsedStatement(calls=tuple(_plain(query.written_calls, default_schema)), refusal=Refusal.of(error))
    if effect:
        what = f"The statement holds {effect.what}, which is not part of a query."
        refusal = Refusal("write", what, READ_ONLY, effect.offset)
    searches = query.table_calls
    relations = query.survey(exact=True).relations if exact else query.facts.relations
    return ParsedStatement(
        relations=tuple(NamedRelation(relation, offset) for relation, offset in relations.items()),
        calls=tuple(_plain((call for call in query.calls if call.offset not in searches), default_schema)),
        types=tuple(query.facts.types),
        refusal=refusal,
    )


def _plain(calls: Iterable[FunctionCall], default_schema: str | None) -> Iterator[FunctionCall]:
    """The calls, the default schema before a name left out: it is where the engine's own are."""
    for call in calls:
        yield call._replace(schema=None) if call.schema == default_schema else call
