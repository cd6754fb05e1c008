"""Functions are named by what they do, or by what they return, never by a past participle alone."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(path for part in ("core", "ask", "plugins") for path in (ROOT / part).glob("**/src/**/*.py"))
IRREGULAR = frozenset(
    "begun bound broken brought built caught chosen done drawn found given gone got heard held hidden kept known left"
    " lost made meant met paid reread said seen sent shown spent taken told understood withheld won written".split()
)
VERBS = frozenset({"embed", "exceed", "feed", "need", "proceed", "seed", "shed", "succeed"})
PREPOSITIONS = frozenset({"after", "before", "by", "for", "from", "in", "of", "or", "to"})
# Adjectives that stand for an error: `raise unsupported(...)`.
ALLOWED = frozenset({"_unheld", "_unknown", "unsupported"})


def is_participle(word: str) -> bool:
    roots = {word, word.removeprefix("re"), word.removeprefix("un")}
    return word not in VERBS and (word.endswith("ed") or not roots.isdisjoint(IRREGULAR))


def is_named_by_a_participle(name: str) -> bool:
    """Whether a name is a participle alone, as `kept`, or one that is left open, as `seen_by`; not `kept_rows`."""
    first, *rest = name.strip("_").split("_")
    return name not in ALLOWED and is_participle(first) and (not rest or rest[0] in PREPOSITIONS)


def is_value(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function is read like a value: a property or a fixture."""
    return any(word in ast.unparse(each) for each in node.decorator_list for word in ("property", "fixture"))


def functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_value(node):
            yield node


def test_no_function_is_named_by_a_participle():
    assert SOURCES
    wrong = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in SOURCES
        for node in functions(path)
        if is_named_by_a_participle(node.name)
    ]
    assert not wrong, "Name these by a verb or by what they return: " + ", ".join(wrong)


@pytest.mark.parametrize("name", ["_begun", "kept", "seen_by", "_made_of", "declared_or_not", "reread", "withheld"])
def test_a_participle_is_seen(name: str):
    assert is_named_by_a_participle(name)


@pytest.mark.parametrize("name", ["begin", "kept_rows", "_need", "is_kept", "connection_lost", "read", "unsupported"])
def test_a_verb_or_a_noun_passes(name: str):
    assert not is_named_by_a_participle(name)
