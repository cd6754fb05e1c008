"""The page on writing a policy, followed: each command runs and each file is written, in order, in a clean folder."""

import dataclasses
import re
import sys
from pathlib import Path

import pytest
from dragoman.testing import PolicyConformance

from .pages import Page

PAGE = Page("write-a-policy.md")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def with_sqlite(clean):
    """The folder, where dragoman-sqlite is the wheel of this checkout too."""
    return dataclasses.replace(clean, sqlite=clean.wheel(ROOT / "plugins" / "sqlite"))


@pytest.fixture(scope="module")
def followed(with_sqlite):
    """What each command printed, in order."""
    (with_sqlite.folder / "page.sh").write_text(PAGE.script(), encoding="utf-8")
    return Page.outputs(with_sqlite.run("bash", with_sqlite.folder / "page.sh"))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_command_works_and_prints_what_the_page_says(followed):
    assert len(followed) == len(PAGE.steps)
    for step, output in zip(PAGE.steps, followed, strict=True):
        assert [line for line in step.printed if line not in output] == [], step.command


@pytest.mark.full
@pytest.mark.timeout(900)
def test_the_kit_holds_what_was_written_and_what_the_page_writes(followed):
    runs = [output for output in followed if " passed" in output]
    assert len(runs) == 2
    assert ["conforms" in output for output in runs] == [True, True]
    assert re.findall(r"\d+ (?:failed|error|skipped|xfailed)", "".join(runs)) == []


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("followed")
def test_linters_and_type_checkers_have_nothing_to_say(with_sqlite):
    tools, package = Path(sys.executable).parent, with_sqlite.folder / "dragoman-regions"
    with_sqlite.run(tools / "ruff", "format", "--check", folder=package)
    with_sqlite.run(tools / "ruff", "check", folder=package)
    with_sqlite.run(tools / "mypy", "--python-executable", with_sqlite.bin / "python", folder=package)


def test_every_block_is_run_or_written():
    assert [body for language, title, body in PAGE.blocks if language not in {"python", "console"}] == []
    assert all(title for language, title, _ in PAGE.blocks if language == "python")


def test_every_attribute_on_the_page_may_be_overridden():
    attributes = re.findall(r"^\| `(\w+)` \|", PAGE.text.partition("## The kit")[2], re.MULTILINE)
    known = {*vars(PolicyConformance), *PolicyConformance.__annotations__}
    assert attributes
    assert [name for name in attributes if name not in known] == []
