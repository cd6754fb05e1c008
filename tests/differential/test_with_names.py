"""A relation beside a WITH name that is nearly its own is read as a relation, wherever the engine reads one."""

import sqlite3
import unicodedata
from collections.abc import Callable, Iterator

import duckdb
import pytest
from dragoman import Dialect, InvalidSql, Statement
from dragoman.validators import read
from dragoman_duckdb.plugin import plugin as duckdb_plugin
from dragoman_sqlite.plugin import plugin as sqlite

Reads = Callable[[str], bool]
WRITTEN = ('"{}"', "{}")


def near_letters() -> Iterator[tuple[str, str]]:
    """Yield pairs of letters that some folding makes one: of case, for comparing, or of a normal form."""
    for code in range(0x41, 0x1E944):
        letter = chr(code)
        forms = {
            *(letter.lower(), letter.upper(), letter.title(), letter.casefold(), letter.swapcase()),
            *(unicodedata.normalize(form, letter) for form in ("NFC", "NFD", "NFKC", "NFKD")),
        }
        if letter.isalpha() and not 0xD800 <= code < 0xE000:
            yield from ((letter, form) for form in sorted(forms - {letter}) if form.isalpha())
            yield from ((form, letter) for form in sorted(forms - {letter}) if form.isalpha())


def statements(letters: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield names of tables, each with a query in which a WITH name is nearly that one."""
    for one, other in letters:
        for member in WRITTEN:
            for table in WRITTEN:
                name = f"x{other}y"
                yield (
                    name,
                    f"WITH {member.format(f'x{one}y')} AS (SELECT 1 AS marker) SELECT id FROM {table.format(name)}",
                )


def sees(dialect: Dialect, sql: str, table: str) -> bool:
    """Whether a dialect reads a table in a statement, or refuses the statement."""
    try:
        parsed = read(dialect, Statement.parse(sql, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
    except InvalidSql:
        return True
    return parsed.refusal is not None or table in {relation.name for relation in parsed.names}


def check(
    dialect: Dialect, create: Callable[[str], object], drop: Callable[[str], object], reads: Reads, every: int
) -> None:
    """Compare what a dialect reads with what its engine reads. `every`: 23 takes one statement of 23."""
    of_engine, unseen = 0, []
    for name, sql in list(statements(near_letters()))[::every]:
        create(name)
        if reads(sql):
            of_engine += 1
            unseen += [] if sees(dialect, sql, name) else [sql]
        drop(name)
    assert of_engine > 100
    assert not unseen, unseen[:10]


def check_sqlite(every: int) -> None:
    connection = sqlite3.connect(":memory:")

    def reads(sql: str) -> bool:
        try:
            connection.execute(sql)
        except sqlite3.OperationalError:
            return False
        return True

    check(
        sqlite.dialect,
        lambda name: connection.execute(f'CREATE TABLE "{name}" (id)'),
        lambda name: connection.execute(f'DROP TABLE "{name}"'),
        reads,
        every,
    )


def test_sqlite_reads_no_relation_that_its_dialect_takes_for_a_with_name() -> None:
    check_sqlite(23)


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_sqlite_reads_no_relation_of_any_letter_that_its_dialect_takes_for_a_with_name() -> None:
    check_sqlite(1)


@pytest.mark.full
def test_duckdb_reads_no_relation_that_its_dialect_takes_for_a_with_name() -> None:
    connection = duckdb.connect()

    def reads(sql: str) -> bool:
        try:
            connection.execute(sql)
        except duckdb.Error:
            return False
        return True

    check(
        duckdb_plugin.dialect,
        lambda name: connection.execute(f'CREATE TABLE "{name}" (id INTEGER)'),
        lambda name: connection.execute(f'DROP TABLE "{name}"'),
        reads,
        41,
    )
