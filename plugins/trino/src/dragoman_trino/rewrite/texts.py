"""Texts: positions before the beginning, missing parts, padding, trimming, joining."""

from __future__ import annotations

from typing import Any

from dragoman.sql.rewriting import call, is_integer, is_text, number, text
from sqlglot import exp

from dragoman_trino.rewrite.numbers import kind_of_number
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, cast, is_textual, type_name, unsupported, whole

SPELLED = "As texts, timestamps, doubles and truth values of columns are spelled as Trino spells them."
LETTERS = "upper() and lower() change every letter in Trino, not only those the source's locale knows."


def _substring(node: Any, notes: Notes) -> Any:
    value, start, length = node.this, node.args.get("start"), node.args.get("length")
    first, size = whole(start), whole(length)
    if start is None or is_text(start) or is_text(length):
        raise unsupported("substring by a pattern", "Use regexp_extract in Trino's own SQL.")
    if (length is not None and size is None and notes.sqlite) or (size is not None and size < 0):
        raise unsupported("substr() with a length that is computed or negative", "Write the length as a number.")
    if first is not None and first < 0 and notes.sqlite:
        if length is not None:
            raise unsupported("substr() from the end with a length", "Use substr(x, length(x) - n, m).")
        return call("substr", value, call("greatest", exp.Neg(this=number(-first)), exp.Neg(this=_length_of(value))))
    if first is None:
        if not _after_a_search(start):
            raise unsupported("substr() from a computed position", "Write the position as a number.")
        return node
    if first >= 1:
        return node
    if length is None:
        return call("substr", value, 1)
    if size is None:
        raise unsupported("substr() from before the beginning with a computed length", "Start at 1 or later.")
    return call("substr", value, 1, max(first + size - 1, 0))


def _length_of(value: Any) -> Any:
    return exp.Length(this=value.copy())


def _after_a_search(start: Any) -> bool:
    """Return whether a position is the result of strpos() or more, so never before the beginning."""
    if not isinstance(start, exp.Add):
        return False
    sides = (start.this, start.expression)
    return any(isinstance(side, exp.StrPosition) for side in sides) and any(map(is_integer, sides))


def _end(node: Any, notes: Notes) -> Any:
    """Rewrite left() and right(). A negative length leaves out as many characters at the other end."""
    value, size = node.this, whole(node.expression)
    if size is None:
        raise unsupported(f"{node.key}() with a computed length", "Use substr().")
    if isinstance(node, exp.Left):
        if size >= 0:
            return call("substr", value, 1, size)
        rest = exp.Sub(this=_length_of(value), expression=number(-size))
        return call("substr", value, 1, call("greatest", rest, 0))
    if size == 0:
        return call("substr", value, 1, 0)
    if size < 0:
        return call("substr", value, 1 - size)
    return call("substr", value, call("greatest", exp.Sub(this=_length_of(value), expression=number(size - 1)), 1))


def _position(node: Any, notes: Notes) -> Any:
    if node.args.get("position") or node.args.get("occurrence"):
        raise unsupported("A search from a position", "Use strpos() on substr().")
    return node


def _repeat(node: Any, notes: Notes) -> Any:
    """Rewrite repeat(), which makes an array in Trino.

    Blanks are created and replaced instead, which keeps NULL and the empty text.
    """
    times = whole(node.args["times"])
    if times is None:
        raise unsupported("repeat() with a computed number", "Write the number.")
    return call("replace", call("rpad", "", max(times, 0), " "), " ", node.this)


def _pad(node: Any, notes: Notes) -> Any:
    fill = node.args.get("fill_pattern")
    size = whole(node.expression)
    if size is None or size < 0 or (fill is not None and not (is_text(fill) and fill.name)):
        raise unsupported("Padding to a computed length or with a computed text", "Write both as literals.")
    return node


def _part(node: Any, notes: Notes) -> Any:
    """Rewrite split_part(). For a missing part, Trino returns NULL and Postgres an empty text."""
    delimiter, index = node.args["delimiter"], whole(node.args["part_index"])
    if not is_text(delimiter) or not delimiter.name or index is None or index < 1:
        raise unsupported("split_part() from the end, or by what is computed", "Count from 1, by a literal text.")
    missing = exp.Case(ifs=[exp.If(this=exp.not_(exp.Is(this=node.this.copy(), expression=exp.Null())), true=text(""))])
    return call("coalesce", call("split_part", node.this, delimiter, index), missing)


