"""`dragoman new-policy`: what it writes. That it passes its kit is tested where the guide is followed."""

import tomllib
from pathlib import Path

from .conftest import Dragoman

FILES = {
    ".github/workflows/test.yml",
    ".gitignore",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "src/dragoman_acme_rows/__init__.py",
    "src/dragoman_acme_rows/py.typed",
    "tests/test_policy.py",
}


def test_a_whole_package_is_written(dragoman: Dragoman, folder: Path) -> None:
    outcome = dragoman("new-policy", "acme-rows")
    assert outcome.code == 0
    assert "wrote dragoman-acme-rows" in outcome.out
    package = folder / "dragoman-acme-rows"
    assert {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()} == FILES
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["dragoman.policies"] == {"acme-rows": "dragoman_acme_rows:plugin"}
    assert "#?" not in "".join(path.read_text(encoding="utf-8") for path in package.rglob("*") if path.is_file())


def test_a_package_may_come_without_a_licence(dragoman: Dragoman, folder: Path) -> None:
    assert dragoman("new-policy", "acme", "--licence", "none", "--into", "deep").code == 0
    assert not (folder / "deep" / "dragoman-acme" / "LICENSE").exists()


def test_a_name_that_no_policy_can_have_is_refused(dragoman: Dragoman, folder: Path) -> None:
    outcome = dragoman("new-policy", "Acme Rows")
    assert outcome.code == 2
    assert "A policy cannot be named 'Acme Rows'" in outcome.err
    assert not list(folder.glob("dragoman-*"))


def test_nothing_is_ever_overwritten(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman-acme").mkdir()
    outcome = dragoman("new-policy", "acme")
    assert outcome.code == 2
    assert "nothing is overwritten" in outcome.err
