"""Fetches one archive of Trino from Maven; run as a program, so that what the download leaves open ends with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

VERSION: Final = "476"
MISSING: Final = 3
"""The exit status where the downloader is not installed."""
_TIMEOUT = 60


def main() -> None:
    """Fetch the part named by the first argument into the folder named by the second; print the archive's path."""
    part, repository = sys.argv[1:]
    try:
        from jgo.maven import MavenContext
    except ImportError:
        sys.exit(MISSING)
    component = MavenContext(repo_cache=Path(repository), timeout=_TIMEOUT).project("io.trino", f"trino-{part}")
    packaging = "tar.gz" if part == "server-core" else "zip"
    try:
        print(component.at_version(VERSION).artifact(packaging=packaging).resolve())
    except Exception as error:  # whatever HTTP or Maven may raise; a message may name hosts
        sys.exit(type(error).__name__)


if __name__ == "__main__":
    main()