def _replace(node: Any, notes: Notes) -> Any:
    """Rewrite replace(). Trino inserts the new text between all characters if the old one is empty."""
    old = node.expression
    node.set("replacement", node.args.get("replacement") or text(""))
    if is_text(old):
        return node if old.name else node.this
    empty = exp.EQ(this=old.copy(), expression=text(""))
    return exp.Case(ifs=[exp.If(this=empty, true=node.this.copy())], default=node)


def _trim(node: Any, notes: Notes) -> Any:
    """Rewrite trim(). Without characters, Trino's removes tabs and newlines too."""
    characters = node.expression or text(" ")
    if not is_text(characters):
        raise unsupported("Trimming characters that are computed", "Write them as a literal.")
    if not characters.name:
        return node.this
    name = {"LEADING": "ltrim", "TRAILING": "rtrim"}.get(str(node.args.get("position") or "").upper(), "trim")
    return call(name, node.this, characters)


def _join(node: Any, notes: Notes) -> Any:
    """Rewrite `||`, which joins only texts. A number beside it is cast if it is known to be one."""
    sides = [node.this, node.expression]
    if any(isinstance(side, exp.Array) for side in sides):
        left, right = (side if isinstance(side, exp.Array) else exp.Array(expressions=[side]) for side in sides)
        return exp.DPipe(this=left, expression=right)
    if any(isinstance(side, exp.Null) for side in sides) and any(map(is_textual, sides)):
        return cast(exp.Null(), "varchar")
    return exp.DPipe(this=_as_text(sides[0]), expression=_as_text(sides[1]))


def _as_text(node: Any) -> Any:
    if isinstance(node, exp.Literal) and not node.is_string and not is_integer(node):
        raise unsupported("A number with decimals as text", "Write the text itself.")
    return cast(node, "varchar") if kind_of_number(node) == "whole" or isinstance(node, exp.Boolean) else node


def _concat(node: Any, notes: Notes) -> Any:
    """Rewrite concat(), which skips NULL or becomes NULL, as in the source. Other values than texts are cast."""
    parts = [part if is_textual(part) else _spell(part, notes) for part in node.expressions]
    if node.args.get("coalesce"):
        parts = [part if is_text(part) else call("coalesce", part, "") for part in parts]
    return call("concat", *parts) if len(parts) > 1 else parts[0]


def _concat_ws(node: Any, notes: Notes) -> Any:
    separator, *parts = node.expressions
    return call("concat_ws", separator, *(part if is_textual(part) else _spell(part, notes) for part in parts))


def _spell(node: Any, notes: Notes) -> Any:
    if kind_of_number(node) not in {"", "whole"}:
        raise unsupported("A number with decimals as text", "Round it to a text in the database's own SQL.")
    if not kind_of_number(node) and not isinstance(node, exp.Null):
        notes.add(SPELLED)
    return cast(node, "varchar")


def _change_case(node: Any, notes: Notes) -> Any:
    if is_text(node.this):
        if not node.this.name.isascii():
            raise unsupported("Changing the case of letters beyond ASCII", "Write the text as it should be.")
    else:
        notes.add(LETTERS)
    return node


def _initials(node: Any, notes: Notes) -> Any:
    """Rewrite initcap(), which Trino lacks: every run of letters and digits begins with a capital."""
    notes.add(LETTERS)
    first = exp.Bracket(this=exp.to_identifier("w"), expressions=[number(1)], offset=1)
    rest = exp.Bracket(this=exp.to_identifier("w"), expressions=[number(2)], offset=1)
    for part in (first, rest):
        part.meta["ours"] = True
    body = exp.DPipe(this=exp.Upper(this=first), expression=exp.Lower(this=rest))
    turned = exp.Lambda(this=body, expressions=[exp.to_identifier("w")])
    turned.meta["ours"] = True
    return call("regexp_replace", node.this, r"([\p{L}\p{N}])([\p{L}\p{N}]*)", turned)


def _hash(node: Any, notes: Notes) -> Any:
    return call("lower", call("to_hex", call("md5", call("to_utf8", node.this))))


def _code(node: Any, notes: Notes) -> Any:
    """Rewrite the code of the first character. Trino accepts only a text of one character."""
    if is_text(node.this) and node.this.name:
        return number(ord(node.this.name[0]))
    if is_text(node.this):
        raise unsupported(f"{node.key}() of an empty text", "Write the number.")
    return call("codepoint", cast(call("substr", node.this, 1, 1), "varchar(1)"))


def _character(node: Any, notes: Notes) -> Any:
    if len(node.expressions) != 1:
        raise unsupported("char() of several numbers", "Join several with ||.")
    return call("chr", node.expressions[0])


