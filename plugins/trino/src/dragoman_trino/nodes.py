"""Plans as trees, from the JSON form of the logical plan."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dragoman_trino.tables import finite


@dataclass(frozen=True, slots=True)
class Node:
    """A step of a plan. `rows`: the estimated number; None if unknown, and possibly huge."""

    name: str
    rows: float | None
    children: tuple[Node, ...] = ()

    def walk(self, limited: bool = False) -> Iterator[tuple[Node, bool]]:
        """Yield every step, and whether a step above it may stop it early."""
        yield self, limited
        stopped = self.name in _STOPS or (limited and self.name in _PASSES)
        for child in self.children:
            yield from child.walk(stopped)


_STOPS = frozenset({"Limit", "LimitPartial"})
_PASSES = frozenset({"LocalExchange", "RemoteExchange", "Project", "Filter", "FilterProject", "CrossJoin", "InnerJoin"})


def from_json(told: Mapping[str, Any]) -> Node:
    """Return the tree of a plan. If an exchange or a projection has no number of rows, its input's is used."""
    children = tuple(from_json(child) for child in told["children"])
    estimates: Sequence[Mapping[str, Any]] = told["estimates"]
    rows = finite(estimates[-1]["outputRowCount"]) if estimates else None
    return Node(told["name"], rows, children)


def sum_costs(told: Mapping[str, Any]) -> float | None:
    """Return the sum of the known CPU costs of a plan's steps, which is a lower bound. None: no cost is known.

    The server's own total is unknown if that of any step is, and every aggregate has such a step.
    """
    own = finite(told["estimates"][-1]["cpuCost"]) if told["estimates"] else None
    return sum((own or 0.0, *(sum_costs(child) or 0.0 for child in told["children"]))) or None
