"""No page and no message installs from a package index that the project is not on."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    page
    for pattern in ("*.md", "docs/*.md", "docs/examples/*/README.md", "core/*.md", "ask/*.md", "plugins/*/*.md")
    for page in ROOT.glob(pattern)
)
MODULES = sorted(module for folder in ("core", "ask", "plugins/*") for module in ROOT.glob(f"{folder}/src/**/*.py"))
INSTALL = re.compile(r"pip install (?P<rest>[^`\n&]*)")
OURS = re.compile(r"""(?<![\w/-])dragoman(?=[-\[\s"'`]|$)""")


def install_lines(text: str) -> list[str]:
    """Return what `pip install` is told to install, where it is one of our distributions."""
    return [found["rest"] for found in INSTALL.finditer(text) if OURS.search(found["rest"])]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_page_installs_our_distributions_from_wheels(page: Path) -> None:
    lines = install_lines(page.read_text(encoding="utf-8"))
    assert [line for line in lines if not line.startswith("--find-links dist ")] == []


def test_pages_install_something() -> None:
    assert sum(len(install_lines(page.read_text(encoding="utf-8"))) for page in PAGES) > 5


def test_no_message_names_a_command_that_asks_an_index_for_ours() -> None:
    found = [
        (module.relative_to(ROOT).as_posix(), node.value)
        for module in MODULES
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and install_lines(node.value)
    ]
    assert found == []
