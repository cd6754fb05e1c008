"""LIKE and its relatives. SQLite's LIKE ignores the case of ASCII letters; its GLOB is case-sensitive."""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import call, is_text, text
from sqlglot import exp

from dragoman_sqlite.rewrite.rewriting import IGNORE_CASE, TSQL, Notes, Rewriter, unsupported

# SQLs in which a backslash escapes in LIKE without an ESCAPE.
_LIKE_BACKSLASH = frozenset(
    "postgres redshift materialize risingwave mysql doris starrocks singlestore bigquery spark spark2 databricks hive"
    " clickhouse".split()
)


def _glob(pattern: str, escape: str) -> str:
    """Return a LIKE pattern as a GLOB pattern, which is case-sensitive as LIKE is elsewhere."""
    parts: list[str] = []
    escaped = False
    for character in pattern:
        if character == escape and not escaped:
            escaped = True
            continue
        wild = {"%": "*", "_": "?"}.get(character) if not escaped else None
        parts.append(wild or (f"[{character}]" if character in "*?[" else character))
        escaped = False
    return "".join(parts)


def _translate_glob(pattern: Any, escape: str, notes: Notes) -> Any:
    if is_text(pattern):
        return text(_glob(pattern.name, escape))
    if escape not in {"", "\\"}:
        raise unsupported("LIKE ... ESCAPE with a pattern that is computed", "Write the pattern as a literal.")
    if escape:
        notes.add("A backslash in a computed pattern stands for itself.")
    for found, instead in (("[", "[[]"), ("*", "[*]"), ("?", "[?]"), ("%", "*"), ("_", "?")):
        pattern = call("replace", pattern, found, instead)
    return pattern


def _match(node: Any, escape: str, notes: Notes) -> Any:
    value, pattern = node.this, node.expression
    if isinstance(pattern, (exp.Any, exp.All)):
        raise unsupported("LIKE ANY", "Write several LIKEs with OR.")
    if notes.source in TSQL and not (is_text(pattern) and "[" not in pattern.name):
        raise unsupported(
            "LIKE with a set of characters, or a pattern that is computed", "Write several LIKEs with OR."
        )
    if isinstance(node, exp.ILike) or notes.source in IGNORE_CASE:
        matched = _ignoring_case(value, pattern, escape, notes)
    else:
        notes.add("LIKE became GLOB, which is case-sensitive.")
        matched = exp.Glob(this=value, expression=_translate_glob(pattern, escape, notes))
    return exp.not_(exp.paren(matched)) if node.args.get("negate") else matched


def _ignoring_case(value: Any, pattern: Any, escape: str, notes: Notes) -> Any:
    if is_text(pattern) and not pattern.name.isascii():
        raise unsupported("Ignoring the case of letters beyond ASCII", "Use LIKE with the exact letters.")
    notes.add("ILIKE became LIKE, which ignores the case of ASCII letters only.")
    like = exp.Like(this=value, expression=pattern)
    if not escape or (is_text(pattern) and escape not in pattern.name):
        return like
    escaped = exp.Escape(this=like, expression=text(escape))
    escaped.meta["ours"] = True
    return escaped


def _like(node: Any, notes: Notes) -> Any:
    escape = "\\" if notes.source in _LIKE_BACKSLASH else ""
    return node if isinstance(node.parent, exp.Escape) else _match(node, escape, notes)


def _escape(node: Any, notes: Notes) -> Any:
    if not is_text(node.expression) or len(node.expression.name) > 1:
        raise unsupported("This ESCAPE", "Write one character.")
    return _match(node.this, node.expression.name, notes)


PATTERNS: dict[type[Any], Rewriter] = {exp.Like: _like, exp.ILike: _like, exp.Escape: _escape}