def _bits(node: Any, notes: Notes) -> Any:
    return exp.paren(exp.Mul(this=_octets(node.this), expression=number(8)))


def _octets(value: Any) -> Any:
    return call("length", call("to_utf8", value))


def _hex(node: Any, notes: Notes) -> Any:
    if not notes.sqlite or not is_textual(node.this):
        raise unsupported("hex digits of what may be a number", "Use to_hex(to_utf8(...)) in Trino's own SQL.")
    return call("to_hex", call("to_utf8", node.this))


def _overlaid(node: Any, notes: Notes) -> Any:
    start, size = whole(node.args["from_"]), whole(node.args.get("for_"))
    if node.args.get("for_") is None and is_text(node.expression):
        size = len(node.expression.name)
    if start is None or start < 1 or size is None or size < 0:
        raise unsupported("overlay() at a computed position", "Join two substr() with ||.")
    before = call("substr", node.this, 1, start - 1)
    after = call("substr", node.this.copy(), start + size)
    return exp.paren(exp.DPipe(this=exp.DPipe(this=before, expression=node.expression), expression=after))


def _gather(node: Any, notes: Notes) -> Any:
    """Rewrite to listagg(), which needs an order: the values' own if the source has none."""
    inner = node.this
    separator = node.args.get("separator") or text(",")
    if not is_text(separator):
        raise unsupported("string_agg() with a computed separator", "Write the separator as a literal.")
    if isinstance(node.parent, exp.Window):
        raise unsupported("string_agg() over a window", "Use it with GROUP BY.")
    if isinstance(inner, exp.Order):
        value, keys = inner.this, inner.expressions
    else:
        value = inner.expressions[0] if isinstance(inner, exp.Distinct) else inner
        _check_unordered(node, value, notes)
        notes.add("Texts that are joined without an order are joined in their own order.")
        keys = [exp.Ordered(this=value.copy(), nulls_first=False)]
        value = inner
    joined = value.expressions[0] if isinstance(value, exp.Distinct) else value
    if notes.sqlite and not is_textual(joined):
        notes.add(SPELLED)
        spelled = cast(joined, "varchar")
        keys = [exp.Ordered(this=spelled.copy(), nulls_first=False)] if value is not joined else keys
        value = exp.Distinct(expressions=[spelled]) if value is not joined else spelled
    return exp.GroupConcat(this=exp.Order(this=value, expressions=keys), separator=separator)


def _check_unordered(node: Any, value: Any, notes: Notes) -> None:
    """Refuse an order in a subquery, which orders the values in SQLite and Postgres and is dropped by Trino."""
    select = node.find_ancestor(exp.Select)
    source = select.args.get("from_") if select else None
    order = source.this.this.args.get("order") if source and isinstance(source.this, exp.Subquery) else None
    if order is None:
        return
    keys = order.expressions
    if len(keys) > 1 or keys[0].args.get("desc") or keys[0].this.name != value.name:
        raise unsupported("Joining texts in the order of an inner query", "Use string_agg(x, ',' ORDER BY y).")


def _plain(node: Any, notes: Notes) -> Any:
    """Rewrite a literal. E'...' and $$...$$ are texts in another notation; elsewhere b'...' is a value of bytes."""
    if isinstance(node, exp.ByteString) and notes.source not in {"postgres", "redshift", "duckdb", "materialize"}:
        raise unsupported("A literal of bytes", "Pass it as a parameter.")
    return text(node.this)


def _length(node: Any, notes: Notes) -> Any:
    if type_name(node.this) in {"CHAR", "BPCHAR"}:
        raise unsupported("The length of a padded text", "Cast it to text.")
    return node


TEXTS: dict[type[Any], Rewriter] = {
    exp.Substring: _substring,
    exp.Left: _end,
    exp.Right: _end,
    exp.StrPosition: _position,
    exp.Repeat: _repeat,
    exp.Pad: _pad,
    exp.SplitPart: _part,
    exp.Replace: _replace,
    exp.Trim: _trim,
    exp.DPipe: _join,
    exp.Concat: _concat,
    exp.ConcatWs: _concat_ws,
    exp.Lower: _change_case,
    exp.Upper: _change_case,
    exp.Initcap: _initials,
    exp.MD5: _hash,
    exp.Ascii: _code,
    exp.Unicode: _code,
    exp.Chr: _character,
    exp.BitLength: _bits,
    exp.Hex: _hex,
    exp.Overlay: _overlaid,
    exp.GroupConcat: _gather,
    exp.ByteString: _plain,
    exp.RawString: _plain,
    exp.Length: _length,
}
