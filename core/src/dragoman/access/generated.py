"""Generated columns. Callers who may not see the source columns do not see the columns computed from them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from dragoman.model import UNKNOWN_EXPRESSION, TableColumn


def leave_out_telling(
    columns: Sequence[TableColumn], hidden: Iterable[str], spared: Collection[str]
) -> list[TableColumn]:
    """Return columns without the generated ones that are computed from `hidden` columns, directly or through others.

    A column whose expression is unknown counts as computed from one.

    `spared`: the names of generated columns that stay, whatever they are computed from.
    """
    left, kept_back = list(columns), set(hidden)
    while telling := {each.name for each in left if each.name not in spared and _is_made_of(each, kept_back)}:
        left = [each for each in left if each.name not in telling]
        kept_back |= telling
    return left


def _is_made_of(column: TableColumn, names: Collection[str]) -> bool:
    """Return whether the expression of a generated column may name one of them, regardless of case and quotes."""
    text = column.generated
    if text is None:
        return False
    return text == UNKNOWN_EXPRESSION or any(_pattern(name).search(text) for name in names if name != column.name)


def _pattern(name: str) -> re.Pattern[str]:
    forms = {name, *(name.replace(quote, quote * 2) for quote in '"`]')}
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(forms)))})(?!\w)", re.IGNORECASE)
