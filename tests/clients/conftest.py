"""A real server on a real database, and the Node programs that talk to it."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).parent
PACKAGES = HERE / "node_modules"

SHOP = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER NOT NULL REFERENCES customers, total NUMERIC NOT NULL);
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace');
INSERT INTO orders VALUES (1, 1, 12.5), (2, 2, 7), (3, 1, 30);
"""


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The URL of a small SQLite database."""
    path = tmp_path_factory.mktemp("clients") / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(SHOP)
    connection.close()
    return f"sqlite:///{path}"


@pytest.fixture(scope="session", params=["hot", "sdk"])
def way(request: pytest.FixtureRequest) -> str:
    """How calls go: past the SDK, or everything through it. What a client sees is the same."""
    return request.param


@pytest.fixture(scope="session")
def serve(shop: str, way: str) -> list[str]:
    """The command that serves the shop over stdio; clients do not pass on the environment."""
    hot = "on" if way == "hot" else "off"
    return ["env", f"DRAGOMAN_HOT_PATH={hot}", sys.executable, "-m", "dragoman", "serve", shop]


@pytest.fixture(scope="session")
def url(serve: list[str]) -> Iterator[str]:
    """The shop served over HTTP, without a token, on a free port of loopback."""
    command = [*serve, "--transport", "http", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if found := re.search(r"serving on (http://[^\s\"]+)", line):
                break
        else:
            pytest.fail("the server ended before it served")
        with open(os.devnull, "w") as nowhere, subprocess.Popen(["cat"], stdin=process.stderr, stdout=nowhere):
            yield found[1]
            process.terminate()


@pytest.fixture(scope="session")
def packages() -> Path:
    """The Node packages of `package.json`, installed on first use and kept between runs.

    Without npm the tests are skipped, except in CI, where that is an error.
    """
    wanted = (HERE / "package.json").read_text()
    stamp = PACKAGES / "installed.json"
    if not (stamp.exists() and stamp.read_text() == wanted):
        npm = shutil.which("npm")
        if npm is None and os.environ.get("CI"):
            raise RuntimeError("npm is missing: CI must run the tests with Node clients")
        if npm is None:
            pytest.skip("npm is missing: the Inspector and the conformance suite are not run")
        command = [npm, "install", "--no-audit", "--no-fund", "--no-package-lock", "--loglevel=error"]
        subprocess.run(command, cwd=HERE, check=True, timeout=300)
        stamp.write_text(wanted)
    return PACKAGES


@pytest.fixture(scope="session")
def node(packages: Path) -> str:
    """Node 22, which comes as a package because a machine may have an older one."""
    return str(packages / "node" / "bin" / "node")
