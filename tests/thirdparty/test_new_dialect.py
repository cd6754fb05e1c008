"""What `dragoman new-dialect` writes is installed as a stranger would, and passes the kit before it is touched."""

import pytest

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
FLAVOURS = {"alpha": (), "beta": ("--sqlalchemy",)}


@pytest.fixture(scope="module")
def written(clean):
    clean.install("dragoman[sqlalchemy,testing]")
    for name, options in FLAVOURS.items():
        clean.run(clean.bin / "dragoman", "new-dialect", name, *options)
        package = clean.folder / f"dragoman-{name}"
        wheel = clean.wheel(package)
        clean.run("uv", "pip", "install", "--quiet", "--python", clean.folder / ".venv", wheel)
    return clean


@pytest.mark.parametrize("name", FLAVOURS)
def test_it_passes_the_kit_as_it_is(written, name):
    package = written.folder / f"dragoman-{name}"
    output = written.run(written.bin / "python", "-m", "pytest", "-q", "-W", "error", "tests", folder=package)
    assert " passed" in output


@pytest.mark.parametrize("name", FLAVOURS)
def test_it_answers_by_its_name(written, name):
    script = "DROP TABLE IF EXISTS t; CREATE TABLE t (id); INSERT INTO t VALUES (7)"
    create = f"import sqlite3; sqlite3.connect('shop.db').executescript({script!r})"
    written.run(written.bin / "python", "-c", create)
    query = ("query", f"{name}:///shop.db", "SELECT count(*) AS n FROM t", "--format", "csv")
    assert written.run(written.bin / "dragoman", *query).split() == ["n", "1"]
