"""A dialect of a stranger's, on a driver we do not ship: built, installed beside our wheel, and conforming there."""

import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
PLUGIN = HERE / "dragoman-duckdb"
UV = shutil.which("uv") or "uv"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]


def run(*command: object, folder: Path) -> str:
    """Return the output of a command that must succeed, run away from the checkout."""
    environment = {key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "PYTHONPATH"}}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, check=False, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stranger")


@pytest.fixture(scope="module")
def environment(folder: Path) -> Path:
    """The programs of a clean virtual environment with the two wheels and what they need, nothing else."""
    shutil.copytree(PLUGIN, folder / PLUGIN.name, ignore=shutil.ignore_patterns("__pycache__"))
    for source in (ROOT / "core", folder / PLUGIN.name):
        run(UV, "build", "--wheel", "--quiet", "--out-dir", folder / "dist", source, folder=folder)
    core, plugin = sorted((folder / "dist").glob("*.whl"))
    run(UV, "venv", "--quiet", "--python", sys.executable, folder / "venv", folder=folder)
    until = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["uv"]["exclude-newer"]
    wheels = (f"dragoman[sqlalchemy,testing] @ {core.as_uri()}", f"dragoman-duckdb @ {plugin.as_uri()}")
    install = (UV, "pip", "install", "--quiet", "--python", folder / "venv", "--exclude-newer", until)
    run(*install, *wheels, folder=folder)
    return folder / "venv" / "bin"


def test_the_dialect_conforms_where_it_is_installed(environment: Path, folder: Path):
    output = run(environment / "python", "-m", "pytest", "-q", "tests", folder=folder / PLUGIN.name)
    assert " passed" in output


def test_the_dialect_is_found_by_its_name_and_answers_over_a_url(environment: Path, folder: Path):
    create = "import duckdb; duckdb.connect('shop.duckdb').execute('CREATE TABLE orders AS SELECT 42 AS id')"
    run(environment / "python", "-c", create, folder=folder)
    url = "shop=duckdb:///shop.duckdb"
    query = ("query", "shop", "SELECT id FROM orders", "--format", "csv", "--url", url)
    assert run(environment / "dragoman", *query, folder=folder).split() == ["id", "42"]


def test_its_whole_source_is_small():
    source = (PLUGIN / "src" / "dragoman_duckdb" / "__init__.py").read_text()
    assert len([line for line in source.splitlines() if line.strip()]) < 60
