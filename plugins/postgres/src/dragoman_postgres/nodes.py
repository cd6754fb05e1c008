"""Plans as trees, from either format in which the server writes them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

from dragoman import Relation

Part = Literal["input", "subplan"]


@dataclass(slots=True)
class Node:
    """A step of a plan. Only the verbose JSON format has `schema`.

    - Rows are per loop, as the server reports them; `actual` is None for a step that did not run.
    - `inputs`: of a join, the outer one and then the inner one.
    - `subplans`: of subqueries and CTEs.
    - `conditions`: filters and index conditions as SQL text, by the server's name for them.
    - `removed`: rows that `Filter` removed, per loop.
    - `disk`: kilobytes in temporary files.
    - `batches`: the number of parts that a hash was split into.
    """

    title: str
    rows: float
    cost: float
    relation: str | None = None
    schema: str | None = None
    actual: float | None = None
    loops: float = 1
    removed: float = 0
    disk: int = 0
    batches: int = 1
    conditions: dict[str, str] = field(default_factory=dict[str, str])
    inputs: list[Node] = field(default_factory=list["Node"])
    subplans: list[Node] = field(default_factory=list["Node"])

    def add(self, child: Node, part: Part) -> None:
        """Add a step below this one."""
        (self.inputs if part == "input" else self.subplans).append(child)

    def walk(self) -> Iterator[Node]:
        """Yield this step and every one below it."""
        yield self
        for child in (*self.subplans, *self.inputs):
            yield from child.walk()


CONDITIONS = frozenset(
    {"Filter", "Join Filter", "Index Cond", "Recheck Cond", "Hash Cond", "Merge Cond", "TID Cond", "Cache Key"}
)


def from_json(plan: Mapping[str, Any]) -> Node:
    """Return the tree of the `Plan` of FORMAT JSON."""
    node = Node(
        title=_json_title(plan),
        rows=plan["Plan Rows"],
        cost=plan["Total Cost"],
        relation=plan.get("Relation Name"),
        schema=plan.get("Schema"),
        actual=plan.get("Actual Rows") if plan.get("Actual Loops") else None,
        loops=plan.get("Actual Loops") or 1,
        removed=plan.get("Rows Removed by Filter", 0),
        disk=_json_disk(plan) + sum(_json_disk(worker) for worker in plan.get("Workers", ())),
        batches=plan.get("Hash Batches", 1),
        conditions={name: str(plan[name]) for name in CONDITIONS & plan.keys()},
    )
    for child in plan.get("Plans", ()):
        relationship = child.get("Parent Relationship")
        node.add(from_json(child), "subplan" if relationship in ("InitPlan", "SubPlan") else "input")
    return node


def _json_title(plan: Mapping[str, Any]) -> str:
    """Return the step's name as in FORMAT TEXT, as far as it matters here."""
    kind: str = plan["Node Type"]
    join, mode = plan.get("Join Type", "Inner"), plan.get("Partial Mode", "Simple")
    name, alias = plan.get("Relation Name", plan.get("CTE Name")), plan.get("Alias")
    words = ["Parallel"] if plan.get("Parallel Aware") else []
    words += [mode] if mode != "Simple" else []
    words += [_AGGREGATES[plan["Strategy"]] if kind == "Aggregate" else kind]
    words += [f"{join} Join"] if join != "Inner" else []
    words += [f"on {name}"] if name else []
    words += [alias] if name and alias and alias != name else []
    return " ".join(words)


_AGGREGATES = {"Plain": "Aggregate", "Hashed": "HashAggregate", "Sorted": "GroupAggregate", "Mixed": "MixedAggregate"}


def _json_disk(plan: Mapping[str, Any]) -> int:
    sort = plan["Sort Space Used"] if plan.get("Sort Space Type") == "Disk" else 0
    store = plan["Maximum Storage"] if plan.get("Storage") == "Disk" else 0
    groups = (plan.get(name, {}).get("Sort Space Disk", {}) for name in ("Full-sort Groups", "Pre-sorted Groups"))
    return int(sort + store + plan.get("Disk Usage", 0) + sum(group.get("Peak Sort Space Used", 0) for group in groups))


def relations_read(plan: Mapping[str, Any]) -> tuple[Relation, ...]:
    """Return the relations that a verbose plan reads."""
    nodes = (node for node in _json_walk(plan) if "Relation Name" in node)
    return tuple(dict.fromkeys(Relation(node["Relation Name"], node.get("Schema")) for node in nodes))


