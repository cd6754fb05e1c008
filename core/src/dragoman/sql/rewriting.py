"""What a dialect's rewrite of another SQL is built from.

A rewrite gets the tree of a query and returns the tree that its own engine answers alike. It replaces what differs
(`replace_nodes`), refuses what it does not know (`refuse_others`), and tells the caller what may differ (`Notes`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any

from sqlglot import exp

from dragoman.errors import Unsupported

__all__ = [
    "UNKNOWN",
    "Notes",
    "bare",
    "call",
    "exact",
    "is_integer",
    "is_long",
    "is_ours",
    "is_text",
    "number",
    "only_selects",
    "ours",
    "refuse_others",
    "replace_nodes",
    "text",
]

UNKNOWN = "No translation rules cover this pair of dialects: check the result."
"""The notice of a translation that no rewrite was written for."""
_DIGITS = re.compile(r"\d+\.?\d*|\.\d+")
_LARGEST = 100


@dataclass(frozen=True, slots=True)
class Notes:
    """The SQL that a tree was written in, in sqlglot's words, and the notices for the caller."""

    source: str
    notices: list[str]

    def add(self, notice: str) -> None:
        """Add a notice, once."""
        if notice not in self.notices:
            self.notices.append(notice)


Rewriter = Callable[[Any, Any], Any]
"""Returns what takes the place of a node, given the node and the notes."""
Refuse = Callable[[str, str], Unsupported]
"""Returns the refusal of a construct (`what`), and names another way to write it (`instead`)."""


def replace_nodes(tree: Any, rewriters: Mapping[type[Any], Rewriter], notes: Notes) -> Any:
    """Return the tree after each node was replaced by what the rewriter of its class returns.

    Children come first: a rewriter finds what is below its node already rewritten. It may return the node itself, or a
    tree that contains it.
    """
    for node in reversed(list(tree.walk())):
        rewriter = rewriters.get(node.__class__)
        if rewriter is None:
            continue
        parent, place, index = node.parent, node.arg_key, node.index
        new = rewriter(node, notes)
        if parent is None:
            tree = new
        elif new is not node:
            parent.set(place, new, index)
    return tree


def refuse_others(tree: Any, same: Container[type[Any]], refuse: Refuse, engine: str) -> None:
    """Raise `Unsupported` for a node that is not in `same` and that no rewriter made: the engine may read it otherwise.

    `same`: the classes of nodes that mean the same in every SQL that the rewrite covers.
    """
    for node in tree.walk():
        if node.__class__ not in same and not is_ours(node):
            raise _refusal(node, refuse, engine)


def _refusal(node: Any, refuse: Refuse, engine: str) -> Unsupported:
    if isinstance(node, exp.Anonymous):
        return refuse(f"The function {node.name}", f"Use a function that {engine} has.")
    what = node.sql_name().lower() if isinstance(node, exp.Func) else f"{node.key.upper()} ({node.sql()[:40]})"
    its = f"{engine}'" if engine.endswith("s") else f"{engine}'s"
    return refuse(what, f"Write the query in {its} own SQL.")


# Trees


def ours(node: Any, kind: str = "") -> Any:
    """Mark a node as made by a rewriter. `kind`: the kind of its result, if later rewriters need to know it."""
    node.meta.update(ours=True, kind=kind)
    return node


def is_ours(node: Any) -> bool:
    """Return whether a rewriter made a node."""
    return bool(node.meta.get("ours"))


def call(name: str, *arguments: Any, kind: str = "") -> Any:
    """Return a call of one of the engine's functions. An argument is a node, a text or a whole number."""
    given = [text(a) if isinstance(a, str) else number(a) if isinstance(a, int) else a for a in arguments]
    return ours(exp.Anonymous(this=name, expressions=given), kind)


def text(value: str) -> Any:
    """Return a text literal."""
    return exp.Literal.string(value)


def number(value: object) -> Any:
    """Return a number literal."""
    return exp.Literal.number(str(value))


def bare(node: Any) -> Any:
    """Return `node` without the parentheses around it."""
    while isinstance(node, exp.Paren):
        node = node.this
    return node


# Knowledge of values


def is_text(node: Any) -> bool:
    """Return whether a node is a text literal."""
    return isinstance(node, exp.Literal) and bool(node.is_string)


def is_integer(node: Any) -> bool:
    """Return whether a node is a whole number written as digits."""
    return isinstance(node, exp.Literal) and not node.is_string and node.name.isdigit()


def exact(node: Any) -> Decimal | None:
    """Return the value of a number literal, in parentheses and with a sign if it has them; else None."""
    node = bare(node)
    if isinstance(node, exp.Neg):
        inner = exact(node.this)
        return None if inner is None else -inner
    if isinstance(node, exp.Literal) and not node.is_string and _DIGITS.fullmatch(node.name):
        return Decimal(node.name)
    return None


def is_long(node: Any) -> bool:
    """Return whether a value has too many nodes to be written twice: it would double with each level of nesting."""
    nodes: Iterator[Any] = node.walk()
    return next(islice(nodes, _LARGEST, None), None) is not None


def only_selects(node: Any) -> bool:
    """Return whether a condition is used only where NULL is as good as false."""
    while isinstance(node.parent, (exp.Paren, exp.And, exp.Or)):
        node = node.parent
    return isinstance(node.parent, (exp.Where, exp.Having))
