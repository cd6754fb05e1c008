"""Parses a statement with Trino's grammar, for the core's rules to judge."""

from __future__ import annotations

from dragoman import DragomanError, NamedRelation, NamedSchema, ParsedStatement, Refusal, Statement

from dragoman_trino.grammar import Statements

_TOO_DEEP = Refusal("invalid", "The statement is nested too deeply.", "Split it, or name inner queries with WITH.")


def read(statement: Statement) -> ParsedStatement:
    """Return what a query, EXPLAIN, SHOW or DESCRIBE names. After a parse error, it has what was read before."""
    reader = Statements(statement.text)
    found, refusal = reader.found, None
    try:
        reader.read()
    except DragomanError as error:
        refusal = Refusal.of(error)
    except RecursionError:
        refusal = _TOO_DEEP
    return ParsedStatement(
        relations=tuple(NamedRelation(each.relation, each.offset) for each in found.mentions),
        versions=tuple(NamedRelation(each.relation, each.offset) for each in found.mentions if each.form == "version"),
        calls=tuple(found.calls),
        schemas=tuple(NamedSchema(schema, catalog, 0) for catalog, schema in found.schemas),
        lists_schemas=found.lists_schemas,
        refusal=refusal,
    )
