"""`dragoman new-dialect`: create the package of a dialect plugin, which works before its first line is changed."""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import os
import re
import string
from collections.abc import Mapping, Set
from importlib.resources import files
from pathlib import Path
from typing import Final

from dragoman.cli.common import add_source_arguments
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman new-dialect acme
  dragoman new-dialect acme --sqlalchemy
  dragoman new-dialect duckdb --sqlalchemy --driver duckdb-engine
  dragoman new-dialect mariadb --sqlalchemy --driver asyncmy --scheme mysql+asyncmy --sqlglot mysql --into ~/src
"""
LICENCES: Final = {"mit": "MIT", "apache-2.0": "Apache-2.0", "bsd-3-clause": "BSD-3-Clause", "none": ""}
_NAME = re.compile(r"[a-z][a-z0-9]*(?:[-_][a-z0-9]+)*")
_ONLY_FOR = re.compile(r"  #\? (?P<flavours>[a-z ]+)$")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the dialect's name, which stands before :// in a URL")
    parser.add_argument("--into", metavar="FOLDER", default=".", help="where to put the folder dragoman-NAME")
    parser.add_argument(
        "--licence", "--license", choices=LICENCES, default="mit", help="the licence of the package (mit)"
    )
    parser.add_argument(
        "--sqlalchemy",
        action="store_true",
        help="build on a SQLAlchemy driver; without it you write executor and inspector",
    )
    parser.add_argument("--driver", metavar="DIST", help="with --sqlalchemy: the distribution that has the driver")
    parser.add_argument("--scheme", metavar="S", help="with --driver: SQLAlchemy's name of it (NAME)")
    parser.add_argument(
        "--sqlglot", metavar="D", help="with --driver: sqlglot's name of the dialect (NAME); '' is standard SQL"
    )
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the package."""
    check_name(arguments.name)
    if arguments.driver is None and (arguments.scheme is not None or arguments.sqlglot is not None):
        raise ConfigurationError(
            "--scheme and --sqlglot describe a driver, and none is named.",
            suggestion="Add --sqlalchemy and --driver; or leave them out, and change `sqlglot` in the written package.",
        )
    if arguments.driver is not None and not arguments.sqlalchemy:
        raise ConfigurationError(
            "--driver needs --sqlalchemy: without it the package stands on Python's sqlite3, which you replace.",
            suggestion="Add --sqlalchemy, or leave --driver out.",
        )
    write_package(arguments, package(arguments))
    return 0


def check_name(name: str) -> None:
    """Raise `ConfigurationError` for an impossible name, or one that an installed distribution already has."""
    check_form(name, "dialect", "its name stands before :// in URLs and in a module's name")
    from dragoman.plugins import Plugins

    plugins = Plugins.discover()
    if name in plugins.names:
        raise ConfigurationError(
            f"There is already a dialect {plugins.origin(name)}; two plugins with one name exclude each other.",
            suggestion="Choose another name, or uninstall that distribution.",
        )


def check_form(name: str, what: str, why: str) -> None:
    """Raise `ConfigurationError` for a name that no plugin can have."""
    if not _NAME.fullmatch(name):
        raise ConfigurationError(
            f"A {what} cannot be named {name!r}: {why}.",
            suggestion="Use lower-case letters and digits, a letter first; - and _ between them.",
        )
    if name.startswith("dragoman"):
        raise ConfigurationError(
            "The distribution is called dragoman-NAME already.", suggestion=f"Give {name[8:].lstrip('-_') or 'NAME'!r}."
        )


def package(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the files of the package: contents by path."""
    flavour = "driver" if arguments.driver else "sqlite" if arguments.sqlalchemy else "full"
    values = _values(arguments)
    kept = {flavour, *(("licence",) if values["licence"] else ())}
    module = f"src/{values['package']}"
    templates = {
        "pyproject.toml": "pyproject.toml.tmpl",
        "README.md": "README.md.tmpl",
        ".gitignore": "gitignore.tmpl",
        ".github/workflows/test.yml": "workflow.yml.tmpl",
        f"{module}/__init__.py": "full.py.tmpl" if flavour == "full" else "sqlalchemy.py.tmpl",
        "tests/test_conformance.py": "test_driver.py.tmpl" if flavour == "driver" else "test_sqlite.py.tmpl",
    }
    if values["licence"]:
        templates["LICENSE"] = f"licences/{arguments.licence}.txt"
    return {f"{module}/py.typed": "", **{path: fill(name, kept, values) for path, name in templates.items()}}


def _values(arguments: argparse.Namespace) -> dict[str, str]:
    name: str = arguments.name
    return {
        **write_values(name, arguments.licence),
        "variable": f"{module_of(name).upper()}_TEST_URL",
        "driver": arguments.driver or "sqlalchemy",
        "scheme": (arguments.scheme or name) if arguments.driver else "sqlite",
        "sqlglot": (name if arguments.sqlglot is None else arguments.sqlglot) if arguments.driver else "sqlite",
        "url": f"{name}://user@host/database" if arguments.driver else f"{name}:///file.db",
    }


def module_of(name: str) -> str:
    """Return the name of a plugin's module, without the common prefix."""
    return re.sub(r"\W", "_", name)


def write_values(name: str, licence: str) -> dict[str, str]:
    """Return the values for the templates of every plugin."""
    from dragoman.dialect import CONTRACT

    module = module_of(name)
    return {
        "name": name,
        "Name": "".join(part.capitalize() for part in module.split("_")),
        "package": f"dragoman_{module}",
        "contract": str(CONTRACT),
        "version": importlib.metadata.version("dragoman"),
        "licence": LICENCES[licence],
        "year": str(datetime.datetime.now(tz=datetime.UTC).year),
    }


def fill(template: str, kept: Set[str], values: Mapping[str, str]) -> str:
    """Return a template with its values filled in, without the lines that are marked for another flavour (`#?

    flavour`).
    """
    text = (files("dragoman.cli") / "templates" / template).read_text(encoding="utf-8")
    lines: list[str] = []
    for line in text.splitlines():
        marked = _ONLY_FOR.search(line)
        if marked is None:
            lines.append(line)
        elif kept & set(marked["flavours"].split()):
            lines.append(line[: marked.start()])
    return string.Template("\n".join(lines) + "\n").substitute(values)


def write_package(arguments: argparse.Namespace, contents: Mapping[str, str]) -> None:
    """Write the package to the folder in the arguments, and print the next steps. Raises `ConfigurationError`."""
    folder = Path(os.path.expanduser(arguments.into)) / f"dragoman-{arguments.name}"
    write(folder, contents)
    print(f"wrote {folder}; next: cd {folder} && pip install -e '.[testing]' && pytest")


def write(folder: Path, contents: Mapping[str, str]) -> None:
    """Write the files below `folder`, which must not exist. Raises `ConfigurationError`."""
    try:
        folder.mkdir(parents=True)
        for path, text in contents.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    except FileExistsError:
        raise ConfigurationError(
            f"{folder} exists already, and nothing is overwritten.", suggestion="Choose another folder with --into."
        ) from None
    except OSError as error:
        raise ConfigurationError(f"{folder} cannot be written: {error.strerror}.") from None
