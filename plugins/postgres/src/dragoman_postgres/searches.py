"""Texts that a statement turns into text search queries: PostgreSQL takes quadratic time for them, and nothing ends it.

A query may be built from a text that the statement alone shows to be short. `@@` builds one too, if both sides are
texts, so one side must be known to be no text, or the right side to be short.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Node = dict[str, Any]
Parts = list[tuple[Node, int]]
"""Expressions, and how often the whole may repeat each."""

Found = tuple[int, Parts] | None
"""The characters of an expression itself, and the parts whose text it contains. None: unknown."""
LONGEST_SEARCH = 65_536
"""The most characters of the text of a text search query.

About as many as a statement can contain; they take at most 0.3 seconds.
"""
LONGEST_REWRITING = 10_000
"""The same for each argument of `ts_rewrite`, which takes longer."""
LONGEST_NORMALIZED = 10_000
"""The same of what normalizes, which sorts marks above and below letters: 10,000 of them take half a second."""
LONGEST_PARAMETER = 5_000
"""The most characters of a parameter in a statement that builds such queries, or normalizes."""
_MOST_STEPS = 1_000
_SHORT_CONSTANT = 40
MAKERS = frozenset("to_tsquery plainto_tsquery phraseto_tsquery websearch_to_tsquery tsquery".split())
"""Functions that build a text search query from a text. A cast to the type reads as a call of its name."""
SEARCHES = frozenset({"tsquery", "_tsquery"})
HEADLINE = "ts_headline"
"""Takes options as its last argument, which must say how many fragments it chooses."""
NORMALIZERS = frozenset({"normalize", "is_normalized"})
"""Functions that normalize a text; `x IS NFC NORMALIZED` is a call of the second one."""
_TEXTS = frozenset("text varchar".split())
# The number of characters that one may become: in a query's text form, without accents, in the other case.
_GROWTH = 4
_CASED = 3


def is_short(expression: Node, most: int = LONGEST_SEARCH) -> bool:
    """Return whether the text of an expression is known to have at most `most` characters."""
    length = measure(expression)
    return length is not None and length <= most


def measure(expression: Node) -> int | None:
    """Return the most characters that the text of an expression can have; None if there is no limit."""
    waiting: Parts = [(expression, 1)]
    total = 0
    for _ in range(_MOST_STEPS):
        if not waiting:
            return total
        node, times = waiting.pop()
        ((kind, inner),) = node.items()
        step = _STEPS.get(kind)
        found = step(inner) if step else None
        if found is None:
            return None
        length, parts = found
        total += length * times
        waiting += [(part, factor * times) for part, factor in parts]
    return None


def _constant(node: Node) -> Found:
    return len(node["sval"].get("sval", "")) if "sval" in node else _SHORT_CONSTANT, []


def _parameter(_: Node) -> Found:
    return LONGEST_PARAMETER, []


def _cast(node: Node) -> Found:
    type_ = node["typeName"]
    name = type_["names"][-1]["String"]["sval"]
    if "typmods" in type_ or "arrayBounds" in type_ or name not in _TEXTS | {"tsquery"}:
        return None
    return 0, [(node["arg"], 1 if name in _TEXTS else _GROWTH)]


def _concatenation(node: Node) -> Found:
    names = [part["String"]["sval"] for part in node.get("name", ())]
    sides = (node.get("lexpr"), node.get("rexpr"))
    return (0, [(side, 1) for side in sides if side]) if node["kind"] == "AEXPR_OP" and names == ["||"] else None


def _coalesce(node: Node) -> Found:
    return 0, [(argument, 1) for argument in node["args"]]


def _call(node: Node) -> Found:
    *schema, name = (part["String"]["sval"] for part in node["funcname"])
    arguments: list[Node] = node.get("args", [])
    plain = schema in ([], ["pg_catalog"]) and not node.keys() - {"funcname", "args", "funcformat", "location"}
    rule = _CALLS.get((name, len(arguments))) if plain else None
    return rule(arguments) if rule else None


def _same(arguments: list[Node]) -> Found:
    return 0, [(arguments[0], 1)]


def _grow(arguments: list[Node]) -> Found:
    return 0, [(arguments[-1], _GROWTH)]


def _change_case(arguments: list[Node]) -> Found:
    return 0, [(arguments[0], _CASED)]


def _quote(arguments: list[Node]) -> Found:
    return len(" E''"), [(arguments[0], 2)]


def _cut(arguments: list[Node]) -> Found:
    number = arguments[-1].get("A_Const", {}).get("ival", {}).get("ival", -1)
    return None if number < 0 else (number, [])


def _replace(arguments: list[Node]) -> Found:
    """Return the measure of replace(): each character, and each place between two, may become the new text."""
    new = arguments[2].get("A_Const", {})
    times = len(new["sval"].get("sval", "")) + 1 if "sval" in new else 0
    return (times, [(arguments[0], times)]) if times else None


def _every(arguments: list[Node]) -> Found:
    return 0, [(argument, 1) for argument in arguments]


_CALLS: dict[tuple[str, int], Callable[[list[Node]], Found]] = {
    **{(name, count): _grow for name in MAKERS for count in (1, 2)},
    **{(name, 1): _change_case for name in ("lower", "upper", "initcap")},
    ("unaccent", 1): _grow,
    ("quote_literal", 1): _quote,
    **{(name, count): _same for name in ("btrim", "ltrim", "rtrim") for count in (1, 2)},
    **{("concat", count): _every for count in range(1, 9)},
    ("left", 2): _cut,
    ("right", 2): _cut,
    ("substr", 3): _cut,
    ("substring", 3): _cut,
    ("translate", 3): _same,
    ("replace", 3): _replace,
    ("regexp_replace", 3): _replace,
    ("regexp_replace", 4): _replace,
}
_STEPS: dict[str, Callable[[Node], Found]] = {
    "A_Const": _constant,
    "ParamRef": _parameter,
    "TypeCast": _cast,
    "A_Expr": _concatenation,
    "CoalesceExpr": _coalesce,
    "FuncCall": _call,
}


_NO_TEXTS = frozenset("tsvector tsquery jsonb jsonpath query_int".split())
_GIVE_NO_TEXT = MAKERS | frozenset(
    """to_tsvector array_to_tsvector json_to_tsvector jsonb_to_tsvector tsvector_to_array setweight strip ts_delete
    ts_filter ts_rewrite tsquery_phrase tsvector jsonb jsonb_build_object jsonb_build_array to_jsonb""".split()
)
_OF_SEARCHES = frozenset({"||", "&&", "<->", "!!"})


class Names:
    """What is known of the columns that a statement creates: by name, whether all columns of that name are no texts."""

    def __init__(self) -> None:
        self._known: dict[str, bool] = {}
        self._waiting: list[tuple[Node, Node, int | None]] = []
        self._queries: list[tuple[Node, int | None]] = []
        self._of_tables: set[str] = set()

    def keep(self, name: str, expression: Node | None) -> None:
        """Record what a column is computed from. None: anything, as other columns may be."""
        known = expression is not None and self._is_no_text(expression, columns=False)
        self._known[name] = self._known.get(name, True) and known

    def keep_relation(self, name: str) -> None:
        """Record the qualifier of a table's columns, which have their own types."""
        self._of_tables.add(name)

    def keep_function(self, node: Node) -> None:
        """Record the column of a function in FROM."""
        (call, *_), *more = (each["List"]["items"] for each in node["functions"])
        alias: Node = node.get("alias", {})
        plain = "FuncCall" in call and not more and not node.get("coldeflist") and not node.get("ordinality")
        names = [part["String"]["sval"] for part in alias.get("colnames", ())]
        if plain:
            names.append(alias.get("aliasname") or call["FuncCall"]["funcname"][-1]["String"]["sval"])
        for name in names:
            self.keep(name, call if plain else None)

    def keep_match(self, left: Node, right: Node, offset: int | None) -> None:
        """Record a match of one side with the other, for `find_doubtful`."""
        self._waiting.append((left, right, offset))

    def keep_query(self, expression: Node, offset: int | None) -> None:
        """Record an argument that is either a query or a text, for `find_texts`."""
        self._queries.append((expression, offset))

    def find_texts(self) -> list[int | None]:
        """Return the places of the arguments that may be texts."""
        return [offset for expression, offset in self._queries if not self._is_no_text(expression)]

    def find_doubtful(self) -> list[int | None]:
        """Return the places of the matches that may be between two texts, with a long right one."""
        return [
            offset
            for left, right, offset in self._waiting
            if not (is_short(right) or self._is_no_text(left) or self._is_no_text(right))
        ]

    def _is_no_text(self, expression: Node, *, columns: bool = True) -> bool:
        waiting = [expression]
        for _ in range(_MOST_STEPS):
            if not waiting:
                return True
            ((kind, node),) = waiting.pop().items()
            if kind == "A_Expr" and node["kind"] == "AEXPR_OP" and _name(node["name"]) in _OF_SEARCHES:
                waiting += [node[side] for side in ("lexpr", "rexpr") if side in node]
            elif kind == "CoalesceExpr":
                waiting += node["args"]
            elif not (columns and self._is_column(node) if kind == "ColumnRef" else _gives_no_text(kind, node)):
                return False
        return False

    def _is_column(self, node: Node) -> bool:
        *table, name = (part.get("String", {}).get("sval", "") for part in node["fields"])
        return self._known.get(name, False) and self._of_tables.isdisjoint(table)


def _gives_no_text(kind: str, node: Node) -> bool:
    if kind == "TypeCast":
        return _name(node["typeName"]["names"]) in _NO_TEXTS and "arrayBounds" not in node["typeName"]
    return kind == "FuncCall" and len(node["funcname"]) == 1 and _name(node["funcname"]) in _GIVE_NO_TEXT


def _name(parts: list[Node]) -> str:
    return str(parts[-1]["String"]["sval"])
