"""Bars for a result of two columns, names and numbers, in a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dragoman.cli.output import cell_width, numeric, text_of
from dragoman.words import visible

FEWEST, MOST = 2, 24
WIDTH = 40


def bars(rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return a line for each row; none where bars would say nothing."""
    if not FEWEST <= len(rows) <= MOST or len(rows[0]) != 2 or not numeric(rows, 1) or numeric(rows, 0):
        return []
    values = [float(row[1] or 0) for row in rows]
    most = max(values)
    if min(values) < 0 or most <= 0:
        return []
    names = ["NULL" if row[0] is None else visible(text_of(row[0]))[:WIDTH] for row in rows]
    width = max(map(cell_width, names))
    return [
        f"{name}{' ' * (width - cell_width(name))}  {'█' * max(round(value / most * WIDTH), value > 0)}"
        for name, value in zip(names, values, strict=True)
    ]
