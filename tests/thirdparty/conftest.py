"""Strangers are tested where they are installed: beside our wheel, in virtual environments that hold nothing else."""

import os
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
UV = shutil.which("uv") or "uv"
HIDDEN = {"VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME"}


@dataclass(frozen=True)
class Clean:
    """A folder away from the checkout. What it installs as `dragoman` is the wheel of this checkout."""

    folder: Path
    core: Path
    sqlite: Path | None = None

    @property
    def environment(self) -> dict[str, str]:
        """The environment of every command here."""
        wheels = {"dragoman": self.core, "dragoman-sqlite": self.sqlite}
        lines = [f"{name} @ {wheel.as_uri()}\n" for name, wheel in wheels.items() if wheel]
        (self.folder / "constraints.txt").write_text("".join(lines), encoding="utf-8")
        pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
        return {
            **{key: value for key, value in os.environ.items() if key not in HIDDEN},
            "UV_CONSTRAINT": str(self.folder / "constraints.txt"),
            "UV_EXCLUDE_NEWER": pyproject["tool"]["uv"]["exclude-newer"],
            # Not UV_PYTHON: that is where `uv pip` would install to, whatever environment is active.
            "PATH": os.pathsep.join((f"{sys.base_prefix}/bin", os.environ["PATH"])),
        }

    @property
    def bin(self) -> Path:
        """The programs of its virtual environment."""
        return self.folder / ".venv" / "bin"

    def run(self, *command: object, folder: Path | None = None) -> str:
        """Return the output of a command that must succeed."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=folder or self.folder,
            env=self.environment,
            capture_output=True,
            check=False,
            text=True,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def wheel(self, source: Path) -> Path:
        """Build a copy of a distribution's folder, and return its wheel."""
        copy = self.folder / "source" / source.name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns("__pycache__", ".*cache", "dist"))
        self.run(UV, "build", "--wheel", "--quiet", "--out-dir", self.folder / "dist" / source.name, copy)
        return next((self.folder / "dist" / source.name).glob("*.whl"))

    def install(self, *requirements: object) -> None:
        """Make the virtual environment with these requirements and what they need."""
        self.run(UV, "venv", "--quiet", self.folder / ".venv")
        self.run(UV, "pip", "install", "--quiet", "--python", self.folder / ".venv", *requirements)


@pytest.fixture(scope="session")
def core_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of the core, built once."""
    folder = tmp_path_factory.mktemp("wheels")
    return Clean(folder, folder / "none.whl").wheel(ROOT / "core")


@pytest.fixture(scope="module")
def clean(tmp_path_factory: pytest.TempPathFactory, core_wheel: Path) -> Clean:
    """An empty folder for a module's tests."""
    folder = tmp_path_factory.mktemp("stranger")
    (folder / "dist").mkdir()  # the pages install from there; here the constraints name our wheels
    return Clean(folder, core_wheel)
