"""What DuckDB's own parser reads in a statement, compared with what the core judged, which another parser read."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# (a connection's methods take what no stub names; a tree is JSON)

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import duckdb
import msgspec
from dragoman import InvalidSql, UnsafeSql
from dragoman.parsed import qualify, schema_of
from dragoman.words import lower_ascii

from dragoman_duckdb.rules import RULES

Path = tuple[str, ...]
Node = dict[str, Any]
Names = frozenset[str]
Types = tuple[str, ...] | None

PARSE = "SELECT system.main.json_serialize_sql($1::VARCHAR)"
KINDS = frozenset(
    "SELECT_NODE SET_OPERATION_NODE RECURSIVE_CTE_NODE CTE_NODE"
    " BASE_TABLE SUBQUERY JOIN TABLE_FUNCTION EMPTY EXPRESSION_LIST PIVOT".split()
)
"""Kinds of queries, and of what stands after FROM. Any other kind writes, or shows the catalog (`SHOW_REF`)."""
LISTED = {
    # The parser itself calls the last two, for count(*) and [x FOR x IN list].
    "function": RULES.functions | RULES.table_functions | {"count_star", "list_apply"},
    "table function": RULES.table_functions,
}
ENGINE: frozenset[Path] = frozenset({(), ("main",), ("system",), ("system", "main")})
"""The schemas of the engine's own functions, as they may stand before a name."""
REMEMBERED, LONGEST = 256, 4096
"""The most statements that are remembered, and the most characters of one."""


class Readings:
    """Compares statements with what was judged. Remembers short ones that passed, since statements repeat.

    `functions`: the dotted names that the configuration allows beside the listed ones.
    """

    def __init__(self, functions: Collection[str]) -> None:
        self._functions = functions
        self._passed: dict[tuple[str, tuple[Path, ...], Types], None] = {}

    def check(
        self, cursor: duckdb.DuckDBPyConnection, sql: str, relations: Iterable[Path], types: Types = None
    ) -> None:
        """Raise `UnsafeSql` if DuckDB names a relation or type that was not judged or a function that is not listed.

        `relations`: those that were judged, their names in parts. `types`: those of users, with dots; None: any may be
        named. Raises `InvalidSql` for a statement that is nested too deeply.
        """
        key = sql, tuple(relations), types
        if key in self._passed:
            return
        self._compare(_parse(cursor, sql), set(map(_fold, relations)), types)
        if len(sql) <= LONGEST:
            if len(self._passed) == REMEMBERED:
                del self._passed[next(iter(self._passed))]
            self._passed[key] = None

    def _compare(self, tree: Any, relations: Collection[Path], types: Types) -> None:
        for kind, path in _read(tree):
            match kind:
                case "relation":
                    is_judged = path in relations
                case "type":
                    is_judged = types is None or _is_own_type(path) or qualify(path[-1], schema_of(path)) in types
                case _:
                    is_judged = kind in LISTED and self._allows(kind, path)
            if not is_judged:
                raise _differs(f"the {kind} {'.'.join(path)}")

    def _allows(self, kind: str, path: Path) -> bool:
        own, name = path[:-1] in ENGINE, path[-1]
        return ".".join(path) in self._functions or (own and (name in LISTED[kind] or name in self._functions))


def _parse(cursor: duckdb.DuckDBPyConnection, sql: str) -> Any:
    (told,) = cursor.execute(PARSE, [sql]).fetchall()[0]
    try:
        tree = msgspec.json.decode(told)
    except RecursionError:
        raise InvalidSql("The statement is nested too deeply.", suggestion="Split it.") from None
    if tree["error"]:
        raise UnsafeSql("DuckDB does not tell what this statement reads.", suggestion="Write it as a plain SELECT.")
    return tree["statements"]


def _read(tree: Any) -> Iterator[tuple[str, Path]]:
    """Yield what `_name` finds, without the names that WITH defines."""
    waiting: list[tuple[Any, Names]] = [(tree, frozenset())]
    while waiting:
        node, defined = waiting.pop()
        if isinstance(node, list):
            waiting += [(each, defined) for each in node]
        elif isinstance(node, dict):
            found = _name(node)
            if found and not (found[0] == "relation" and len(found[1]) == 1 and found[1][0] in defined):
                yield found
            waiting += _below(node, defined)


def _name(node: Node) -> tuple[str, Path] | None:
    """Return what a node names, its name in parts, folded: a relation, function, type, or construct of no query."""
    kind = node.get("type")
    if ("cte_map" in node or "sample" in node) and kind not in KINDS:
        return "construct", (str(kind),)
    if kind == "BASE_TABLE":
        return "relation", _path(node)
    if kind == "TABLE_FUNCTION":
        return "table function", _path(node["function"])
    if kind == "TYPE":
        return "type", _path(node)
    if "function_name" in node and not node.get("is_operator"):
        return "function", _path(node)
    return None


def _is_own_type(path: Path) -> bool:
    return path[:-1] in ENGINE and path[-1].removesuffix(" with time zone") in RULES.types


def _path(node: Node) -> Path:
    return _fold(node["qualified_name"]["path"])


def _below(node: Node, defined: Names) -> Iterator[tuple[Any, Names]]:
    """Yield what is below a node, and the names that WITH defines there: a recursive member's own in its last part."""
    for member in node.get("cte_map", {}).get("map", ()):
        yield member["value"], defined
        defined |= {lower_ascii(member["key"])}
    for key, child in node.items():
        if key == "right" and node.get("type") == "RECURSIVE_CTE_NODE":
            yield child, defined | {lower_ascii(node["cte_name"])}
        elif key != "cte_map":
            yield child, defined


def _fold(path: Iterable[str]) -> Path:
    return tuple(map(lower_ascii, path))


def _differs(what: str) -> UnsafeSql:
    return UnsafeSql(
        f"DuckDB reads {what} here, where another reading was judged.",
        suggestion="Write names that are words of SQL in double quotes.",
    )
