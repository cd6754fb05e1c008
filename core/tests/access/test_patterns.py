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


@pytest.mark.parametrize("ascii_folding", [True, False])
@pytest.mark.parametrize("folding", ["insensitive", "lower", "upper", "exact"])
def test_what_fits_a_name_is_found_by_it(folding, ascii_folding):
    sqlite = Plugins.discover().load("sqlite").dialect
    dialect = replace(sqlite, folding=folding, ascii_folding=ascii_folding)
    patterns = [pattern for text in WRITTEN for pattern in name_patterns(text)]
    assert len(patterns) == len(WRITTEN)
    by_name = ByName(dialect, [(pattern, place) for place, pattern in enumerate(patterns)])
    for stored in (*NAMES, "*"):
        fitting = [place for place, pattern in enumerate(patterns) if pattern.fits(stored, dialect)]
        found = by_name.find(stored)
        assert [place for place in found if patterns[place].fits(stored, dialect)] == fitting
        assert len(found) < 20


@pytest.mark.parametrize(
    ("folding", "written", "stored"),
    [
        ("lower", "Über", "Über"),
        ("insensitive", "ÜBER", "Über"),
        ("upper", "über", "üBER"),
        ("lower", "Ü*", "Über"),
        ("insensitive", "*R_Ü", "uber_Ü"),
    ],
)
def test_where_ascii_folds_alone_other_letters_stay(folding, written, stored):
    dialect = replace(Plugins.discover().load("sqlite").dialect, folding=folding, ascii_folding=True)
    (pattern,) = name_patterns(written)
    assert pattern.fits(stored, dialect)
    assert not pattern.fits(stored.replace("Ü", "ü") if "Ü" in stored else stored.replace("ü", "Ü"), dialect)