def list_schemas(plan: Mapping[str, Any]) -> frozenset[str]:
    """Return the schemas of other objects in a verbose plan: functions, types, operators, collations.

    Keys of sorts have collations without a schema: `list_collations`.
    """
    named = {node["Schema"] for node in _json_walk(plan) if "Relation Name" not in node and "Schema" in node}
    matches = (match for text in _list_texts(plan) for match in _QUALIFIED.finditer(text))
    return frozenset({*named, *(_unquote(next(filter(None, match.groups()))) for match in matches)})


def list_collations(plan: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of collations that a plan writes without a schema, wherever that schema is."""
    return frozenset(_unquote(match[1]) for text in _list_texts(plan) for match in _COLLATION.finditer(text))


def _list_texts(plan: Mapping[str, Any]) -> Iterator[str]:
    for node in _json_walk(plan):
        values: list[Any] = list(node.values())
        lists: list[list[Any]] = [value for value in values if isinstance(value, list)]
        yield from (each for each in (*values, *chain.from_iterable(lists)) if isinstance(each, str))


def _json_walk(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _json_walk(child)


_PLAIN = r'(?:"(?:[^"]|"")+"|[^\W\d][\w$]*)'
_QUALIFIED = re.compile(
    rf"(?:::|\bOPERATOR\(|\bCOLLATE )({_PLAIN})\.|(?<![\w.\"])({_PLAIN})\.{_PLAIN}\("
    rf"|\(({_PLAIN})\.{_PLAIN}(?: \w+)?\) [A-Z]"
)
"""Matches a schema before a type, an operator or a collation; before a function; before a table of a foreign join."""
_COLLATION = re.compile(rf"\bCOLLATE ({_PLAIN})(?![\w$.])")
_NAME = r"""(?:"(?:[^"]|"")+"|[^\s".]+)"""
_NODE = re.compile(
    r"(?P<indent> *)(?:->  )?(?P<title>\S.*?)  \(cost=[\d.]+\.\.(?P<cost>[\d.]+) rows=(?P<rows>\d+) width=\d+\)"
    r"(?: \((?:actual time=[\d.]+ rows=(?P<actual>[\d.]+) loops=(?P<loops>\d+)|(?P<never>never executed))\))?"
)
_SUBPLAN = re.compile(r" *(?:InitPlan|SubPlan|CTE)\b[^:]*")
_DETAIL = re.compile(r" +(?P<name>[A-Z][\w ]*): (?P<value>.*)")
_ON = re.compile(rf" Scan\b.* on (?:{_NAME}\.)?(?P<relation>{_NAME})(?: {_NAME})?")
_DISK = re.compile(r"(?:(?<!Average )Disk|Disk Usage|Storage: Disk  Maximum Storage): (\d+)kB")
_BATCHES = re.compile(r"Buckets: .* Batches: (\d+)")


def from_text(lines: Sequence[str]) -> Node:
    """Return the tree that FORMAT TEXT prints."""
    found: list[tuple[int, Node]] = []
    part: Part = "input"
    for line in lines:
        match = _NODE.fullmatch(line)
        if match is None:
            part = "subplan" if _SUBPLAN.fullmatch(line) else part
            if found:
                _read_detail(found[-1][1], line)
            continue
        indent, node = len(match["indent"]), _text_node(match)
        parent = next((above for width, above in reversed(found) if width < indent), None)
        if parent is not None:
            parent.add(node, part)
        found.append((indent, node))
        part = "input"
    return found[0][1]


def _text_node(match: re.Match[str]) -> Node:
    place = _ON.search(match["title"])
    return Node(
        title=match["title"],
        rows=float(match["rows"]),
        cost=float(match["cost"]),
        relation=_unquote(place["relation"]) if place else None,
        actual=None if match["actual"] is None else float(match["actual"]),
        loops=float(match["loops"] or 1),
    )


def _read_detail(node: Node, line: str) -> None:
    detail = _DETAIL.fullmatch(line)
    if detail is None:
        return
    name, value = detail["name"], detail["value"]
    if name in CONDITIONS:
        node.conditions[name] = value
        return
    if name == "Rows Removed by Filter":
        node.removed = float(value)
    node.disk += sum(int(size) for size in _DISK.findall(line))
    if batches := _BATCHES.search(line):
        node.batches = int(batches[1])


def _unquote(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
