"""Help, near names and tab completion: what somebody meets who does not know the words yet."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from dragoman.cli import COMMANDS

from .conftest import Dragoman


@pytest.mark.parametrize("words", [(), ("help",), ("-h",), ("--help",)])
def test_the_program_alone_shows_its_help(dragoman: Dragoman, words: tuple[str, ...]) -> None:
    outcome = dragoman(*words)
    assert (outcome.code, outcome.err) == (0, "")
    assert all(command in outcome.out for command in COMMANDS)


def test_help_of_a_command_is_its_own(dragoman: Dragoman) -> None:
    assert dragoman("help", "query").out == dragoman("query", "-h").out


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_shows_examples_of_itself(dragoman: Dragoman, command: str) -> None:
    group = dragoman(command, "-h").out
    assert f"dragoman {command}" in _examples(group)
    for action in re.findall(r"^    ([a-z]+)  ", group, re.MULTILINE):
        assert f"dragoman {command} {action}" in _examples(dragoman(command, action, "-h").out)


def _examples(text: str) -> str:
    return text.partition("examples:\n")[2]


def test_the_version_has_a_short_option(dragoman: Dragoman) -> None:
    assert dragoman("-V").out == dragoman("--version").out


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (("qurey", "shop", "x"), "Did you mean query"),
        (("query", "shop", "x", "--lmit", "3"), "Did you mean --limit?"),
        (("query", "shop", "x", "--tmeout=3"), "Did you mean --timeout?"),
        (("query", "--lmit", "3"), "Did you mean --limit?"),
        (("databases", "sqlite:///shop.db"), "Did you mean --url sqlite:///shop.db?"),
        (("may", "ann", "shop", "select 1", "sqlite:///shop.db"), "Did you mean --url sqlite:///shop.db?"),
        (("query", "shop", "x", "--format", "jsno"), "Did you mean json?"),
        (("config", "shwo"), "Did you mean show?"),
        (("config", "init", "--froce"), "Did you mean --force?"),
        (("client-config", "claude-dekstop"), "Did you mean claude-desktop"),
    ],
)
def test_a_misspelt_word_is_answered_with_the_nearest(dragoman: Dragoman, words: tuple[str, ...], meant: str) -> None:
    outcome = dragoman(*words)
    assert (outcome.code, outcome.out) == (2, "")
    assert meant in outcome.err


def test_a_wrong_option_shows_the_usage_of_its_command(dragoman: Dragoman) -> None:
    assert dragoman("query", "shop", "x", "--lmit", "3").err.startswith("usage: dragoman query")


def test_a_missing_argument_alone_gets_no_suggestion(dragoman: Dragoman) -> None:
    assert "Did you mean" not in dragoman("query", "--limit", "3").err


def test_a_word_that_resembles_nothing_gets_no_suggestion(dragoman: Dragoman) -> None:
    assert "Did you mean" not in dragoman("zzzzzz" * 1000).err


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_what_a_shell_loads(dragoman: Dragoman, shell: str) -> None:
    assert "_ARGCOMPLETE" in dragoman("completion", shell).out


@pytest.mark.parametrize(
    ("line", "completions"),
    [
        ("dragoman qu", {"query", "queries"}),
        ("dragoman query --li", {"--limit"}),
        ("dragoman client-config cl", {"claude-desktop", "claude-code"}),
        ("dragoman query sh", {"shop"}),
    ],
)
def test_the_tab_key_completes(line: str, completions: set[str], configured: Path, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    environ = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
    }
    subprocess.run([sys.executable, "-m", "dragoman"], env=environ, check=True, timeout=60)
    assert {word.strip() for word in answer.read_text().split("\n")} == completions
