"""A word of DuckDB's grammar is no name without quotes: what reads as a table with an alias may be `SHOW TABLES`."""

import contextlib
from pathlib import Path

import duckdb
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.errors import DragomanError
from dragoman.model import Principal
from dragoman.testing.schemas import INSPECTING
from dragoman_duckdb.rules import RESERVED

ANN = Principal("ann", subject="ann")
MADE = """
CREATE TABLE shown (id INTEGER, name VARCHAR);
CREATE TABLE zyx (pin VARCHAR);
CREATE TABLE "show" (id INTEGER);
CREATE TABLE "desc" (id INTEGER);
INSERT INTO zyx VALUES ('marked');
CREATE VIEW peeks AS WITH "show" AS (SELECT 1) SELECT * FROM (SHOW TABLES);
CREATE VIEW looks AS SELECT * FROM (DESCRIBE zyx);
CREATE VIEW guesses AS SELECT 'zyx' = ANY (SHOW TABLES);
"""
ROLE = """
[databases.shop]
url = "duckdb:///shop.duckdb"
[roles.r]
principals = ["ann"]
[[roles.r.grants]]
database = "shop"
tables = ["main.*"]
deny = ["main.zyx"]
"""
FORMS = ("({} zyx)", "({} tables)", "({})")
SHADOWED, PLAIN = 'WITH "{0}" AS (SELECT 1 AS x) SELECT * FROM {1}', "SELECT * FROM {1}"
STATEMENTS = (
    *(SHADOWED.format(word, form.format(word)) for word in sorted({*RESERVED, *INSPECTING}) for form in FORMS),
    *(PLAIN.format(word, form.format(word)) for word in INSPECTING for form in FORMS),
    "SELECT * FROM (show ALL tables)",
    "SELECT * FROM (show main.zyx)",
    "SELECT 1 WHERE EXISTS (FROM (show tables))",
)

OPERANDS = ("SELECT {}", "SELECT 'zyx' = ANY {}", "SELECT [upper({})]", "VALUES ({})", "SELECT 1 WHERE 'zyx' IN {}")
SUBQUERIES = (*FORMS, "({} databases)")
IN_PLACE_OF_VALUES = (
    *(operand.format(form.format(word)) for word in INSPECTING for form in SUBQUERIES for operand in OPERANDS),
    *(OPERANDS[1].format(form.format(word)) for word in sorted(RESERVED) for form in FORMS[:2]),
)


def open_shop(folder: Path) -> contextlib.AbstractAsyncContextManager[Gateway]:
    with contextlib.closing(duckdb.connect(folder / "shop.duckdb")) as connection:
        connection.execute(MADE)
    file = folder / "dragoman.toml"
    file.write_text(ROLE)
    return Gateway.open(load(file))


async def test_no_word_of_a_statement_shows_what_is_hidden(tmp_path: Path) -> None:
    told: list[str] = []
    async with open_shop(tmp_path) as gateway:
        for sql in STATEMENTS:
            with contextlib.suppress(DragomanError):
                result = await gateway.query("shop", sql, principal=ANN)
                told += [sql] if result.rows != [[1]] and result.rows != () else []
    assert not told


async def test_no_statement_stands_in_the_place_of_a_value(tmp_path: Path) -> None:
    """The engine reads it as a subquery, sqlglot as a column with an alias."""
    told: list[str] = []
    async with open_shop(tmp_path) as gateway:
        for sql in IN_PLACE_OF_VALUES:
            with contextlib.suppress(DragomanError):
                await gateway.query("shop", sql, principal=ANN)
                told.append(sql)
    assert not told


@pytest.mark.parametrize("name", ["peeks", "looks", "guesses"])
async def test_a_view_that_shows_names_needs_a_grant_of_its_own(tmp_path: Path, name: str) -> None:
    async with open_shop(tmp_path) as gateway:
        with pytest.raises(DragomanError):
            await gateway.query("shop", f"SELECT * FROM {name}", principal=ANN)


async def test_such_words_are_names_in_quotes(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as gateway:
        for sql in ('SELECT * FROM "show"', 'SELECT * FROM main."desc" AS t', "SELECT id FROM shown ORDER BY id DESC"):
            await gateway.query("shop", sql, principal=ANN)
