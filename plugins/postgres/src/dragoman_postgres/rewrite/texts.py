"""Texts: functions with another meaning in Postgres, and patterns."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_integer, is_text, number, ours, text
from sqlglot import exp

from dragoman_postgres.rewrite.numbers import text_of_sqlite
from dragoman_postgres.rewrite.rewriting import Notes, Rewriter, binary_order, kind_of, unsupported
from dragoman_postgres.rewrite.truth import ignoring_case

# The characters that Trino's trim() removes and Postgres' does not: Unicode white space at which a line may break.
_SPACE = r"[\u0009-\u000d\u001c-\u0020\u1680\u2000-\u2006\u2008-\u200a\u2028\u2029\u205f\u3000]"
_TRIMMING = {"LEADING": f"^{_SPACE}+", "TRAILING": f"{_SPACE}+$"}


def _as_text(value: Any, notes: Notes) -> Any:
    """Return `value` where a text is required: SQLite takes anything, Postgres only texts."""
    plain = not notes.sqlite or kind_of(value) == "text" or isinstance(bare(value), exp.Null)
    return value if plain else text_of_sqlite(value, notes)


def _on_texts(*names: str) -> Rewriter:
    """Return the rewriter of a function whose arguments `names` are texts, and that means the same."""

    def rewrite(node: Any, notes: Notes) -> Any:
        for name in names:
            if node.args.get(name) is not None:
                node.set(name, _as_text(node.args[name], notes))
        return node

    return rewrite


def _join(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        for side in ("this", "expression"):
            node.set(side, _as_text(node.args[side], notes))
    return node


def _concat(node: Any, notes: Notes) -> Any:
    if not node.args.get("coalesce"):
        joined = node.expressions[0]
        for part in node.expressions[1:]:
            joined = exp.DPipe(this=joined, expression=part)
        return ours(exp.paren(joined), "text" if kind_of(node.expressions[0]) != "array" else "array")
    return node


def _change_case(node: Any, notes: Notes) -> Any:
    if notes.sqlite:
        node.set("this", binary_order(_as_text(node.this, notes)))
    elif is_text(node.this) and not node.this.name.isascii():
        raise unsupported("upper() or lower() of letters beyond ASCII", "Write the text itself.")
    elif notes.trino:
        notes.add("The database's collation decides whether upper() and lower() change letters beyond ASCII.")
    return node


def _substring(node: Any, notes: Notes) -> Any:
    value, start, length = _as_text(node.this, notes), node.args.get("start"), node.args.get("length")
    if start is None or is_text(start):
        raise unsupported("substring by a pattern", "Use positions.")
    first, size = exact(start), exact(length) if length is not None else None
    if notes.sqlite and first is not None and first < 0 and length is None:
        return call("right", value, int(-first), kind="text")
    if (first is not None and first < (0 if notes.sqlite else 1)) or (size is not None and size < 0):
        raise unsupported("substr() from before the beginning, or of less than nothing", "Start at 1 or later.")
    if not all(given is None or _is_positive(given) for given in (start, length)):
        if first == 1:
            node.set("length", exp.Greatest(this=length, expressions=[number(0)]))
        else:
            raise unsupported("substr() at a computed place", "Start at a number, or at strpos() plus a number.")
    node.set("this", value)
    return node


def _is_positive(value: Any) -> bool:
    """Return whether a number cannot be negative."""
    value = bare(value)
    if isinstance(value, exp.Add):
        return _is_positive(value.this) and _is_positive(value.expression)
    return is_integer(value) or isinstance(value, (exp.StrPosition, exp.Length))


def _position(node: Any, notes: Notes) -> Any:
    if node.args.get("position") or node.args.get("occurrence"):
        raise unsupported("A search from a position or for a later match", "Use strpos() on substr().")
    return _on_texts("this", "substr")(node, notes)


def _part(node: Any, notes: Notes) -> Any:
    value, delimiter, index = node.this, node.args["delimiter"], node.args["part_index"]
    if not is_integer(index) or index.name == "0":
        raise unsupported("split_part() with a computed number", "Write the number, from 1.")
    if index.name == "1" or not notes.trino:
        return node
    # Beyond the last part Trino returns NULL, Postgres an empty text.
    parts = exp.paren(call("string_to_array", value, delimiter))
    return ours(exp.Bracket(this=parts, expressions=[index], offset=1), "text")


def _split(node: Any, notes: Notes) -> Any:
    value, delimiter = node.this, node.expression
    if node.args.get("limit") or not is_text(delimiter) or not delimiter.name:
        raise unsupported("split() with a limit or a computed delimiter", "Write the delimiter as a literal.")
    empty = exp.EQ(this=value.copy(), expression=text(""))
    none = exp.Array(expressions=[text("")])
    case = exp.Case(ifs=[exp.If(this=empty, true=none)], default=call("string_to_array", value, delimiter))
    return ours(case, "array")


def _trim(node: Any, notes: Notes) -> Any:
    node.set("this", _as_text(node.this, notes))
    if notes.trino and node.expression is None:
        pattern = _TRIMMING.get(str(node.args.get("position") or "").upper(), "|".join(_TRIMMING.values()))
        return call("regexp_replace", node.this, pattern, "", "g", kind="text")
    return node


def _character(node: Any, notes: Notes) -> Any:
    if len(node.expressions) != 1:
        raise unsupported("char() of several codes", "Join several with ||.")
    return node


def _code(node: Any, notes: Notes) -> Any:
    return exp.Nullif(this=call("ascii", _as_text(node.this, notes), kind="integer"), expression=number(0))


def _replace(node: Any, notes: Notes) -> Any:
    if notes.trino and is_text(node.expression) and not node.expression.name:
        raise unsupported("replace() of an empty text", "Replace something.")
    return _on_texts("this", "expression", "replacement")(node, notes)


def _starts(node: Any, notes: Notes) -> Any:
    return call("starts_with", node.this, node.expression, kind="boolean")


def _repeat(node: Any, notes: Notes) -> Any:
    if notes.trino:
        raise unsupported("repeat(), which gives an array in Trino,", "Write the array.")
    return node


# LIKE


def _like(node: Any, notes: Notes) -> Any:
    if isinstance(node.parent, exp.Escape):
        return node
    return _match(node, "", notes) if notes.trino or notes.sqlite else node


def _escape(node: Any, notes: Notes) -> Any:
    if not is_text(node.expression) or len(node.expression.name) != 1:
        raise unsupported("This ESCAPE", "Write one character.")
    if not isinstance(node.this, (exp.Like, exp.ILike)):
        raise unsupported("ESCAPE", "Use it with LIKE.")
    return _match(node.this, node.expression.name, notes) if notes.trino or notes.sqlite else node


def _match(node: Any, escape: str, notes: Notes) -> Any:
    """Rewrite LIKE with an explicit escape.

    Without ESCAPE, Trino and SQLite have no escape character, and Postgres has a backslash.
    """
    value, pattern = node.this, node.expression
    if isinstance(pattern, (exp.Any, exp.All)):
        raise unsupported("LIKE ANY", "Write several LIKEs with OR.")
    if notes.sqlite:
        if escape.isalpha():
            raise unsupported("A letter as ESCAPE", "Use another character.")
        value = ignoring_case(value)
        pattern = text(_lower(pattern.name)) if is_text(pattern) else ignoring_case(pattern)
    like = exp.Like(this=value, expression=pattern, negate=node.args.get("negate"))
    if is_text(pattern) and not escape and "\\" not in pattern.name:
        return like
    return ours(exp.Escape(this=like, expression=text(escape)), "boolean")


def _lower(written: str) -> str:
    return "".join(letter.lower() if letter.isascii() else letter for letter in written)


def _glob(node: Any, notes: Notes) -> Any:
    pattern = node.expression
    if not is_text(pattern) or "[" in pattern.name:
        raise unsupported("GLOB with a set of letters, or a pattern that is computed", "Use LIKE.")
    escaped = re.sub(r"([\\%_])", r"\\\1", pattern.name).replace("*", "%").replace("?", "_")
    return exp.Like(this=_as_text(node.this, notes), expression=text(escaped))


# Regular expressions: what Trino and Postgres read alike

_PIECE = r"(?:[\w \-,;:@/#!=<>&%'\"~`]|\\[.\\+*?()\[\]{}|^$/-]|\\d|\.|\[\^?(?:\w-\w|[\w .,;:@/#_])+\])"
_SIMPLE = re.compile(rf"\^?(?:{_PIECE}|\((?!\?)|[)|]|(?:[*+?]|\{{\d+(?:,\d*)?\}})(?![*+?{{]))*\$?")
_ONE_WAY = re.compile(rf"\^?{_PIECE}*[*+?]?{_PIECE}*\$?")


def _regex(pattern: Any, *, one_way: bool) -> Any:
    """Return a pattern that both read alike.

    `one_way`: it has one match at a place, whether the longest or the shortest is taken.
    """
    if not is_text(pattern) or not (_ONE_WAY if one_way else _SIMPLE).fullmatch(pattern.name):
        raise unsupported(
            "This regular expression",
            "Use a literal of letters, digits, ., [...], \\d, *, + and ?"
            + (", with at most one of *, + and ?." if one_way else ", ( and |."),
        )
    if "." in pattern.name and "[^" in pattern.name:
        raise unsupported("A regular expression with both . and [^...]", "Use one of them.")
    written = re.sub(r"\\(.)", lambda found: "[0-9]" if found[1] == "d" else found[0], pattern.name)
    if written.endswith("$") and not written.endswith("\\$"):
        written = written[:-1] + r"(?=\n?$)"  # before a last line break, too
    # Trino's . does not match a line break, as in Postgres with (?p).
    return text(("(?p)" if "." in written else "") + written)


def _only_trino(notes: Notes) -> None:
    if not notes.trino:
        raise unsupported("A regular expression of this SQL", "Use LIKE.")


def _regexp_like(node: Any, notes: Notes) -> Any:
    _only_trino(notes)
    if node.args.get("flag"):
        raise unsupported("Flags of a regular expression", "Leave them out.")
    return exp.RegexpLike(this=node.this, expression=_regex(node.expression, one_way=False))


def _regexp_extract(node: Any, notes: Notes) -> Any:
    _only_trino(notes)
    group = node.args.get("group")
    if group is not None and exact(group) != 0:
        raise unsupported("A group of a regular expression", "Extract the whole match.")
    return call("substring", node.this, _regex(node.expression, one_way=True), kind="text")


def _regexp_replace(node: Any, notes: Notes) -> Any:
    _only_trino(notes)
    instead = node.args.get("replacement") or text("")
    if not is_text(instead) or re.search(r"[\\$]", instead.name):
        raise unsupported("A computed replacement, or one with groups", "Write a literal text.")
    return call("regexp_replace", node.this, _regex(node.expression, one_way=True), instead, "g", kind="text")


TEXTS: dict[type[Any], Rewriter] = {
    exp.DPipe: _join,
    exp.Concat: _concat,
    exp.Lower: _change_case,
    exp.Upper: _change_case,
    exp.Substring: _substring,
    exp.StrPosition: _position,
    exp.SplitPart: _part,
    exp.Split: _split,
    exp.Trim: _trim,
    exp.Chr: _character,
    exp.Unicode: _code,
    exp.Replace: _replace,
    exp.Length: _on_texts("this"),
    exp.StartsWith: _starts,
    exp.Repeat: _repeat,
    exp.Like: _like,
    exp.Escape: _escape,
    exp.Glob: _glob,
    exp.RegexpLike: _regexp_like,
    exp.RegexpExtract: _regexp_extract,
    exp.RegexpReplace: _regexp_replace,
}
