"""Pages that list what the code has list all of it, and their links lead somewhere."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman.errors import DragomanError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.glob("*.md"), *ROOT.glob("*.md")])
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]+)(?:#([^)\s]+))?\)")


def codes(kind: type[DragomanError] = DragomanError) -> Iterator[str]:
    yield kind.code
    for narrower in kind.__subclasses__():
        if narrower.__module__.startswith("dragoman."):
            yield from codes(narrower)


def test_the_page_of_error_codes_has_every_code_and_no_other() -> None:
    listed = re.findall(r"^\| `([A-Z_]+)` \|", (DOCS / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(set(codes()))


def test_the_page_of_the_command_line_is_what_the_commands_say() -> None:
    """Else run `python docs/make_command_line.py`."""
    spec = importlib.util.spec_from_file_location("make_command_line", DOCS / "make_command_line.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    # Versions of Python break the lines of a usage differently.
    assert (DOCS / "command-line.md").read_text(encoding="utf-8").split() == module.page().split()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [
        target for target, _ in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / target).exists()
    ]
    assert broken == []


def test_the_index_leads_to_every_page() -> None:
    linked = {target for target, _ in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))}
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"index.md"}
