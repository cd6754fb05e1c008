"""The policy of the docs, installed as a distribution of its own, holds for every database."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
ASK = """
import asyncio, sys
from dragoman import Database, DragomanError, Gateway

async def main():
    async with Gateway.open([Database(name="shop", dialect="sqlite", database="shop.db")]) as gateway:
        try:
            print((await gateway.query("shop", sys.argv[1])).rows_json.decode())
        except DragomanError as error:
            print(error.code, error.message)

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the example installed as `privacy-policy`, and the shop it guards."""
    folder = tmp_path_factory.mktemp("policy")
    (folder / "privacy.py").write_text((EXAMPLES / "policy.py").read_text(encoding="utf-8"), encoding="utf-8")
    info = folder / "privacy_policy-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: privacy-policy\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[dragoman.policies]\nprivacy = privacy:plugin\n", encoding="utf-8")
    subprocess.run([sys.executable, str(EXAMPLES / "make_shop.py")], cwd=folder, check=True)
    return folder


def ask(site: Path, sql: str) -> str:
    script = f"import sys; sys.path.insert(0, {str(site)!r})\n{ASK}"
    done = subprocess.run(
        [sys.executable, "-c", script, sql], cwd=site, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT name FROM customer",
        "SELECT c.name AS n FROM customer AS c",
        "SELECT * FROM customer",
        "SELECT count(*) FROM customer WHERE name LIKE 'A%'",
        "WITH x AS (SELECT * FROM customer) SELECT id FROM x",
    ],
)
def test_a_statement_that_touches_the_column_is_refused(site: Path, sql: str) -> None:
    assert ask(site, sql) == "UNSAFE_SQL customer.name is personal."


def test_other_columns_are_answered(site: Path) -> None:
    assert ask(site, "SELECT country FROM customer ORDER BY 1") == '[["NG"],["UK"],["VN"]]'
