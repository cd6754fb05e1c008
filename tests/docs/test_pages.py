"""Pages that list what the code has list all of it, and their links lead somewhere."""

import importlib.util
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman.errors import DragomanError

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted({page for each in ("*.md", "[!.]*/*.md", "plugins/*/*.md") for page in ROOT.glob(each)})
READMES = sorted([*ROOT.glob("plugins/*/README.md"), *ROOT.glob("ask/README.md")])
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


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = [target for target, _ in LINK.findall(_read(page)) if not (page.parent / target).exists()]
    assert broken == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_anchor_is_a_heading(page: Path) -> None:
    linked = [(page.parent / target, anchor) for target, anchor in LINK.findall(_read(page)) if anchor]
    linked += [(page, anchor) for anchor in re.findall(r"\]\(#([^)]+)\)", _read(page))]
    assert [anchor for target, anchor in linked if anchor not in anchors(target)] == []


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub makes of a page's headings."""
    headings = re.findall(r"^#+ (.+)$", _read(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


def _read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def test_the_index_leads_to_every_page() -> None:
    linked = {target for target, _ in LINK.findall((DOCS / "index.md").read_text(encoding="utf-8"))}
    assert {page.name for page in DOCS.glob("*.md")} - linked == {"index.md"}


@pytest.mark.parametrize("readme", READMES, ids=lambda readme: readme.parent.name)
def test_files_that_a_readme_lists_are_there(readme: Path) -> None:
    """Rows of a table of files: each name is one below `src`."""
    rows = re.findall(r"^\| (`[\w*]+(?:\.py|/)`[^|]*) \|", readme.read_text(encoding="utf-8"), re.MULTILINE)
    names = [name.rstrip("/") for row in rows for name in re.findall(r"`([\w*]+(?:\.py|/))`", row)]
    assert [name for name in names if not any(readme.parent.glob(f"src/*/{name}"))] == []
