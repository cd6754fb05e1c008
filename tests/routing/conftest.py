"""Dialects and policies as distributions of their own, in a gateway beside SQLite."""

import sqlite3
from pathlib import Path

import pytest
from dragoman import Database

DIALECT = """
from contextlib import asynccontextmanager
from dragoman import *

asked = []

class {title}Executor(Executor):
    def __init__(self, database):
        self.database = database

    @asynccontextmanager
    async def open(self, request):
        async def batches():
            yield [("{name}", self.database.name, request.statement)]

        text = Kind("text")
        yield RowStream([Column(name, "text", text) for name in ("dialect", "database", "statement")], batches())

class {title}Inspector(Inspector):
    async def version(self):
        return "{name} 1"

    async def schemas(self):
        return [Schema(name="main")]

    async def tables(self, scope):
        return Inspection((Table(relation=Relation("{name}_things", "main")),))

class {title}Validator(Validator):
    async def check(self, statement, call):
        asked.append((call.database.name, statement.text))

class {title}Plugin(DialectPlugin):
    dialect = Dialect(
        name="{name}", contract=CONTRACT, sqlglot="sqlite", capabilities=frozenset({{Capability.READ_ONLY_SESSION}})
    )

    @hookimpl
    def executor(self, database):
        asked.append(database.dialect)
        return {title}Executor(database)

    @hookimpl
    def inspector(self, database, executor):
        asked.append(database.dialect)
        assert isinstance(executor, Executor)
        return {title}Inspector()

    @hookimpl
    def validators(self, database, executor, inspector):
        asked.append(database.dialect)
        return [{title}Validator()]

plugin = {title}Plugin()
"""


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Install distributions for the test: `site("dragoman-x", source, "dialects", {"x": "plugin"})`."""
    import sys

    folder = tmp_path / "site-packages"
    folder.mkdir()

    def install(distribution: str, source: str, group: str, named: dict[str, str]) -> str:
        module = distribution.replace("-", "_")
        (folder / f"{module}.py").write_text(source, encoding="utf-8")
        info = folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1.0\n")
        lines = [f"{name} = {module}:{attribute}" for name, attribute in named.items()]
        (info / "entry_points.txt").write_text("\n".join([f"[dragoman.{group}]", *lines]))
        monkeypatch.syspath_prepend(folder)
        return module

    yield install
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(folder)):
            del sys.modules[name]


@pytest.fixture
def dialect(site):
    """Install a dialect of its own: returns the name of its module, whose `asked` lists what it was asked."""
    return lambda name: site(
        f"dragoman-{name}", DIALECT.format(name=name, title=name.title()), "dialects", {name: "plugin"}
    )


@pytest.fixture
def shop(tmp_path: Path) -> Database:
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript("CREATE TABLE people (id INTEGER, email TEXT); INSERT INTO people VALUES (1, 'a@b.c')")
    connection.close()
    return Database(name="shop", dialect="sqlite", database="shop.db", folder=tmp_path)
