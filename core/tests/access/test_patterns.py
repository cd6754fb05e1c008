"""Patterns of names that are found by a name are those that fit it, in their order."""

from dataclasses import replace
from itertools import product
from typing import Any

import pytest
from dragoman import Database, Relation, Table, TableColumn
from dragoman.access import misfits
from dragoman.access.grants import Grants, ReadGrant
from dragoman.access.patterns import ByName, name_patterns
from dragoman.config.roles import Grant
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


CASES = [*("".join(letters) for letters in product("sS", "sS", "nN")), "\u017fSN"]


@pytest.mark.parametrize("written", ["*.ssn", "SSN", "main.people.Ssn", "*.s*", '*."ssn"'])
@pytest.mark.parametrize("how", ["deny_columns", "masks"])
def test_where_names_keep_their_case_a_column_is_hidden_in_any_case(how, written):
    """MariaDB compares the names of tables exactly, and those of columns without case."""
    dialect = replace(Plugins.discover().load("sqlite").dialect, folding="exact")
    hiding: dict[str, Any] = {"masks": {written: "null"}} if how == "masks" else {"deny_columns": (written,)}
    grant = ReadGrant.read("analyst", Grant(database="shop", tables=("main.*",), key="grants.0", **hiding))
    database = Database(name="shop", dialect="sqlite")
    for stored in CASES:
        columns = tuple(TableColumn(name=name, type="text") for name in ("id", stored))
        table = Table(relation=Relation("people", "main"), type="table", columns=columns)
        given = Grants([grant], dialect, database).on(table)
        assert given
        assert not given.whole
        assert stored not in given.columns or stored in given.changed, stored
        assert "id" in given.columns
        assert not list(misfits([grant], [table], dialect, database))


def test_where_names_keep_their_case_a_column_is_granted_in_its_own():
    dialect = replace(Plugins.discover().load("sqlite").dialect, folding="exact")
    grant = ReadGrant.read("a", Grant(database="shop", tables=("main.*",), key="grants.0", columns=("id", "ssn")))
    columns = tuple(TableColumn(name=name, type="text") for name in ("id", "SSN"))
    table = Table(relation=Relation("people", "main"), type="table", columns=columns)
    given = Grants([grant], dialect, Database(name="shop", dialect="sqlite")).on(table)
    assert given
    assert given.columns == ("id",)
