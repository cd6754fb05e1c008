"""A table and a column may be called by any word: what the gateway writes by itself reads them, and nothing else."""

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
import sqlglot
from dragoman import Database, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import Principal
from dragoman.testing.reach import RESERVED
from dragoman.tools import Toolbox

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]

ANN = Principal("ann", subject="ann")
MADE = """
CREATE TABLE "{0}" (id INTEGER PRIMARY KEY, "{0}" VARCHAR);
CREATE TABLE "{0}_" (id INTEGER PRIMARY KEY, other INTEGER REFERENCES "{0}" (id));
INSERT INTO "{0}" VALUES (7, 'of the table');
INSERT INTO "{0}_" VALUES (8, 7);
"""
CASES = [
    pytest.param(engine, every, marks=[pytest.mark.nightly] * (every == 1))
    for engine in ("sqlite", "duckdb")
    for every in (12, 1)
]
"""In CI one word in twelve, and those that most engines reserve."""
NEVER_READ = frozenset({"csv", "json", "optimize", "pragma", "system"})
"""Names that an engine, or a gate, takes for something else even in quotes: tables of them are closed.

On SQLite `pragma_` begins the names of the engine's own tables.
"""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


def find_words() -> list[str]:
    """Return the words of DuckDB's grammar, and those of sqlglot's: keywords, functions, constructs."""
    rows = duckdb.execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()
    words = {str(word) for (word,) in rows}
    for name in ("sqlite", "duckdb"):
        grammar = sqlglot.Dialect.get_or_raise(name)
        parser = grammar.parser_class
        words |= {*grammar.tokenizer_class.KEYWORDS, *parser.FUNCTIONS, *parser.FUNCTION_PARSERS}
        words |= {str(word) for word in parser.NO_PAREN_FUNCTION_PARSERS}
    plain = {word.lower() for word in words if word.replace("_", "a").isalnum() and not word[0].isdigit()}
    return sorted(word for word in plain - NEVER_READ - {"id"} if not word.startswith("sqlite_"))


def make(database: Database, words: Iterable[str]) -> None:
    script = "".join(MADE.format(word) for word in words)
    if database.dialect == "duckdb":
        with duckdb.connect(str(database.database)) as connection:
            connection.execute(script)
    else:
        with closing(sqlite3.connect(str(database.database))) as connection:
            connection.executescript(script)


@pytest.mark.parametrize("hidden", [False, True], ids=["all seen", "a column hidden"])
@pytest.mark.parametrize(("engine", "every"), CASES)
async def test_every_word_is_a_name_for_every_tool(engine: str, every: int, hidden: bool, tmp_path: Path) -> None:
    database = Database(name="shop", dialect=engine, database=str(tmp_path / "shop.db"))
    words = sorted({*find_words()[::every], *RESERVED} - {"id"})
    make(database, words)
    grant = Grant(database="shop", tables=("*",), deny_columns=("*.other",), key="roles.r.grants.0")
    roles = {"r": Role(name="r", principals=frozenset({"ann"}), grants=(grant,))} if hidden else {}
    async with Gateway.open(Configuration(databases={"shop": database}, roles=roles)) as gateway:
        toolbox = Toolbox(gateway, profile="full")

        async def call(tool: str, **arguments: Any) -> dict[str, Any]:
            return json.loads((await toolbox.call(tool, arguments, principal=ANN)).text)

        for word in words:
            name = f'"{word}"'
            sample = await call("get_sample_rows", table_name=name, columns=[word])
            assert sample.get("rows") == [["of the table"]], (word, sample)
            row = await call("get_row", table_name=name, key=7)
            assert row.get("row") == {"id": 7, word: "of the table"}, (word, row)
            if not hidden:
                path = await call("find_join_path", from_table=f'"{word}_"', to_table=name)
                [step] = path["paths"]
                joined = await call("execute_query", sql=step["sql"])
                assert joined.get("rows") == [[8, 7, 7, "of the table"]], (step, joined)
