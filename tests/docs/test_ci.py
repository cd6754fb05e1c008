"""CI runs every folder of tests, and tells which tests failed."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
FOLDERS = TOOLS["pytest"]["ini_options"]["testpaths"]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_job_of_ci_runs_each_folder_of_tests(folder: str) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    jobs = re.findall(r"^\w+ +uv run pytest (?:-n 2 )?-m 'not nightly' (.+?)(?: \$\(ignore .*)?$", script, re.MULTILINE)
    script_trino = re.search(r'^trino="(.+)"$', script, re.MULTILINE)
    assert script_trino is not None
    named = " ".join([*jobs, script_trino[1]]).split()
    assert any(folder == name or folder.startswith(f"{name}/") for name in named), (folder, named)


def test_pyright_reads_each_folder_of_tests_and_strictly_what_is_delivered() -> None:
    """By name: pyright passes over a pattern with a star in the middle, and says nothing."""
    settings = TOOLS["pyright"]
    members = [folder for member in TOOLS["uv"]["workspace"]["members"] for folder in ROOT.glob(f"{member}/src")]
    delivered = [folder.relative_to(ROOT).as_posix() for folder in members]
    assert {*delivered} == {*settings["strict"]} == {*TOOLS["mypy"]["files"]}
    assert {*settings["include"]} == {*delivered, *FOLDERS, "conftest.py"}
    assert settings["extraPaths"] == TOOLS["pytest"]["ini_options"]["pythonpath"]


def run_side_by_side(folder: Path, test: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run one file of tests as a job of CI."""
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    file = folder / "test_job.py"
    file.write_text(test, encoding="utf-8")
    script = [sys.executable, str(ROOT / ".ci" / "side_by_side.py")]
    job = shlex.join(["job", sys.executable, "-m", "pytest", str(file), *options])
    environment = os.environ | environment
    return subprocess.run(script, input=job, capture_output=True, text=True, check=False, env=environment)


def test_a_test_that_fails_only_beside_others_is_named(tmp_path: Path) -> None:
    flag = tmp_path / "ran"
    test = (
        f"from pathlib import Path\ndef test_a(flag=Path({str(flag)!r})):\n    assert (flag.exists(), flag.touch())[0]"
    )
    ended = run_side_by_side(tmp_path, test)
    assert ended.returncode == 0, ended
    assert "PASSED ALONE, failed beside other programs: test_job.py::test_a" in ended.stdout


@pytest.mark.parametrize(("failing", "again"), [(1, True), (3, True), (4, False)])
def test_tests_that_fail_fail_the_run_and_only_few_run_again(tmp_path: Path, failing: int, again: bool) -> None:
    test = "\n".join(f"def test_{number}(): assert 0" for number in range(failing))
    ended = run_side_by_side(tmp_path, test)
    assert ended.returncode == 1
    assert ("failed alone too" in ended.stdout) == again


HANGS = "import threading\ndef test_that_hangs(): threading.Event().wait(600)"


def test_a_run_that_takes_too_long_ends_and_tells_what_still_ran(tmp_path: Path) -> None:
    ended = run_side_by_side(tmp_path, HANGS, "-v", MINUTES="0.05")
    assert ended.returncode == 1
    assert "job did not end" in ended.stdout
    assert "failed: job" in ended.stdout


def test_a_test_that_no_timeout_ends_is_named(tmp_path: Path) -> None:
    """As what runs tests beside each other has it: the process of one ends, and another takes its place."""
    ended = run_side_by_side(tmp_path, HANGS, "-n", "1", STUCK="1")
    assert ended.returncode == 1
    assert "test_job.py::test_that_hangs" in ended.stdout
    assert "in test_that_hangs" in ended.stdout + ended.stderr
