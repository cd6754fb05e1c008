"""Patterns of names that are found by a name are those that fit it, in their order."""

from dataclasses import replace
from itertools import product

import pytest
from dragoman.access.patterns import ByName, name_patterns
from dragoman.plugins import Plugins

LETTERS = ("a", "A", "ß", "SS", "ss", "İ", "i̇", "ı", "I", "ſ", "s", "Σ", "ς", '"')
NAMES = [*LETTERS, *map("".join, product(LETTERS, repeat=2))]
WRITTEN = [
    *(name for name in NAMES if '"' not in name),
    *(f'"{name.replace(chr(34), chr(34) * 2)}"' for name in NAMES),
    *("*", "a*", "*A", '"*"'),
]


@pytest.mark.parametrize("folding", ["insensitive", "lower", "upper", "exact"])
def test_what_fits_a_name_is_found_by_it(folding):
    dialect = replace(Plugins.discover().load("sqlite").dialect, folding=folding)
    patterns = [pattern for text in WRITTEN for pattern in name_patterns(text)]
    assert len(patterns) == len(WRITTEN)
    by_name = ByName(dialect, [(pattern, place) for place, pattern in enumerate(patterns)])
    for stored in (*NAMES, "*"):
        fitting = [place for place, pattern in enumerate(patterns) if pattern.fits(stored, dialect)]
        found = by_name.find(stored)
        assert [place for place in found if patterns[place].fits(stored, dialect)] == fitting
        assert len(found) < 20
