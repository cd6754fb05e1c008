"""The example policies, installed for one test as distributions of their own."""

import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman_postgres.testing import Server

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"


def installed(name: str, site: Path) -> Path:
    """Lay a policy out in a folder as an installer would; return the folder."""
    package = EXAMPLES / name
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    module = name.replace("-", "_")
    shutil.copytree(package / "src" / module, site / module, ignore=shutil.ignore_patterns("__pycache__"))
    info = site / f"{module}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {project['version']}\n")
    lines = [f"{key} = {value}" for key, value in project["entry-points"]["dragoman.policies"].items()]
    (info / "entry_points.txt").write_text("\n".join(["[dragoman.policies]", *lines]))
    return site


def write_policy(site: Path, name: str, source: str) -> Path:
    """Lay a policy of one module out in an empty folder; return the folder."""
    info = site / f"dragoman_{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (site / f"policy_{name}.py").write_text(source)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dragoman-{name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dragoman.policies]\n{name} = policy_{name}:plugin\n")
    return site


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One server is enough: what differs between versions is tested beside the plugin."""
    running = Server.start()
    yield running
    running.stop()


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install one of the policies for this test."""
    site = tmp_path / "site-packages"
    site.mkdir()
    yield lambda name: monkeypatch.syspath_prepend(installed(name, site))
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(site)):
            del sys.modules[name]
