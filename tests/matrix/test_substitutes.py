"""What is said to be written instead of a function of another database passes the gate of the dialect that says so."""

import re
from collections.abc import Iterator

import pytest
from dragoman import Dialect
from dragoman.plugins import Plugins
from dragoman.sql import Statement
from dragoman.validators import ReadOnly, read


def _substitutes() -> Iterator[tuple[str, str, str]]:
    plugins = Plugins.discover()
    for name in ("postgres", "sqlite", "trino", "duckdb"):
        for function, instead in plugins.load(name).dialect.loaded_rules.substitutes.items():
            yield name, function, instead


def _queries(instead: str) -> Iterator[str]:
    """Each way to write it, as a query."""
    for way in re.split(r", or ", instead):
        expression = (
            re.sub(r",? for .*|a path such as ", "", way).replace("condition", "x = 1").replace("type)", "integer)")
        )
        named = expression.replace("the text", "x").replace("the_left", "a").replace("the_right", "b")
        yield f"SELECT * {named}" if named.startswith("FROM") else f"SELECT {named} FROM t"


@pytest.fixture(scope="module")
def dialects() -> dict[str, Dialect]:
    plugins = Plugins.discover()
    return {name: plugins.load(name).dialect for name in ("postgres", "sqlite", "trino", "duckdb")}


@pytest.mark.parametrize(("dialect", "function", "instead"), sorted(_substitutes()))
def test_what_is_to_be_written_instead_passes_the_gate(
    dialects: dict[str, Dialect], dialect: str, function: str, instead: str
):
    own = dialects[dialect]
    assert function not in own.loaded_rules.functions
    for sql in _queries(instead):
        statement = Statement.parse(sql, sqlglot=own.sqlglot, lexicon=own.lexicon)
        ReadOnly(own, None).judge(read(own, statement))


@pytest.mark.parametrize("part", ["year", "quarter", "month", "week", "day", "hour", "minute", "second"])
def test_a_part_of_a_time_is_written_as_this_part(dialects: dict[str, Dialect], part: str):
    told = [own.loaded_rules.substitutes.get(part, "") for own in dialects.values()]
    assert {found[1].lower() for found in map(re.compile(r"EXTRACT\((\w+)").match, told) if found} == {part}
