"""Texts say things the plain way: phrases that had to be read twice do not come back."""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLAIN = {
    r"\b(?:is|are|was|were|be) told as\b": "is reported as",
    r"\bc(?:an|ould) ?not be told(?! apart)\b": "cannot be determined, is unknown",
    r"\bmay (?:not )?be told(?! apart)\b": "may be shown",
    r"\btold in the log\b": "logged",
    r"\bnever told\b": "never shown",
    r"\bfor who (?:has|needs|wants|lacks|runs|asks)\b": "for those who have, for callers who need",
    r"\bgoes wrong (?:in it )?is told\b": "errors are reported",
    r"\b[Ii]ts operator (?:can|may|allows)\b": "the server's administrator",
    r"\b[Mm]end the\b": "Fix the",
    r"\(when it says something\)": "only if not empty",
    r"\bis no call meanwhile\b": "release the call slot while waiting",
    r"\b(?:userland|turnstile)s?\b": "the glossary's word",
    r"\b[Ww]hose code serves\b": "attributes errors to the plugin that raised them",
}
"""What is not written, as patterns, and what says the same."""
BANNED = re.compile("|".join(f"(?:{pattern})" for pattern in PLAIN))
MODULES = sorted(module for folder in ("core", "ask", "plugins/*") for module in ROOT.glob(f"{folder}/src/**/*.py"))
PAGES = [
    page
    for page in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/*.md")])
    if page.name not in {"changelog.md", "glossary.md"}
]


def texts_of(module: str) -> Iterator[str]:
    """Yield the docstrings, messages and comments of a module, each on one line."""
    for node in ast.walk(ast.parse(module)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield " ".join(node.value.split())
    for token in tokenize.generate_tokens(io.StringIO(module).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


@pytest.mark.parametrize("folder", ["core", "ask", "plugins"])
def test_no_module_says_it_the_odd_way(folder: str) -> None:
    found = [
        f"{module.relative_to(ROOT)}: {text}"
        for module in MODULES
        if module.relative_to(ROOT).parts[0] == folder
        for text in texts_of(module.read_text(encoding="utf-8"))
        if BANNED.search(text)
    ]
    assert found == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_no_page_says_it_the_odd_way(page: Path) -> None:
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert [found[0] for found in BANNED.finditer(text)] == []


def test_an_odd_sentence_is_seen() -> None:
    odd = '"""It is told as the plugin\'s."""\n# only for who has it\nraise E("Mend the expression.")\n'
    assert [BANNED.search(text) is not None for text in texts_of(odd)] == [True, True, True]
