"""The dialects under docs/examples, as strangers install them: their wheels, their tests, and what is said of them."""

import os
import re
import shutil
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGE = (ROOT / "docs" / "write-a-dialect.md").read_text(encoding="utf-8")
DIALECTS = ("dragoman-duckdb", "dragoman-mariadb")


def lines(dialect: str) -> int:
    """How many lines its author wrote: those of its modules that are not blank."""
    modules = (EXAMPLES / dialect / "src").rglob("*.py")
    return sum(1 for path in modules for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


@pytest.fixture(scope="module")
def installed(clean):
    wheels = [clean.wheel(EXAMPLES / dialect) for dialect in DIALECTS]
    clean.install("dragoman[testing]", *wheels)
    return clean


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_it_conforms_and_keeps_its_promises_where_it_is_installed(installed, dialect):
    if dialect == "dragoman-mariadb" and shutil.which("mariadbd") is None and "CI" not in os.environ:
        pytest.skip("mariadbd is not installed; Debian has it as mariadb-server")
    shutil.copytree(EXAMPLES / dialect / "tests", installed.folder / f"tests-{dialect}")
    python = installed.bin / "python"
    output = installed.run(python, "-m", "pytest", "-q", "-W", "error", installed.folder / f"tests-{dialect}")
    assert " passed" in output
    assert " skipped" not in output.splitlines()[-1]


@pytest.mark.full
@pytest.mark.timeout(900)
def test_both_are_listed_and_one_answers_over_a_url(installed):
    assert re.search(
        r"duckdb +dragoman-duckdb.*\n.*mariadb +dragoman-mariadb", installed.run(installed.bin / "dragoman", "dialects")
    )
    create = "import duckdb; duckdb.connect('shop.duckdb').execute('CREATE TABLE orders AS SELECT 42 AS id')"
    installed.run(installed.bin / "python", "-c", create)
    query = ("query", "duckdb:///shop.duckdb", "SELECT id FROM orders", "--format", "csv")
    assert installed.run(installed.bin / "dragoman", *query).split() == ["id", "42"]


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_type_checkers_have_nothing_to_say(installed, dialect):
    source = installed.folder / "source" / dialect
    tools = Path(sys.executable).parent
    python = installed.bin / "python"
    installed.run(tools / "mypy", "--python-executable", python, folder=source)
    installed.run(tools / "pyright", "--pythonpath", python, folder=source)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_is_as_long_as_the_page_and_its_own_say(dialect):
    claimed = re.search(rf"\[{dialect}\]\(examples/{dialect}\)[^|]*\| (\d+) lines", PAGE)
    assert claimed is not None
    assert int(claimed[1]) - 20 <= lines(dialect) <= int(claimed[1])


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*/")), ids=lambda path: path.name)
def test_every_example_says_that_it_is_typed(path):
    assert list((path / "src").glob("*/py.typed"))
