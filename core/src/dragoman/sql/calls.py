"""What the tokens of a statement show by themselves: where statements begin, and which functions are called."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from dragoman.parsed import FunctionCall, schema_of
from dragoman.sql.text import Token
from dragoman.words import lower_ascii

# Words of the grammar that may stand before a parenthesis without being a call. Words that can be both (replace, left,
# if, ...) are left out: as functions they are on the dialects' lists.
SYNTAX = frozenset(
    "all and any array as between by case cast check cube distinct else end escape except exists filter first from full"
    " glob group grouping having in inner intersect interval into is isnull join lateral like limit match materialized"
    " not notnull null of offset on or order outer over partition pivot precision qualify range recursive regexp rollup"
    " row rows select sets similar some tablesample then to union unnest unpivot using values when where window with"
    " within".split()
)
# Words that change what a star stands for: SELECT * EXCLUDE (a).
_AFTER_STAR = frozenset({"except", "exclude", "rename", "replace"})
_BEFORE_ITEM = frozenset({"select", "distinct", "all", ",", "(", "."})
# Words of types with several words, before their length: CAST(a AS DOUBLE PRECISION(10, 2)).
_TYPE_WORDS = frozenset(
    "big bit char character double int integer long national native precision signed unsigned varying varchar".split()
)
# Types that may stand inside another type, with something in parentheses: Nullable(Decimal(9, 4)).
_INNER_TYPES = frozenset(
    "array char datetime datetime64 decimal enum8 enum16 fixedstring list lowcardinality map nullable numeric nvarchar"
    " row struct time time64 timestamp tuple varbinary varchar".split()
)


def unquote(token: Token) -> str:
    """Return the name that a token stands for."""
    if token.kind == "word":
        return token.text
    if token.text[0] == "$":
        return token.text[1:-1]
    mark = "'" if token.kind == "string" else token.text[-1]
    inner = token.text[token.text.index(token.text[0]) + 1 : -1]
    return inner if token.text[0] == "[" else inner.replace(mark * 2, mark)


def _is_type(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the word at `index` ends a type.

    A type is one word after AS or ::, or several words after it, of which this is the last.
    """
    before = index - 1
    while before > 0 and tokens[before].text.lower() in _TYPE_WORDS:
        before -= 1
    if before < 0:
        return False
    return _is_cast(tokens, before) or (tokens[before].kind == "word" and tokens[before].text.lower() == "as")


def _is_cast(tokens: Sequence[Token], index: int) -> bool:
    """Return whether `::` ends at `index`: one mark or two, as the lexicon has it."""
    mark = tokens[index]
    if mark.text != ":" or index == 0:
        return mark.text == "::"
    return tokens[index - 1].text == ":" and tokens[index - 1].end == mark.start


def type_tails(tokens: Sequence[Token]) -> list[Token]:
    """Return the words after the first of types with several words: PRECISION in CAST(a AS DOUBLE PRECISION)."""
    tails: list[Token] = []
    previous = ""
    in_type = False
    for token in tokens:
        word = token.text.lower()
        if in_type and word in _TYPE_WORDS:
            tails.append(token)
        in_type = word in _TYPE_WORDS and (in_type or previous == "as")
        previous = word if token.kind == "word" else ""
    return tails


def _qualify(tokens: Sequence[Token], index: int) -> FunctionCall:
    """Return the call whose last name stands at `index`, with the names and dots before it."""
    parts, first = [lower_ascii(unquote(tokens[index]))], index
    while first >= 2 and tokens[first - 1].text == "." and tokens[first - 2].kind in {"word", "name", "string"}:
        first -= 2
        parts.insert(0, lower_ascii(unquote(tokens[first])))
    return FunctionCall(parts[-1], schema_of(parts), tokens[index].start)


def _find_types(tokens: Sequence[Token]) -> set[int]:
    """Return the places of types that have something in parentheses, and of the types inside them."""
    found: set[int] = set()
    inside = [False]  # for each open parenthesis, whether it belongs to a type
    for index, (token, after) in enumerate(pairwise(tokens)):
        word = token.text.lower()
        if (
            after.text == "("
            and token.kind == "word"
            and (_is_type(tokens, index) or (inside[-1] and word in _INNER_TYPES))
        ):
            found.add(index)
        if after.kind == "open":
            # AS MATERIALIZED (SELECT ...) has the form of a type.
            inside.append(index in found and (word not in SYNTAX or word in _INNER_TYPES))
        elif after.kind == "close" and len(inside) > 1:
            inside.pop()
    return found


def _changes_star(tokens: Sequence[Token], index: int) -> bool:
    """Return whether the word at `index` changes a star before it that is an item, and no multiplication.

    Several may follow each other: * EXCLUDE (a) REPLACE (b + 1 AS b) RENAME (c AS d).
    """
    word = index
    while tokens[word].text.lower() in _AFTER_STAR and word >= 2:
        if tokens[word - 1].text == "*":
            return tokens[word - 2].text.lower() in _BEFORE_ITEM
        word = _skip_back(tokens, word - 1) - 1
    return False


def _skip_back(tokens: Sequence[Token], last: int) -> int:
    """Return where a name, or what stands in parentheses, begins that ends at `last`."""
    depth = 0
    for place in range(last, -1, -1):
        depth += {"close": 1, "open": -1}.get(tokens[place].kind, 0)
        if depth <= 0:
            return place
    return 0


def find_calls(tokens: Sequence[Token]) -> list[FunctionCall]:
    """Return every name before a parenthesis that is neither a word of the grammar nor a type.

    Aliases with columns (`WITH a(b) AS`, `AS t(a, b)`) are included: only a tree can distinguish them from calls.
    """
    calls: list[FunctionCall] = []
    types = _find_types(tokens)
    for index in range(len(tokens) - 1):
        token = tokens[index]
        if tokens[index + 1].text != "(" or token.kind not in {"word", "name", "string"}:
            continue
        dotted = index > 0 and tokens[index - 1].text == "."
        is_grammar = token.kind == "word" and (token.text.lower() in SYNTAX or _changes_star(tokens, index))
        if dotted or not (is_grammar or index in types):
            calls.append(_qualify(tokens, index))
    return calls


_WRITES = frozenset({"delete", "insert", "merge", "replace", "update"})


def verbs(tokens: Sequence[Token]) -> Iterator[Token]:
    """Yield the words that begin statements: the whole one, what follows its WITH clause, and writes in parentheses."""
    first = next((index for index, token in enumerate(tokens) if token.text != "("), None)
    if first is None:
        return
    yield tokens[first]
    if tokens[first].text.lower() == "with":
        yield from _after_with(tokens[first:])
    for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if before.text == "(" and token.text.lower() in _WRITES and after.kind in {"word", "name", "string"}:
            yield token


def _after_with(tokens: Sequence[Token]) -> Iterator[Token]:
    depth = 0
    for token, after in pairwise(tokens):
        depth += {"open": 1, "close": -1}.get(token.kind, 0)
        if depth == 0 and token.kind == "close" and after.kind == "word" and after.text.lower() != "as":
            yield after
            return
