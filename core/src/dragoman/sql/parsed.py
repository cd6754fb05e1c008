"""Parses a statement with sqlglot, for every dialect without a grammar of its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import starmap

from dragoman.errors import InvalidSql
from dragoman.parsed import FunctionCall, NamedRelation, ParsedStatement, Refusal
from dragoman.sql.keywords import READ_ONLY, no_names, no_query
from dragoman.sql.statement import Statement


def read(
    query: Statement, *, reserved: frozenset[str], default_schema: str | None, exact: bool = False
) -> ParsedStatement:
    """Return what a query names. A statement whose words show that it is not a query is not parsed.

    `reserved`: the dialect's reserved words. `default_schema`: may stand before names. `exact`: names that differ in
    case are different names.
    """
    refusal = no_query(query, reserved)
    if refusal:
        return ParsedStatement(refusal=refusal)
    try:
        effect = query.effect
    except InvalidSql as error:
        # If the tree cannot be built, the tokens still show a refused function, which is the better reason.
        return ParsedStatement(calls=tuple(_plain(query.written_calls, default_schema)), refusal=Refusal.of(error))
    if effect:
        what = f"The statement holds {effect.what}, which is not part of a query."
        refusal = Refusal("write", what, READ_ONLY, effect.offset)
    searches = query.table_calls
    facts = query.survey(exact=True) if exact else query.facts
    refusal = refusal or no_names(facts, reserved)
    return ParsedStatement(
        relations=tuple(NamedRelation(name, place) for name, places in facts.relations.items() for place in places),
        versions=tuple(starmap(NamedRelation, facts.versions.items())),
        calls=tuple(_plain((call for call in query.calls if call.offset not in searches), default_schema)),
        types=tuple(query.facts.types),
        refusal=refusal,
    )


def _plain(calls: Iterable[FunctionCall], default_schema: str | None) -> Iterator[FunctionCall]:
    """Yield the calls, without the default schema before a name: the engine's own functions are in it."""
    for call in calls:
        yield call._replace(schema=None) if call.schema == default_schema else call
