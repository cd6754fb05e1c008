"""On SQLite a caller's part of a table answers as a table that holds only this part.

Its columns keep their affinities and collations, on which comparing, sorting and grouping depend.
"""

import contextlib
import hashlib
import json
import random
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from dragoman import Gateway
from dragoman.config import load
from dragoman.tools import Toolbox

from .conftest import ANALYST, ask

COLUMNS = {
    "folded": "TEXT COLLATE NOCASE",
    "trimmed": "TEXT COLLATE RTRIM",
    "plain": "TEXT",
    "short": "VARCHAR(5)",
    "number": "NUMERIC",
    "whole": "INT",
    "rough": "REAL",
    "octets": "BLOB",
    "anything": "",
    "amount": "DECIMAL(10,2)",
    "day": "DATE",
    "truth": "BOOLEAN",
}
VALUES = ("a", "A", "b", "ab", "x ", "x", "", "1", "01", "1.0", "10", 1, 1.0, 1.5, 2, 10, b"a", b"1", None, None)
LITERALS = (
    "'a'",
    "'A'",
    "'x'",
    "'x '",
    "'b'",
    "1",
    "'1'",
    "'01'",
    "1.0",
    "'1.0'",
    "10",
    "'10'",
    "1.5",
    "x'61'",
    "NULL",
)
COMPARED = ("=", "<>", "<", ">=", "IS", "IS NOT", "LIKE")
TABLE = f"""
CREATE TABLE t (id INTEGER PRIMARY KEY, tenant TEXT COLLATE NOCASE, hidden TEXT,
  {", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())});
CREATE INDEX by_folded ON t (folded);
CREATE INDEX by_whole ON t (whole);
CREATE TABLE u (t_id INTEGER, folded TEXT COLLATE NOCASE, trimmed TEXT COLLATE RTRIM, plain TEXT, number NUMERIC);
"""
GRANT = """
[[roles.analyst.grants]]
database = "shop"
tables = ["main.t"]
deny_columns = ["hidden"]
{}
"""
OTHER = """
[[roles.analyst.grants]]
database = "shop"
tables = ["main.u"]
"""
MASKED = "masks = { " + ", ".join(f'{name} = "null"' for name in COLUMNS) + " }"
CUT = "ALTER TABLE t DROP COLUMN hidden"
TENANT = 'filter = "tenant = $claim.tenant"'
BLANK = f"UPDATE t SET {', '.join(f'{name} = NULL' for name in COLUMNS)} WHERE tenant <> 'a'"
PARTS = {
    "columns": ((), ""),
    "rows": ((TENANT,), "DELETE FROM t WHERE tenant <> 'a'"),
    "rows and masked rows": (
        (TENANT, f'filter = "id % 2 = 0"\n{MASKED}'),
        f"DELETE FROM t WHERE tenant <> 'a' AND id % 2; {BLANK}",
    ),
    "all rows, masked": ((TENANT, MASKED), BLANK),
}


def fill(connection: apsw.Connection) -> None:
    """Fill the tables with values of every kind, by one seed."""
    dice = random.Random(1)
    for number in range(40):
        row = [number, dice.choice("aAbB"), "zyx", *dice.choices(VALUES, k=len(COLUMNS))]
        connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(row))})", row)
        connection.execute("INSERT INTO u VALUES (?, ?, ?, ?, ?)", [number, *dice.choices(VALUES, k=4)])


def condition(dice: random.Random) -> str:
    """Return a random condition on `t`."""
    column, other, literal = dice.choice([*COLUMNS, "tenant"]), dice.choice(list(COLUMNS)), dice.choice(LITERALS)
    match dice.randrange(7):
        case 0 | 1:
            return f"t.{column} {dice.choice(COMPARED)} {literal}"
        case 2:
            return f"{literal} {dice.choice(COMPARED[:4])} t.{column}"
        case 3:
            return f"t.{column} {dice.choice(COMPARED[:6])} t.{other}"
        case 4:
            return f"t.{column} IN ({', '.join(dice.sample(LITERALS, 3))})"
        case 5:
            return f"t.{column} BETWEEN {literal} AND {dice.choice(LITERALS)}"
        case _:
            return f"NOT ({condition(dice)} {dice.choice(('AND', 'OR'))} {condition(dice)})"


def statement(dice: random.Random) -> str:
    """Return a random query whose answer depends on how the columns of `t` compare, and not on the order of rows."""
    column, other, shared = (
        dice.choice(list(COLUMNS)),
        dice.choice(list(COLUMNS)),
        dice.choice(("folded", "trimmed", "plain", "number")),
    )
    where = condition(dice)
    return dice.choice(
        (
            f"SELECT id, {column}, typeof({other}) FROM t WHERE {where}",
            f"SELECT * FROM t WHERE {where}",
            f"SELECT count(*), count(DISTINCT {column}) FROM t WHERE {where}",
            f"SELECT count(*), min(id) FROM t GROUP BY {column}",
            f"SELECT count(*) FROM (SELECT DISTINCT {column}, {other} FROM t)",
            f"SELECT group_concat(id) FROM (SELECT id FROM t ORDER BY {column}, {other}, id)",
            f"SELECT id, t_id FROM t JOIN u ON t.{column} = u.{shared} WHERE {where}",
            f"SELECT id, t_id FROM u LEFT JOIN t USING ({shared})",
            f"SELECT id FROM t WHERE {column} IN (SELECT {shared} FROM u)",
            f"SELECT count(*) FROM (SELECT {column} FROM t UNION SELECT {shared} FROM u)",
            f"SELECT id, CASE {column} WHEN {dice.choice(LITERALS)} THEN 1 WHEN '10' THEN 2 END FROM t",
            f"SELECT id, rank() OVER (PARTITION BY {column} ORDER BY {other}, id) FROM t",
        )
    )


