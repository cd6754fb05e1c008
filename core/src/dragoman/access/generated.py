"""Columns that the database computes from others: whoever does not see those, does not see what is made of them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from dragoman.model import TableColumn


def leave_out_telling(
    columns: Sequence[TableColumn], hidden: Iterable[str], spared: Collection[str]
) -> list[TableColumn]:
    """Return columns without generated ones that are made of `hidden` columns, through further ones too.

    `spared`: the names of generated columns that stay, whatever they are made of.
    """
    left, kept_back = list(columns), set(hidden)
    while telling := {each.name for each in left if each.name not in spared and _is_made_of(each, kept_back)}:
        left = [each for each in left if each.name not in telling]
        kept_back |= telling
    return left


def _is_made_of(column: TableColumn, names: Collection[str]) -> bool:
    """Whether the expression of a generated column may name one of them; case and quotes tell nothing."""
    text = column.generated
    return text is not None and any(_pattern(name).search(text) for name in names if name != column.name)


def _pattern(name: str) -> re.Pattern[str]:
    forms = {name, *(name.replace(quote, quote * 2) for quote in '"`]')}
    return re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, sorted(forms)))})(?!\w)", re.IGNORECASE)
