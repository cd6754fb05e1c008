"""The example policies pass their own tests as wheels in a clean environment."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
POLICIES = ("dragoman-column-policy", "dragoman-tagging-policy")
UV = shutil.which("uv") or "uv"
TESTS = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "tests")


def run(*command: object, folder: Path) -> str:
    """Return the output of a command that must succeed."""
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wheels of the core and of what the policies' tests need, built once."""
    folder = tmp_path_factory.mktemp("wheels")
    for source in (ROOT / "core", ROOT / "plugins" / "sqlite", *(EXAMPLES / policy for policy in POLICIES)):
        copy = folder / "sources" / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", ".pytest_cache"))
        run(UV, "build", "--wheel", "--quiet", "--out-dir", folder / "dist", copy, folder=folder)
    return folder


@pytest.mark.full
@pytest.mark.timeout(600)
@pytest.mark.parametrize("policy", POLICIES)
def test_a_policy_passes_its_tests_from_wheels_in_a_clean_environment(policy: str, clean: Path, tmp_path: Path):
    run(UV, "venv", "--quiet", "--python", sys.executable, tmp_path / "venv", folder=tmp_path)
    until = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["exclude-newer"]
    module = policy.replace("-", "_")
    wheels = {wheel.name.partition("-")[0]: wheel.as_uri() for wheel in (clean / "dist").glob("*.whl")}
    wanted = (
        f"dragoman[testing] @ {wheels['dragoman']}",
        f"dragoman-sqlite @ {wheels['dragoman_sqlite']}",
        f"{policy} @ {wheels[module]}",
    )
    python = tmp_path / "venv" / "bin" / "python"
    run(UV, "pip", "install", "--quiet", "--python", python, "--exclude-newer", until, *wanted, folder=tmp_path)
    shutil.copytree(EXAMPLES / policy / "tests", tmp_path / "tests")
    shutil.copy(EXAMPLES / policy / "pyproject.toml", tmp_path)
    assert " passed" in run(python, *TESTS, folder=tmp_path)
    shown = run(tmp_path / "venv" / "bin" / "dragoman", "dialects", folder=tmp_path)
    assert policy in shown
