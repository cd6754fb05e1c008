"""Over labelled columns of public schemas no personal value is shown, and most lists of kinds are."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman import ColumnProfile, KnowledgeSettings, Relation, Table, TableColumn
from dragoman.knowledge.gate import Gate

CORPUS = Path(__file__).with_name("columns.tsv")
ROWS = 10_000


def columns() -> Iterator[tuple[str, str, str, tuple[str, ...]]]:
    """(table, column, label, values), from what public schemas hold."""
    for line in CORPUS.read_text(encoding="utf-8").splitlines():
        table, column, label, values = line.split("\t")
        yield table, column, label, tuple(values.split(","))


def shown(table: str, name: str, values: tuple[str, ...]) -> tuple[str, ...]:
    whole = all(value.isdigit() and str(int(value)) == value for value in values)
    column = TableColumn(name=name, type="integer" if whole else "text")
    own = Table(relation=Relation(table.partition(".")[2]), columns=(column,), row_estimate=ROWS)
    profile = ColumnProfile(name=name, values=values, distinct=len(values), rows=ROWS)
    return Gate(KnowledgeSettings()).filter(own, [profile])[name].values


def test_the_corpus_is_large_and_labelled():
    labels = [label for _, _, label, _ in columns()]
    assert len(labels) >= 300
    assert set(labels) == {"personal", "harmless"}


@pytest.mark.parametrize(
    ("table", "column", "values"), [(t, c, values) for t, c, label, values in columns() if label == "personal"]
)
def test_no_personal_value_is_shown(table: str, column: str, values: tuple[str, ...]):
    assert shown(table, column, values) == ()


def test_most_lists_of_kinds_are_shown():
    harmless = [(t, c, values) for t, c, label, values in columns() if label == "harmless"]
    stopped = [f"{t}.{c}" for t, c, values in harmless if not shown(t, c, values)]
    assert len(stopped) <= 0.2 * len(harmless), stopped