@contextlib.asynccontextmanager
async def opened(folder: Path, roles: str, change: str, encoding: str = "UTF-8") -> AsyncIterator[Toolbox]:
    """The tools over a file with these roles, after a change of what it holds."""
    folder.mkdir()
    with contextlib.closing(apsw.Connection(str(folder / "shop.db"))) as connection:
        connection.execute(f"PRAGMA encoding = '{encoding}'; {TABLE}")
        fill(connection)
        connection.execute(change)
    (folder / "dragoman.toml").write_text(
        f'[databases.shop]\nurl = "sqlite:///shop.db"\nknowledge.values = "off"\n{roles}'
    )
    async with Gateway.open(load(folder / "dragoman.toml", environ={}, folder=folder)) as gateway:
        yield Toolbox(gateway)


def told(answer: dict[str, Any]) -> Any:
    """Return what two answers to one statement must agree in: rows in any order, and types where there are rows."""
    if "error" in answer:
        return answer["error"]["code"]
    return answer["columns"], answer["rows"] and answer["types"], sorted(map(json.dumps, answer["rows"]))


@pytest.mark.parametrize(("encoding", "asked"), [("UTF-8", 250), ("UTF-16le", 60), ("UTF-16be", 60)])
@pytest.mark.parametrize("part", PARTS)
async def test_a_part_of_a_table_compares_as_a_table_of_that_part(tmp_path, part, encoding, asked):
    grants, change = PARTS[part]
    roles = '[roles.analyst]\ngroups = ["analysts"]\n' + "".join(map(GRANT.format, grants or ("",))) + OTHER
    dice = random.Random(part)
    async with (
        opened(tmp_path / "part", roles, "", encoding) as confined,
        opened(tmp_path / "whole", "", f"{change};{CUT}", encoding) as whole,
    ):
        answered = 0
        for _ in range(asked):
            sql = statement(dice)
            shown, expected = [await ask(each, "execute_query", ANALYST, sql=sql) for each in (confined, whole)]
            assert told(shown) == told(expected), sql
            answered += "rows" in shown
        assert answered > 0.8 * asked


BROKEN = {"UTF-8": "66fc72", "UTF-16le": "660000d8", "UTF-16be": "0066d800"}
"""A text that is not valid in each encoding."""


@pytest.mark.parametrize("encoding", BROKEN)
@pytest.mark.parametrize("mask", ["null", "hash", "partial", "year", "substr(plain, 2)", "plain"])
async def test_a_mask_shows_every_row_whatever_the_encoding_and_its_texts(tmp_path, encoding, mask):
    """A hash is that of the text in UTF-8, so that files of every encoding show the same."""
    roles = '[roles.analyst]\ngroups = ["analysts"]\n' + GRANT.format(f'masks = {{ plain = "{mask}" }}')
    change = f"""UPDATE t SET plain = 'größe 🙂' WHERE id = 1;
        UPDATE t SET plain = CAST(x'{BROKEN[encoding]}' AS TEXT) WHERE id = 2"""
    async with opened(tmp_path / "part", roles, change, encoding) as toolbox:
        answer = await ask(toolbox, "execute_query", ANALYST, sql="SELECT id, plain FROM t ORDER BY id")
        assert [row[0] for row in answer["rows"]] == list(range(40))
        if mask == "hash":
            assert answer["rows"][1][1] == hashlib.sha256("größe 🙂".encode()).hexdigest()
            assert len(answer["rows"][2][1]) == 64


BOMBS = (
    "SELECT id FROM t WHERE {0} > 0",
    "SELECT {0}, count(*) FROM t GROUP BY 1",
    "SELECT id FROM t WHERE folded = 'b' AND {0} > 0",
    "SELECT id FROM t WHERE id = 1 AND {0} > 0",
    "SELECT max({0}) FROM t",
    "SELECT t_id FROM u LEFT JOIN t ON t_id = id AND {0} > 0",
    "SELECT t_id FROM u WHERE EXISTS (SELECT 1 FROM t WHERE id = t_id AND {0} > 0)",
    "SELECT {0} FROM t UNION SELECT 1",
    "SELECT id FROM t ORDER BY {0} LIMIT 1",
)
"""Statements that compute with a column for each row that they read."""


async def test_no_condition_is_evaluated_on_what_a_mask_of_some_rows_hides(tmp_path):
    """The half of a view that decides how columns compare reads the table itself, but no row of it."""
    change = "UPDATE t SET folded = CASE tenant WHEN 'a' THEN 'a' ELSE 'b' END"
    roles = '[roles.analyst]\ngroups = ["analysts"]\n' + GRANT.format(TENANT) + GRANT.format(MASKED) + OTHER
    fails = "abs(CASE t.folded WHEN 'b' THEN -9223372036854775808 ELSE 1 END)"
    async with opened(tmp_path / "part", roles, change) as toolbox:
        for form in BOMBS:
            answer = await ask(toolbox, "execute_query", ANALYST, sql=form.format(fails))
            assert "rows" in answer, form
