"""LIKE and regular expressions: escapes, case, and the few forms that mean the same in both engines."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import call, is_text, text
from sqlglot import exp

from dragoman_trino.rewrite.rewriting import Notes, Rewriter, unsupported

# SQLs in which a backslash escapes in LIKE without an ESCAPE.
_BACKSLASH = frozenset(
    "postgres redshift materialize risingwave mysql doris starrocks singlestore bigquery spark spark2 databricks hive"
    " clickhouse".split()
)


def _like(node: Any, notes: Notes) -> Any:
    if isinstance(node.parent, exp.Escape):
        return node
    return _match(node, "\\" if notes.source in _BACKSLASH else "", notes)


def _escape(node: Any, notes: Notes) -> Any:
    if not is_text(node.expression) or len(node.expression.name) > 1:
        raise unsupported("This ESCAPE", "Write one character.")
    return _match(node.this, node.expression.name, notes)


def _match(node: Any, escape: str, notes: Notes) -> Any:
    value, pattern = node.this, node.expression
    if isinstance(pattern, (exp.Any, exp.All)):
        raise unsupported("LIKE ANY", "Write several LIKEs with OR.")
    if is_text(pattern):
        written, escape = _normalize(pattern.name, escape)
        pattern = text(written)
    if isinstance(node, exp.ILike) or notes.sqlite:
        if is_text(pattern) and not pattern.name.isascii():
            raise unsupported("Ignoring the case of letters beyond ASCII", "Use LIKE with the exact letters.")
        pattern = text(pattern.name.lower()) if is_text(pattern) else call("lower", pattern)
        value, escape = call("lower", value), escape.lower()
    like = exp.Like(this=value, expression=pattern)
    matched = exp.Escape(this=like, expression=text(escape)) if escape else like
    return exp.not_(exp.paren(matched)) if node.args.get("negate") else matched


def _normalize(pattern: str, escape: str) -> tuple[str, str]:
    """Return a pattern with escapes only where Trino accepts them, and the escape character, if any."""
    if not escape or escape not in pattern:
        return pattern, ""
    parts: list[str] = []
    characters = iter(pattern)
    for character in characters:
        if character != escape:
            parts.append(character)
            continue
        following = next(characters, None)
        if following is None:
            raise unsupported("A pattern that ends in its escape character", "Write it twice.")
        parts.append(escape + following if following in {"%", "_", escape} else following)
    return "".join(parts), escape


def _glob(node: Any, notes: Notes) -> Any:
    """Rewrite GLOB, which is case-sensitive, as LIKE is in Trino."""
    pattern = node.expression
    if not is_text(pattern) or "[" in pattern.name:
        raise unsupported("GLOB with a set of characters, or a pattern that is computed", "Use LIKE.")
    turned = re.sub(r"[%_\\]", r"\\\g<0>", pattern.name).replace("*", "%").replace("?", "_")
    like = exp.Like(this=node.this, expression=text(turned))
    return exp.Escape(this=like, expression=text("\\")) if "\\" in turned else like


# Constructs that regular expressions of Postgres and Java read alike, one at a time.
_ATOM = r"[^\\\[\](){}.*+?^$|]|\\[dws.\\\[\](){}*+?^$|/-]|\.|\[\^?[\w .,:;@#%&_/=!-]+\]|\^|\$"
_SAME = re.compile(rf"(?:(?:{_ATOM}|\((?!\?)|\(\?:|\))(?:[*+?]|\{{\d+(?:,\d*)?\}})?|\|)*")


def _regex(pattern: Any, ignore_case: bool, whole: bool) -> Any:
    """Return a regular expression for Trino.

    `whole`: longest and first match are the same, since nothing shorter can match.
    """
    written = pattern.name if is_text(pattern) else None
    if written is None or not _SAME.fullmatch(written) or (ignore_case and not written.isascii()):
        raise unsupported("This regular expression", "Use LIKE, or regexp_like in Trino's own SQL.")
    if not whole and "|" in written:
        raise unsupported("Replacing one of several alternatives", "Use regexp_replace in Trino's own SQL.")
    # Java's $ also matches before a last newline, and its dot does not match a newline.
    exact = re.sub(r"\\.|\$", lambda found: r"\z" if found[0] == "$" else found[0], written)
    return text(f"(?{'i' if ignore_case else ''}s){exact}" if "." in exact or ignore_case else exact)


def _matches(node: Any, notes: Notes) -> Any:
    if notes.sqlite or node.args.get("flag"):
        raise unsupported("REGEXP", "Use regexp_like in Trino's own SQL.")
    return call("regexp_like", node.this, _regex(node.expression, isinstance(node, exp.RegexpILike), True))


def _replaces(node: Any, notes: Notes) -> Any:
    flags, new = node.args.get("modifiers"), node.args.get("replacement")
    if any(node.args.get(part) for part in ("position", "occurrence")) or not is_text(new):
        raise unsupported("This regexp_replace()", "Use it in Trino's own SQL.")
    if not is_text(flags) or set(flags.name) not in ({"g"}, {"g", "i"}):
        raise unsupported("regexp_replace() of the first match only", "Add the flag 'g' to replace all matches.")
    if re.search(r"\\(?![1-9])", new.name):
        raise unsupported("This replacement", r"Use \1 to \9 and plain characters.")
    turned = re.sub(r"\\(\d)", r"$\1", new.name.replace("$", r"\$"))
    return call("regexp_replace", node.this, _regex(node.expression, "i" in flags.name, False), turned)


def _similar(node: Any, notes: Notes) -> Any:
    """Rewrite SIMILAR TO, which is a regular expression of its own and matches the whole text."""
    pattern = node.expression
    if not is_text(pattern) or not re.fullmatch(r"[\w %|*+?(),.:;@#&/=!-]*", pattern.name):
        raise unsupported("This SIMILAR TO", "Use LIKE.")
    turned = pattern.name.replace(".", r"\.").replace("%", ".*").replace("_", ".")
    return call("regexp_like", node.this, rf"(?s)\A(?:{turned})\z")


PATTERNS: dict[type[Any], Rewriter] = {
    exp.Like: _like,
    exp.ILike: _like,
    exp.Escape: _escape,
    exp.Glob: _glob,
    exp.RegexpLike: _matches,
    exp.RegexpILike: _matches,
    exp.RegexpReplace: _replaces,
    exp.SimilarTo: _similar,
}
