"""People at the command line read of commands and options, not of an agent's tools."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman.cli.common import in_our_words
from dragoman.tools.reference import TOOLSETS
from dragoman.tools.standard import SPECS

SOURCES = Path(__file__).parents[3]
ONLY_FOR_TOOLS = {
    "get_result",
    "export_result",
    "drop_result",
    "save_query",
    "read_resource",
    "get_row",
    "edit_database",
}
"""Tools that no command stands for, and whose hints no command can cause."""


def hints() -> Iterator[str]:
    """Return what the sources write as a suggestion or as an error's remedy, with `x` for what is filled in."""
    for path in (*SOURCES.glob("*/src/**/*.py"), *SOURCES.glob("plugins/*/src/**/*.py")):
        yield from _hints_of(ast.parse(path.read_text()))


def _hints_of(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.keyword(arg="suggestion" | "remedy" | "hint", value=value):
                yield from _texts(value)
            case ast.Assign(targets=[ast.Name(id="remedy" | "hint" | "suggestion")], value=value):
                yield from _texts(value)
            case _:
                pass


def _texts(value: ast.expr) -> Iterator[str]:
    """Return the texts of an expression, those of an f-string joined."""
    if isinstance(value, ast.JoinedStr):
        yield "".join(str(each.value) if isinstance(each, ast.Constant) else "x" for each in value.values)
    elif isinstance(value, ast.Constant):
        yield str(value.value)
    else:
        for child in ast.iter_child_nodes(value):
            if isinstance(child, ast.expr):
                yield from _texts(child)


HINTS = sorted({hint for hint in hints() if re.search(r"\b[a-z]+_[a-z]+", hint)})


def test_hints_are_found():
    assert any("describe_table" in hint for hint in HINTS)


@pytest.mark.parametrize("hint", HINTS)
def test_no_hint_at_the_command_line_names_a_tool(hint):
    names = {tool.name for tool in (*SPECS, *(tool for each in TOOLSETS.values() for tool in each))} - ONLY_FOR_TOOLS
    assert not names.intersection(re.findall(r"\w+", in_our_words(hint)))
