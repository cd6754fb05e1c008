"""Fits the column names of a statement to the parts that replace its relations.

A part is a subquery. So its columns may have no schema in front, and its key does not stand for its other columns in
GROUP BY, as a table's primary key does. Edits of the statement make up for both.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from dragoman import ConfinedRelation, Statement

from dragoman_postgres.reading import in_characters
from dragoman_postgres.spelling import quote

Node = dict[str, Any]

_OBJECT: type[Any] = dict
_ARRAY: type[Any] = list
_STAR = "*"
_OF_GROUPS = ("targetList", "havingClause", "sortClause", "windowClause", "distinctClause")
"""The clauses that may read only what GROUP BY names."""
_QUERY = "SelectStmt"
_CALLS = frozenset({"FuncCall", "JsonArrayAgg", "JsonObjectAgg"})
_AGGREGATES = frozenset(
    """
    any_value array_agg avg bit_and bit_or bit_xor bool_and bool_or corr count covar_pop covar_samp every json_agg
    json_agg_strict json_object_agg json_object_agg_strict json_object_agg_unique json_object_agg_unique_strict
    jsonb_agg jsonb_agg_strict jsonb_object_agg jsonb_object_agg_strict jsonb_object_agg_unique
    jsonb_object_agg_unique_strict max min range_agg range_intersect_agg regr_avgx regr_avgy regr_count regr_intercept
    regr_r2 regr_slope regr_sxx regr_sxy regr_syy stddev stddev_pop stddev_samp string_agg sum var_pop var_samp variance
    xmlagg
    """.split()
)
"""Aggregates of the system. They may read columns that GROUP BY does not name."""
_COMPARABLE = re.compile(
    r"(smallint|integer|bigint|numeric|real|double precision|float[48]|boolean|text|varchar|char|uuid|date|interval"
    r"|(time|timestamp)(tz)?|jsonb)(\(\d+(,\d+)?\))?"
)
"""Types of the system that GROUP BY takes."""


class Edit(NamedTuple):
    """The text that replaces the characters of a statement from `start` to `end`."""

    start: int
    end: int
    text: str


class _Source(NamedTuple):
    """A part in FROM: the name that stands before its columns, and the schema that may stand before the name."""

    part: ConfinedRelation
    name: str
    schema: str | None


def fit(statement: Statement, query: Node, parts: Mapping[int, ConfinedRelation]) -> Iterator[Edit]:
    """Yield the edits of a statement, of which `query` is the grammar's node.

    `parts`: by the locations, in bytes, of the relations that they replace.
    """
    places = in_characters(statement.text)
    nodes = [*_walk(query)]
    sources = {
        var["location"]: _source(var, parts[var["location"]])
        for var in _find(nodes, "RangeVar")
        if var["location"] in parts and "colnames" not in var.get("alias", {})
    }
    for select in (node for node in nodes if "groupClause" in node):
        for location, columns in _complete_groups(select, sources):
            place = places(location)
            assert place is not None
            yield Edit(place, place, columns)
    for location in _find_qualified(nodes, sources):
        yield from _remove_schema(statement, places(location))


def _walk(tree: Any, leaves_out: Callable[[str, Any], bool] = lambda kind, node: False) -> Iterator[Node]:
    """Yield the nodes of a tree, without those below what is left out."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if type(node) is _OBJECT:
            yield node
            waiting += [value for key, value in node.items() if not leaves_out(key, value)]
        elif type(node) is _ARRAY:
            waiting += node


def _find(nodes: Iterable[Node], kind: str) -> Iterator[Node]:
    return (node[kind] for node in nodes if kind in node)


def _source(var: Node, part: ConfinedRelation) -> _Source:
    if "alias" in var:
        return _Source(part, var["alias"]["aliasname"], None)
    return _Source(part, var["relname"], part.relation.schema)


def _fields(column: Node) -> list[str]:
    return [field["String"]["sval"] if "String" in field else _STAR for field in column["fields"]]


def _complete_groups(select: Node, sources: Mapping[int, _Source]) -> Iterator[tuple[int, str]]:
    """Yield the places of keys in GROUP BY, and the other columns of the same part to write in front of them.

    Rows with one key agree in all columns, so more columns divide no group.
    """
    if any("GroupingSet" in item for item in select["groupClause"]):
        return
    for source in _list_sources(select, sources):
        if key := _find_key(source, select):
            columns = (f"{quote(source.name)}.{quote(column)}, " for column in _read_after(source, select))
            yield key[0], "".join(columns)


def _list_sources(select: Node, sources: Mapping[int, _Source]) -> list[_Source]:
    """Return the parts whose columns a SELECT sees: the alias of a join hides the names in it."""
    found: list[_Source] = []
    waiting: list[Node] = [*select.get("fromClause", ())]
    while waiting:
        item = waiting.pop()
        if "RangeVar" in item and item["RangeVar"]["location"] in sources:
            found.append(sources[item["RangeVar"]["location"]])
        elif "JoinExpr" in item and "alias" not in item["JoinExpr"]:
            waiting += (item["JoinExpr"]["larg"], item["JoinExpr"]["rarg"])
    return found


