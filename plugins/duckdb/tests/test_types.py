"""What DuckDB's names of types mean."""

import pytest
from dragoman import Column, Kind
from dragoman_duckdb.types import columns

TYPES = {
    "INTEGER": ("integer", Kind("integer")),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz", Kind("text")),
    "ENUM('Sad')": ("ENUM('Sad')", Kind("text")),
    "DATE[]": ("date[]", Kind("native")),
    "HUGEINT": ("hugeint", Kind("integer")),
    "STRUCT(a INTEGER)": ("struct(a integer)", Kind("native")),
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_column_has_the_short_name_of_its_type(type_: str):
    shown, kind = TYPES[type_]
    assert columns(["a", "a"], [type_, type_]) == [Column("a", shown, kind)] * 2


def test_each_type_is_read_once_however_many_columns_have_it(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    monkeypatch.setattr("dragoman_duckdb.types.exact", lambda type_: read.append(type_) or type_)
    assert len(columns(["a"] * 30_000, [*TYPES] * 5_000)) == 30_000
    assert sorted(read) == sorted(TYPES)
