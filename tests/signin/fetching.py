"""Fetches an OAuth server from Maven; run as a program: `fetching.py mock-oauth2-server|keycloak FOLDER`."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

from jgo.maven import MavenContext, Model

GROUP, NAME, VERSION = "no.nav.security", "mock-oauth2-server", "6.0.2"
KEYCLOAK = "26.7.3"
BUILT_IN = ("--db=dev-mem", "--cache=local", "--features=resource-indicators")
"""What of Keycloak's settings is fixed when it is built, which takes it a minute."""


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    context = MavenContext(repo_cache=folder.parent / "maven", timeout=60)
    {"mock-oauth2-server": fetch_mock_server, "keycloak": fetch_keycloak}[name](context, folder)


def fetch_mock_server(context: MavenContext, folder: Path) -> None:
    """Fetch the server and what it needs into a folder of jars."""
    folder.mkdir()
    component = context.project(GROUP, NAME).at_version(VERSION)
    needed, _ = Model(component.pom(), context).dependencies()
    for artifact in (component.artifact(), *(each.artifact for each in needed if each.scope in ("compile", "runtime"))):
        shutil.copy(artifact.resolve(), folder)


def fetch_keycloak(context: MavenContext, folder: Path) -> None:
    """Fetch, unpack and build Keycloak; `JAVA` of the environment names the Java that does it."""
    component = context.project("org.keycloak", "keycloak-quarkus-dist").at_version(KEYCLOAK)
    with zipfile.ZipFile(component.artifact(packaging="zip").resolve()) as package:
        package.extractall(folder.parent)
    (folder.parent / f"keycloak-{KEYCLOAK}").rename(folder)
    subprocess.run(["bash", str(folder / "bin" / "kc.sh"), "build", *BUILT_IN], env=os.environ, check=True)


if __name__ == "__main__":
    main()
