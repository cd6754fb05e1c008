"""`dragoman new-dialect`: what it writes, and that linters and type checkers have nothing to say about it."""

import argparse
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from dragoman.cli import new_dialect
from dragoman.cli.new_dialect import LICENCES

from .conftest import Dragoman

BIN = Path(sys.executable).parent
FLAVOURS = {
    "full": ("acme",),
    "sqlalchemy": ("acme", "--sqlalchemy"),
    "driver": ("acme-2", "--sqlalchemy", "--driver", "acme-db", "--scheme", "acme+adb", "--sqlglot", "mysql"),
}
FILES = {
    ".github/workflows/test.yml",
    ".gitignore",
    "LICENSE",
    "README.md",
    "pyproject.toml",
    "src/dragoman_acme/__init__.py",
    "src/dragoman_acme/py.typed",
    "tests/test_conformance.py",
}


def check(folder: Path, tool: str, *arguments: str) -> None:
    """Run a development tool as an author does, who has installed it beside dragoman."""
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}", "VIRTUAL_ENV": str(BIN.parent)}
    done = subprocess.run(
        [str(BIN / tool), *arguments], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_whole_package_is_written(dragoman: Dragoman, folder: Path) -> None:
    outcome = dragoman("new-dialect", "acme")
    assert outcome.code == 0
    assert "wrote dragoman-acme" in outcome.out
    package = folder / "dragoman-acme"
    assert {path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()} == FILES
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["dragoman.dialects"] == {"acme": "dragoman_acme:plugin"}
    assert "#?" not in "".join(path.read_text(encoding="utf-8") for path in package.rglob("*") if path.is_file())


def test_it_may_stand_in_another_folder(dragoman: Dragoman, folder: Path) -> None:
    assert dragoman("new-dialect", "acme", "--into", "deep/er").code == 0
    assert (folder / "deep" / "er" / "dragoman-acme" / "pyproject.toml").is_file()


def test_nothing_is_ever_overwritten(dragoman: Dragoman, folder: Path) -> None:
    (folder / "dragoman-acme").mkdir()
    outcome = dragoman("new-dialect", "acme")
    assert (outcome.code, outcome.out) == (2, "")
    assert "exists already" in outcome.err
    assert list((folder / "dragoman-acme").iterdir()) == []


@pytest.mark.parametrize("licence", LICENCES)
def test_the_licence_is_the_author_s_choice(dragoman: Dragoman, folder: Path, licence: str) -> None:
    dragoman("new-dialect", "acme", "--licence", licence)
    package = folder / "dragoman-acme"
    project = tomllib.loads((package / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project.get("license", "") == LICENCES[licence]
    assert (package / "LICENSE").is_file() == (licence != "none")


@pytest.mark.parametrize("name", ["", "Acme", "1acme", "a b", "../x", "acme_", "a--b", "é", "a.b"])
def test_a_name_no_url_or_module_could_have_is_refused(dragoman: Dragoman, folder: Path, name: str) -> None:
    outcome = dragoman("new-dialect", name)
    assert outcome.code == 2
    assert "cannot be named" in outcome.err
    assert [path.name for path in folder.iterdir()] == ["shop.db"]


def test_the_distribution_s_name_is_not_the_dialect_s(dragoman: Dragoman) -> None:
    assert "Give 'acme'." in dragoman("new-dialect", "dragoman-acme").err


@pytest.mark.parametrize("name", ["postgresql", "postgres"])
def test_a_name_that_is_taken_is_refused_with_who_has_it(dragoman: Dragoman, name: str) -> None:
    outcome = dragoman("new-dialect", name)
    assert outcome.code == 2
    assert f"'{name}' of dragoman-postgres " in outcome.err


@pytest.mark.parametrize(
    "arguments", [("--driver", "x"), ("--sqlalchemy", "--scheme", "x"), ("--sqlalchemy", "--sqlglot", "x")]
)
def test_options_that_mean_nothing_together_are_refused(dragoman: Dragoman, arguments: tuple[str, ...]) -> None:
    outcome = dragoman("new-dialect", "acme", *arguments)
    assert outcome.code == 2
    assert "--sqlalchemy" in outcome.err


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "flavour", ["full", *(pytest.param(name, marks=pytest.mark.full) for name in FLAVOURS if name != "full")]
)
def test_linters_and_type_checkers_have_nothing_to_say(dragoman: Dragoman, folder: Path, flavour: str) -> None:
    assert dragoman("new-dialect", *FLAVOURS[flavour]).code == 0
    package = folder / f"dragoman-{FLAVOURS[flavour][0]}"
    check(package, "ruff", "format", "--check")
    check(package, "ruff", "check")
    check(package, "mypy")
    check(package, "pyright")


def test_an_author_s_own_lines_are_about_ten() -> None:
    """Those of the SQLAlchemy flavour's executor, which say what its database does in a way of its own."""
    parser = argparse.ArgumentParser()
    new_dialect.add_arguments(parser)
    written = new_dialect.package(parser.parse_args(["acme", "--sqlalchemy"]))["src/dragoman_acme/__init__.py"]
    executor = written.partition("class AcmeExecutor")[2].partition("class AcmePlugin")[0].splitlines()
    assert len([line for line in executor if line.strip() and '"""' not in line and "#" not in line]) <= 12


def test_the_readme_of_a_driver_says_to_set_in_whose_sql_it_is_read(dragoman: Dragoman, folder: Path) -> None:
    assert dragoman("new-dialect", *FLAVOURS["driver"]).code == 0
    readme = (folder / "dragoman-acme-2" / "README.md").read_text()
    assert "`sqlglot` names the SQL that statements are read as, now `mysql`" in readme
