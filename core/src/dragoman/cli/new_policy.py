"""`dragoman new-policy`: create the package of a policy, which passes its kit before its first line is changed."""

from __future__ import annotations

import argparse

from dragoman.cli.common import add_source_arguments
from dragoman.cli.new_dialect import LICENCES, check_form, fill, write_package, write_values
from dragoman.errors import ConfigurationError

EXAMPLES = """\
examples:
  dragoman new-policy tenants
  dragoman new-policy tenants --into ~/src --licence apache-2.0
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("name", metavar="NAME", help="the policy's name; its options stand under [policies.NAME]")
    parser.add_argument("--into", metavar="FOLDER", default=".", help="where to put the folder dragoman-NAME")
    parser.add_argument(
        "--licence", "--license", choices=LICENCES, default="mit", help="the licence of the package (mit)"
    )
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Write the package."""
    check_name(arguments.name)
    write_package(arguments, package(arguments))
    return 0


def check_name(name: str) -> None:
    """Raise `ConfigurationError` for an impossible name, or one that an installed policy already has."""
    check_form(name, "policy", "its name stands in the configuration and in a module's name")
    from dragoman.plugins import Plugins

    plugins = Plugins.discover()
    if name in plugins.policies:
        raise ConfigurationError(
            f"There is already a policy {name!r}; two policies with one name stop the server's start.",
            suggestion="Choose another name, or uninstall that distribution.",
        )


def package(arguments: argparse.Namespace) -> dict[str, str]:
    """Return the files of the package: contents by path."""
    values = write_values(arguments.name, arguments.licence)
    kept = {"licence"} if values["licence"] else set[str]()
    module = f"src/{values['package']}"
    templates = {
        "pyproject.toml": "policy_pyproject.toml.tmpl",
        "README.md": "policy_readme.md.tmpl",
        ".gitignore": "gitignore.tmpl",
        ".github/workflows/test.yml": "workflow.yml.tmpl",
        f"{module}/__init__.py": "policy.py.tmpl",
        "tests/test_policy.py": "test_policy.py.tmpl",
    }
    if values["licence"]:
        templates["LICENSE"] = f"licences/{arguments.licence}.txt"
    return {f"{module}/py.typed": "", **{path: fill(name, kept, values) for path, name in templates.items()}}
