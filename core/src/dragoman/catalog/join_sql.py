"""A join path as SQL that runs."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.catalog.joins import Step
from dragoman.catalog.names import Namespace


def join_sql(path: Sequence[Step], namespace: Namespace) -> str:
    """Return a whole SELECT along `path`: the columns of both ends, with the tables aliased t1, t2, ... in order."""
    joins = [
        f" JOIN {namespace.name(step.target)} AS t{number + 1} ON {_condition(step, number, namespace)}"
        for number, step in enumerate(path, start=1)
    ]
    return f"SELECT t1.*, t{len(path) + 1}.* FROM {namespace.name(path[0].source)} AS t1{''.join(joins)}"


def _condition(step: Step, number: int, namespace: Namespace) -> str:
    quote = namespace.dialect.quote
    pairs = zip(step.source_columns, step.target_columns, strict=True)
    return " AND ".join(f"t{number}.{quote(left)} = t{number + 1}.{quote(right)}" for left, right in pairs)
