"""What a question costs an agent, in calls and tokens: `uv run python tests/benchmarks/tokens.py [--write]`.

The script is fixed: for every question of the ready sets the agent looks at the database once (`search_catalog` without
words) and sends the query that answers. What is measured is what the protocol's edge does not change: the arguments and
the text of the answers, four bytes a token. `tokens.json` has the figures that must not rise; `--write` replaces them.
"""

import asyncio
import json
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml
from dragoman import Database, Gateway
from dragoman.tools import Toolbox
from dragoman_sqlite.demo import build

ROOT = Path(__file__).parents[2]
FIGURES = Path(__file__).with_name("tokens.json")
BYTES_PER_TOKEN = 4
CHINOOK = """
INSERT INTO Artist SELECT n, 'Artist ' || n FROM numbers WHERE n <= 20;
INSERT INTO Album SELECT n, 'Album ' || n, 1 + n % 20 FROM numbers WHERE n <= 40;
INSERT INTO MediaType VALUES (1, 'MPEG audio file'), (2, 'AAC audio file');
INSERT INTO Genre VALUES (1, 'Rock'), (2, 'Jazz'), (3, 'Metal');
INSERT INTO Track SELECT n, 'Track ' || n, 1 + n % 40, 1 + n % 2, 1 + n % 3, NULL, 1000 * n, n, 0.99 FROM numbers;
INSERT INTO Employee (EmployeeId, LastName, FirstName, Title, ReportsTo)
    SELECT n, 'Last ' || n, 'First ' || n, 'Sales Support Agent', nullif(n / 2, 0) FROM numbers WHERE n <= 8;
INSERT INTO Customer (CustomerId, FirstName, LastName, Country, SupportRepId)
    SELECT n, 'First ' || n, 'Last ' || n, CASE n % 3 WHEN 0 THEN 'Brazil' ELSE 'Canada' END, 3 + n % 3
    FROM numbers WHERE n <= 60;
INSERT INTO Invoice SELECT n, 1 + n % 60, '20' || (10 + n % 4) || '-01-01', 'City', 'Canada', n % 9 FROM numbers;
INSERT INTO InvoiceLine SELECT n, n, n, 0.99, 1 FROM numbers;
INSERT INTO Playlist VALUES (1, 'Music'), (2, 'Movies');
INSERT INTO PlaylistTrack SELECT 1, n FROM numbers;
DROP TABLE numbers;
"""


def chinook(folder: Path) -> Database:
    """Chinook's schema with a few rows made up: its own data is not part of this repository."""
    schema = (ROOT / "tests/knowledge/schemas/chinook.sql").read_text(encoding="utf-8")
    numbers = "CREATE TABLE numbers AS WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 400)"
    with sqlite3.connect(folder / "chinook.db") as connection:
        connection.executescript(f"{schema};{numbers} SELECT n FROM r;{CHINOOK}")
    connection.close()
    return Database(name="chinook", dialect="sqlite", database="chinook.db", folder=folder)


def questions() -> dict[str, list[str]]:
    """Return the queries of the ready sets by database."""
    found: dict[str, list[str]] = {}
    for name in ("chinook", "demo"):
        path = ROOT / "ask/src/dragoman_ask/evals" / f"{name}.yaml"
        for case in yaml.safe_load(path.read_text(encoding="utf-8")):
            if case.get("sql"):
                found.setdefault(case["database"], []).append(case["sql"])
    return found


async def ask(databases: Sequence[Database], name: str, sql: str) -> tuple[int, int]:
    """Return the calls and tokens of one question, by an agent that knows nothing yet."""
    script = [("search_catalog", {"database": name}), ("execute_query", {"database": name, "sql": sql})]
    size = 0
    async with Gateway.open(databases) as gateway:
        tools = Toolbox(gateway, profile="minimal")
        for tool, arguments in script:
            answer = await tools.call(tool, arguments)
            assert not answer.is_error, (sql, answer.text)
            size += len(json.dumps(arguments, separators=(",", ":"))) + len(answer.text.encode())
    return len(script), -(-size // BYTES_PER_TOKEN)


async def measure() -> dict[str, dict[str, float]]:
    """Return the figures by database: questions, calls and tokens for each."""
    with tempfile.TemporaryDirectory() as folder:
        databases = [chinook(Path(folder)), *build(Path(folder))]
        figures: dict[str, dict[str, float]] = {}
        for name, queries in questions().items():
            costs = [await ask(databases, name, sql) for sql in queries]
            calls, tokens = (round(sum(each) / len(costs), 1) for each in zip(*costs, strict=True))
            figures[name] = {"questions": len(queries), "calls": calls, "tokens": tokens}
    return figures


if __name__ == "__main__":
    told = json.dumps(asyncio.run(measure()), indent=2)
    print(told)
    if "--write" in sys.argv:
        FIGURES.write_text(told + "\n", encoding="utf-8")
