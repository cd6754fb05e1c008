"""CI runs every folder of tests."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["pytest"]["ini_options"][
    "testpaths"
]


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_job_of_ci_runs_each_folder_of_tests(folder: str) -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    jobs = re.findall(r"^\w+ +uv run pytest -m 'not nightly' (.+?)(?: \$\(ignore .*)?$", script, re.MULTILINE)
    script_trino = re.search(r'^trino="(.+)"$', script, re.MULTILINE)
    assert script_trino is not None
    named = " ".join([*jobs, script_trino[1]]).split()
    assert any(folder == name or folder.startswith(f"{name}/") for name in named), (folder, named)
