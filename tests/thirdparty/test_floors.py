"""The oldest versions of other packages that our distributions declare work: somebody has them installed."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = shutil.ignore_patterns(".git", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", "__pycache__", "uv.lock")


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_the_oldest_versions_that_are_declared_pass_every_fast_test(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=OURS, symlinks=True)
    environment = {name: value for name, value in os.environ.items() if name not in {"VIRTUAL_ENV", "UV_NO_SYNC"}}
    for command in ("sync --quiet --resolution lowest-direct", "run --no-sync python -m pytest -m fast -n 2"):
        done = subprocess.run(
            ["uv", *command.split()], cwd=tree, env=environment, capture_output=True, check=False, text=True
        )
        assert done.returncode == 0, (done.stdout + done.stderr)[-20_000:]
