"""The page on writing a dialect, followed: each command runs and each file is written, in order, in a clean folder."""

import difflib
import re
import sys
from pathlib import Path

import pytest
from dragoman.testing import DialectConformance

from .pages import Page

PAGE = Page("write-a-dialect.md")


@pytest.fixture(scope="module")
def followed(clean):
    """What each command printed, in order."""
    (clean.folder / "page.sh").write_text(PAGE.script(), encoding="utf-8")
    return Page.outputs(clean.run("bash", clean.folder / "page.sh"))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_command_works_and_prints_what_the_page_says(followed):
    assert len(followed) == len(PAGE.steps)
    for step, output in zip(PAGE.steps, followed, strict=True):
        assert [line for line in step.printed if line not in output] == [], step.command


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found is not None, pattern
    return int(found[1])


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_kit_leaves_nothing_out(followed):
    """The required tier holds without a gap; everything, with the gaps that the page declares."""
    required, everything = (output for output in followed if " passed" in output)
    assert "xfailed" not in required
    assert re.search(r" [1-8] xfailed", everything)
    assert re.findall(r"\d+ (?:failed|error|skipped)", required + everything) == []
    assert number(r"(\d+) passed", everything) > number(r"(\d+) passed", required) > 60


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_author_s_own_lines_are_as_many_as_the_page_says(followed, clean):
    """Counted: what stands in the two files and new-dialect did not write."""
    other = clean.folder / "again"
    options = ("--sqlalchemy", "--driver", "duckdb-engine", "--into", other)
    clean.run(clean.bin / "python", "-m", "dragoman", "new-dialect", "duckdb2", *options)
    own = 0
    for title, body in PAGE.files.items():
        generated = (other / "dragoman-duckdb2" / title.replace("_duckdb", "_duckdb2")).read_text(encoding="utf-8")
        before = generated.replace("duckdb2", "duckdb").replace("Duckdb2", "Duckdb").splitlines()
        added = [line[2:] for line in difflib.ndiff(before, body.splitlines()) if line.startswith("+ ")]
        own += sum(1 for line in added if line.strip())
    assert own == number(r"by changing (\d+) lines", PAGE.text)
    assert own < 80


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("followed")
def test_linters_and_type_checkers_have_nothing_to_say(clean):
    tools, package = Path(sys.executable).parent, clean.folder / "dragoman-duckdb"
    clean.run(tools / "ruff", "format", "--check", folder=package)
    clean.run(tools / "ruff", "check", folder=package)
    clean.run(tools / "mypy", "--python-executable", clean.bin / "python", folder=package)
    clean.run(tools / "pyright", "--pythonpath", clean.bin / "python", folder=package)


def test_every_block_is_run_or_written():
    assert [body for language, title, body in PAGE.blocks if language not in {"python", "console"}] == []
    assert all(title for language, title, _ in PAGE.blocks if language == "python")
    assert PAGE.text.count("\n```") == 2 * len(PAGE.blocks)


def test_every_attribute_on_the_page_may_be_overridden():
    attributes = re.findall(r"^\| `(\w+)` \|", PAGE.text, re.MULTILINE)
    assert attributes
    assert [name for name in attributes if not hasattr(DialectConformance, name)] == []
