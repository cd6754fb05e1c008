"""Downloads one archive of Trino from Maven. Run as a program, so that sockets left open end with it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

VERSION: Final = "476"
MISSING: Final = 3
"""The exit status if the downloader is not installed."""
_TIMEOUT = 60


def main() -> None:
    """Download the part named by the first argument into the folder named by the second; print the archive's path."""
    part, repository = sys.argv[1:]
    try:
        from jgo.maven import MavenContext
    except ImportError:
        sys.exit(MISSING)
    component = MavenContext(repo_cache=Path(repository), timeout=_TIMEOUT).project("io.trino", f"trino-{part}")
    packaging = "tar.gz" if part == "server-core" else "zip"
    try:
        print(component.at_version(VERSION).artifact(packaging=packaging).resolve())
    except Exception as error:  # HTTP or Maven may raise anything; a message may name hosts
        sys.exit(type(error).__name__)


if __name__ == "__main__":
    main()
