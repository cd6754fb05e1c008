"""Fetches mock-oauth2-server and what it needs from Maven; run as a program, as Trino's is: `fetching.py FOLDER`."""

import shutil
import sys
from pathlib import Path

from jgo.maven import MavenContext, Model

GROUP, NAME, VERSION = "no.nav.security", "mock-oauth2-server", "6.0.2"


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir()
    context = MavenContext(repo_cache=folder.parent / "maven", timeout=60)
    component = context.project(GROUP, NAME).at_version(VERSION)
    needed, _ = Model(component.pom(), context).dependencies()
    for artifact in (component.artifact(), *(each.artifact for each in needed if each.scope in ("compile", "runtime"))):
        shutil.copy(artifact.resolve(), folder)


if __name__ == "__main__":
    main()
