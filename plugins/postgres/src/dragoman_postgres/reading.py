"""Parses a statement with PostgreSQL's own grammar. Only a query of constructs on the lists passes."""

from __future__ import annotations

import re
from bisect import bisect_left
from importlib import import_module
from typing import Any

from dragoman import DragomanError, InvalidSql, ParsedStatement, Refusal, Statement, UnsafeSql, WriteDenied

from dragoman_postgres.rules import load_allowed
from dragoman_postgres.walk import Places, Walk

_WORD = re.compile(r"[a-zA-Z_]+")
_READ_ONLY = "Only queries are run here: SELECT, VALUES, TABLE, and WITH in front of them."
_PARAMETER = "Write $1 for a parameter and pass its value in params."
_QUESTION_MARK = re.compile(r"(?<=[\s=<>(,])\?(?![^\s),;])")
"""A parameter as other databases write it. PostgreSQL has operators with that character."""
_LISTS = {
    "databases": "Use list_databases.",
    "schemas": "Use list_schemas.",
    "tables": "Use list_tables.",
}
"""What SHOW returns in other databases, and the tools that return it here."""
LONGEST_NAME = 63
"""The bytes of an identifier (PostgreSQL's NAMEDATALEN - 1)."""
_LONG_OPERATOR = re.compile(rf"[-+*/<>=~!@#%^&|`?]{{{LONGEST_NAME + 1}}}")
_FALSE = frozenset({"false", "off", "0"})
# Options of EXPLAIN. ANALYZE runs the query, so it must be switched off if it is there.
_EXPLAIN_OPTIONS = frozenset(
    {"verbose", "costs", "generic_plan", "buffers", "wal", "timing", "summary", "memory", "format", "settings"}
)

_pgparse: Any = import_module("pgparse")  # it has no types


def read(statement: Statement) -> ParsedStatement:
    """Return what a query, EXPLAIN, or SHOW of a setting names; after a refusal, what was read before it."""
    walk, refusal = Walk(), None
    places = in_characters(statement.text)
    try:
        _check_operators(statement)
        _walk(statement.text, walk)
    except DragomanError as error:
        refusal = Refusal.of(error)
        refusal = refusal._replace(offset=places(refusal.offset))
    return walk.finish(places, refusal)


def walk(text: str) -> Walk:
    """Return the walk over a query. Raises its refusal, with offsets in bytes."""
    walk = Walk()
    _walk(text, walk)
    return walk


def _check_operators(statement: Statement) -> None:
    """Refuse an operator that is longer than any name: PostgreSQL's lexer takes quadratic time for it.

    Raises `InvalidSql`.
    """
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


def _walk(text: str, walk: Walk) -> None:
    tree = parse(text)
    if len(tree) != 1:
        raise UnsafeSql("Several statements were sent.", suggestion="Send one at a time.") if tree else _empty()
    ((kind, root),) = tree[0]["stmt"].items()
    if kind == "VariableShowStmt":
        _check_setting(root["name"])
        return
    if kind == "ExplainStmt":
        ((kind, root),) = _unwrap_explain(root).items()
    if kind != "SelectStmt":
        raise _no_query(text)
    walk.run(root)


def parse(text: str) -> list[dict[str, Any]]:
    """Return the grammar's tree of each statement of a text. Raises `InvalidSql`."""
    try:
        tree: list[dict[str, Any]] = _pgparse.parse(text)
    except _pgparse.PGQueryError as error:
        position = error.position
        raise InvalidSql(
            f"The statement does not parse: {error.message}.",
            suggestion=_PARAMETER if _QUESTION_MARK.search(text) else "Check its syntax.",
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
    if name.lower() not in load_allowed().settings:
        raise UnsafeSql(
            f"The setting {name} is not on the list of settings known to hold no secret.",
            suggestion=_LISTS.get(name.lower(), "Show one of server_version, search_path, timezone, ..."),
            offset=0,
        )


def _unwrap_explain(root: dict[str, Any]) -> dict[str, Any]:
    """Return the query of an EXPLAIN. Raises `WriteDenied` if it would also run it."""
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
    """Return the value of an option as text. An option without a value is on."""
    ((kind, value),) = option.get("arg", {"Boolean": {"boolval": True}}).items()
    if kind == "String":
        return str(value.get("sval", "")).lower()
    return str(value.get("ival", 0)) if kind == "Integer" else str(value.get("boolval", False)).lower()


def in_characters(text: str) -> Places:
    """Return the function that converts an offset in bytes, which the grammar counts, to one in characters."""
    if text.isascii():
        return lambda offset: offset
    starts = [place for place, byte in enumerate(text.encode()) if byte & 0xC0 != 0x80]
    return lambda offset: None if offset is None else bisect_left(starts, offset)
