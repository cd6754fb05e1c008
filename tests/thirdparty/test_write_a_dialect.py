"""The page on writing a dialect shows the real one: every block is cut from its files, every name is there."""

import re
from pathlib import Path

import pytest
from dragoman.testing import DialectConformance

ROOT = Path(__file__).parents[2]
PLUGIN = ROOT / "tests" / "thirdparty" / "dragoman-duckdb"
PAGE = (ROOT / "docs" / "write-a-dialect.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(?:python|toml)\n(.*?)```", PAGE, re.DOTALL)
SOURCES = [
    path.read_text(encoding="utf-8")
    for path in (
        PLUGIN / "pyproject.toml",
        PLUGIN / "src" / "dragoman_duckdb" / "__init__.py",
        PLUGIN / "tests" / "test_conformance.py",
    )
]


@pytest.mark.parametrize("block", BLOCKS, ids=[block.partition("\n")[0] for block in BLOCKS])
def test_a_block_is_cut_from_the_real_distribution(block: str):
    assert any(block in source for source in SOURCES)


def test_every_file_of_the_distribution_is_on_the_page():
    shown = set(re.findall(r"^  (\S+\.\S+|\S+/py\.typed)", PAGE, re.MULTILINE))
    files = {str(path.relative_to(PLUGIN)) for path in PLUGIN.rglob("*") if path.suffix in {".py", ".toml", ".typed"}}
    assert shown == files


def test_every_attribute_on_the_page_may_be_overridden():
    attributes = re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE)
    assert attributes
    assert [name for name in attributes if not hasattr(DialectConformance, name)] == []