def _find_key(source: _Source, select: Node) -> list[int]:
    """Return the locations of a part's key in GROUP BY; none if it has no key, or GROUP BY does not name all of it."""
    named = {_column(source, column, select): location for column, location in _list_grouped(select)}
    return [named[name] for name in source.part.key] if named.keys() >= {*source.part.key} else []


def _list_grouped(select: Node) -> Iterator[tuple[Node, int]]:
    """Yield the columns that GROUP BY names, also by the place or name of an output, and where it names each."""
    outputs = [each["ResTarget"] for each in select.get("targetList", ())]
    for item in _split_rows(select["groupClause"]):
        (node,) = item.values()
        for column in _find([item, *_find_outputs(item, outputs)], "ColumnRef"):
            yield column, node["location"]


def _split_rows(items: Iterable[Node]) -> Iterator[Node]:
    """Yield items of GROUP BY; the server takes (a, b) there for two."""
    for item in items:
        if item.get("RowExpr", {}).get("row_format") == "COERCE_IMPLICIT_CAST":
            yield from _split_rows(item["RowExpr"]["args"])
        else:
            yield item


def _find_outputs(item: Node, outputs: list[Node]) -> list[Node]:
    """Return the outputs that an item of GROUP BY may mean.

    A name may mean a column of FROM instead. Then the server refuses the output of that name: nothing groups by it.
    """
    if "ColumnRef" in item:
        return [each["val"] for each in outputs if [each.get("name")] == _fields(item["ColumnRef"])]
    place = item.get("A_Const", {}).get("ival", {}).get("ival", 0)
    before = outputs[: max(place, 0)]
    is_known = 0 < place <= len(outputs) and not any("A_Star" in node for node in _walk(before))
    return [before[-1]["val"]] if is_known else []


def _column(source: _Source, column: Node, select: Node) -> str | None:
    """Return the column of a part that a name means, which must be one of its columns if nothing stands before it."""
    *before, name = _fields(column)
    if before:
        return name if before in ([source.name], [source.schema, source.name]) else None
    return None if _is_merged(name, select) else name


def _is_merged(name: str, select: Node) -> bool:
    """Return whether a join of several columns may make one of this name, so that it is not the part's own."""
    for join in _find(_walk(select["fromClause"]), "JoinExpr"):
        using = [each["String"]["sval"] for each in join.get("usingClause", ())]
        if join.get("isNatural") or (name in using and len(using) > 1):
            return True
    return False


def _read_after(source: _Source, select: Node) -> list[str]:
    """Return the columns of a part that clauses after GROUP BY may read, without its key.

    A call may be that of an aggregate, and a name in a subquery may mean a column there. So these add no column of a
    type that GROUP BY does not take.
    """
    clauses = [select[name] for name in _OF_GROUPS if name in select]
    subqueries = [*_find(_walk(clauses), _QUERY)]
    own = _names(source, _walk(clauses, _is_call_or_query)) | _names(source, _walk(clauses, _is_call), qualified=True)
    perhaps = _names(source, _walk(clauses, _is_aggregate)) | _names(source, _walk(subqueries))
    return [
        each.name
        for each in source.part.columns
        if each.name not in source.part.key
        and ({each.name, _STAR} & own or ({each.name, _STAR} & perhaps and _COMPARABLE.fullmatch(each.type)))
    ]


def _is_call(kind: str, node: Any) -> bool:
    return kind in _CALLS


def _is_call_or_query(kind: str, node: Any) -> bool:
    return kind in _CALLS or kind == _QUERY


def _is_aggregate(kind: str, node: Any) -> bool:
    """Return whether a node is a call of an aggregate of the system, and not one over a window."""
    if kind != "FuncCall" or "over" in node:
        return False
    *schema, name = (each["String"]["sval"] for each in node["funcname"])
    return name in _AGGREGATES and schema in ([], ["pg_catalog"])


def _names(source: _Source, nodes: Iterable[Node], *, qualified: bool = False) -> set[str]:
    """Return the names that may mean columns of a part. `qualified`: only those behind the part's own name."""
    befores = [[source.name], [source.schema, source.name], *([] if qualified else [[]])]
    return {name for *before, name in map(_fields, _find(nodes, "ColumnRef")) if before in befores}


def _find_qualified(nodes: list[Node], sources: Mapping[int, _Source]) -> Iterator[int]:
    """Yield the locations of columns such as sales.orders.id, if orders means nothing else in the statement."""
    meant: dict[str, set[str | None]] = defaultdict(set)
    for var in _find(nodes, "RangeVar"):
        if "alias" not in var:
            source = sources.get(var["location"])
            meant[var["relname"]].add(source.schema if source else None)
    for alias in (node["aliasname"] for node in nodes if "aliasname" in node):
        meant[alias].add(None)
    for column in _find(nodes, "ColumnRef"):
        schema, name = _fields(column)[:2] if len(column["fields"]) == 3 else ("", "")
        if schema and meant.get(name) == {schema}:
            yield column["location"]


def _remove_schema(statement: Statement, start: int | None) -> Iterator[Edit]:
    """Yield the edit that removes the name at a place and the dot behind it."""
    tokens = statement.tokens
    for schema, dot, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if schema.start == start and dot.text == ".":
            yield Edit(schema.start, name.start, "")
