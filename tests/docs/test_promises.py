"""Each sentence of the pages on security names the tests that prove it, and those tests exist."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
# A page, its table, and the heading from which on nothing is promised.
PAGES = [
    ("security.md", "promises.toml", "## Not promised"),
    ("threat-model.md", "threats.toml", "## Not defended"),
]


def _table(name: str) -> list[dict[str, Any]]:
    return tomllib.loads((HERE / name).read_text(encoding="utf-8"))["sentence"]


# The table of generators and fuzzes: a row for each promise that was once broken.
LOOKING = (ROOT / "docs" / "tests.md").read_text(encoding="utf-8").partition("## What looks for the next hole")[2]
PROVING = sorted(
    {test for _, table, _ in PAGES for each in _table(table) for test in each.get("tests", ())}
    | set(re.findall(r"`([^`]+::[^`]+)`", LOOKING))
)


def _sentences(name: str, end: str) -> list[str]:
    """The sentences of a page before what is not promised; headings and the heads of tables are none."""
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    page = page[: page.index(end)]
    page = re.sub(r"^#.*$|^\|[- |]+\|$|^\| wall \|.*$", "", page, flags=re.MULTILINE)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=- |\| )", page))
    parts = (re.split(r"(?<=[.:])\s+(?=[A-Z`\[|/])", block.lstrip("- ").strip("| ")) for block in blocks)
    return [sentence for sentences in parts for sentence in sentences if sentence]


@pytest.mark.parametrize(("name", "table", "end"), PAGES)
def test_every_sentence_is_in_the_table_in_order(name: str, table: str, end: str):
    page, begins = _sentences(name, end), [each["begins"] for each in _table(table)]
    assert [sentence[: len(begin)] for sentence, begin in zip(page, begins, strict=False)] == begins
    assert page[len(begins) :] == []


@pytest.mark.parametrize("test", PROVING)
def test_what_proves_a_promise_is_there(test: str):
    file, _, name = test.partition("::")
    assert re.search(rf"^ *(?:async )?def test_{name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_every_promise_that_was_broken_has_what_looks_for_the_next_hole():
    rows = [line for line in LOOKING.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 18
    assert [row for row in rows if "::" not in row] == []
