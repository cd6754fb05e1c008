"""Each sentence of the security page's promises names the tests that prove it, and those tests exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SENTENCES = tomllib.loads((Path(__file__).parent / "promises.toml").read_text(encoding="utf-8"))["sentence"]
PROVING = sorted({test for each in SENTENCES for test in each.get("tests", ())})


def _sentences() -> list[str]:
    """The sentences of the page before what is not promised; headings and the heads of tables are none."""
    page = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
    page = page[: page.index("## Not promised")]
    page = re.sub(r"^#.*$|^\|[- |]+\|$|^\| wall \|.*$", "", page, flags=re.MULTILINE)
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n|\n(?=- |\| )", page))
    parts = (re.split(r"(?<=[.:])\s+(?=[A-Z`\[|/])", block.lstrip("- ").strip("| ")) for block in blocks)
    return [sentence for sentences in parts for sentence in sentences if sentence]


def test_every_sentence_is_in_the_table_in_order():
    page, table = _sentences(), [each["begins"] for each in SENTENCES]
    assert [sentence[: len(begins)] for sentence, begins in zip(page, table, strict=False)] == table
    assert page[len(table) :] == []


@pytest.mark.parametrize("test", PROVING)
def test_what_proves_a_promise_is_there(test: str):
    file, _, name = test.partition("::")
    assert re.search(rf"^ *(?:async )?def test_{name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
