"""Runs over random schemas and queries that come of seeds, and what a dialect and the catalog know of such a query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random

import pytest
from dragoman import Dialect, DragomanError, Relation, Statement, Table, TableColumn
from dragoman.sql.columns import Names
from dragoman.validators import read
from naming import Schema, schema

PER_SCHEMA = 100
"""Queries over one random schema."""


def runs(short: int, long: int) -> pytest.MarkDecorator:
    """A short run over the same queries every time, and a long one over others."""
    marks = (pytest.mark.nightly, pytest.mark.timeout(3_000))
    return pytest.mark.parametrize(
        "seeds",
        [
            pytest.param(range(short), id="short", marks=pytest.mark.timeout(400)),
            pytest.param(range(10**6, 10**6 + long), id="long", marks=marks),
        ],
    )


def schemas(seeds: range) -> Iterator[tuple[Schema, range]]:
    """Yield random schemas, and the seeds of the queries over each."""
    for first in range(seeds.start, seeds.stop, PER_SCHEMA):
        yield schema(Random(first // PER_SCHEMA)), range(first, min(first + PER_SCHEMA, seeds.stop))


def prepare(
    dialect: Dialect, text: str, tables: Schema
) -> tuple[Statement, Mapping[Relation, Table | None], Names] | None:
    """Return what the columns of a query are found by; None: the dialect refuses to read it."""
    known = {
        name: Table(relation=Relation(name), columns=tuple(TableColumn(name=column, type="") for column in columns))
        for name, columns in tables.items()
    }
    names = Names(same=dialect.same, implicit=dialect.implicit_columns, reserved=dialect.reserved)
    try:
        statement = Statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon)
        parsed = read(dialect, statement)
    except DragomanError:
        return None
    if parsed.refusal:
        return None
    return statement, {each: known.get(each.name.lower()) for each in parsed.names}, names
