"""Every command of the quickstart does what the page says."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
EXAMPLES = DOCS / "examples"
BLOCK = re.compile(r"```console\n\$ (.*?)\n(.*?)```", re.DOTALL)


def commands() -> list[tuple[str, str]]:
    return BLOCK.findall((DOCS / "quickstart.md").read_text(encoding="utf-8"))


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    program, *arguments = shlex.split(command)
    start = [sys.executable, "-m", "dragoman"] if program == "dragoman" else [sys.executable, "-P"]
    return subprocess.run([*start, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quickstart")
    for example in EXAMPLES.glob("*.py"):
        (folder / example.name).write_text(example.read_text(encoding="utf-8"), encoding="utf-8")
    assert run("python make_shop.py", folder).returncode == 0
    return folder


def test_the_page_shows_commands() -> None:
    assert len(commands()) >= 5


@pytest.mark.parametrize(("command", "expected"), [c for c in commands() if c[0].startswith("dragoman ")])
def test_a_command_answers_what_the_page_shows(command: str, expected: str, shop: Path) -> None:
    done = run(command, shop)
    if expected.startswith("! "):
        assert done.returncode == 1
        assert expected.removeprefix("! ").strip() in done.stderr
    else:
        assert done.stdout.split() == expected.split(), done.stderr


def test_the_library_example_prints_the_rows(shop: Path) -> None:
    done = run("python library.py", shop)
    assert "['name', 'total'] [['Ada', 12.5], ['Ada', 80], ['Chidi', 7.25]]" in done.stdout, done.stderr


def test_the_page_shows_the_library_example_as_it_is() -> None:
    assert (EXAMPLES / "library.py").read_text(encoding="utf-8") in (DOCS / "quickstart.md").read_text(encoding="utf-8")
