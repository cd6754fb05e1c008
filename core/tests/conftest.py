"""What tests of several layers share: distributions made for one test, installed as any other is."""

import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from textwrap import dedent

import pytest

Install = Callable[..., Path]

PRETEND = '''
from contextlib import asynccontextmanager
from dataclasses import dataclass
from dragoman import *

class PretendExecutor(Executor):
    """Answers every query with the name of its dialect and the text it was given."""

    def __init__(self, database):
        self.database = database
        self.closed = False

    @asynccontextmanager
    async def open(self, request):
        async def batches():
            yield [(self.database.dialect, request.statement)]

        text = Kind("text")
        yield RowStream([Column("dialect", "text", text), Column("statement", "text", text)], batches())

    async def aclose(self):
        self.closed = True

class PretendInspector(Inspector):
    async def version(self):
        return "1"

    async def schemas(self):
        return [Schema(name="main")]

    async def tables(self, scope):
        column = TableColumn(name="id", type="integer")
        return Inspection((Table(relation=Relation("things", "main"), columns=(column,)),))

class PretendPlugin(DialectPlugin):
    dialect = Dialect(
        name="pretend", contract=CONTRACT, sqlglot="sqlite", capabilities=frozenset({Capability.READ_ONLY_SESSION})
    )

    @hookimpl
    def executor(self, database):
        return PretendExecutor(database)

    @hookimpl
    def inspector(self, database, executor):
        return PretendInspector()
'''
"""A whole dialect that needs no database; `plugin` is to be defined by who uses it."""


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """Install a distribution of one module: `install("dragoman-odd", source, dialects={"odd": "plugin"})`.

    Returns the folder it is in, which is on `sys.path` for the test. `pretend=True` puts a whole dialect before the
    source.
    """
    site = tmp_path / "site-packages"
    site.mkdir()

    def install(
        distribution: str,
        source: str,
        *,
        version: str = "1.0",
        dialects: Mapping[str, str] | None = None,
        policies: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        pretend: bool = False,
    ) -> Path:
        module = distribution.replace("-", "_")
        (site / f"{module}.py").write_text((PRETEND if pretend else "") + dedent(source), encoding="utf-8")
        info = site / f"{module}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        groups = {
            "dragoman.dialects": dialects or {},
            "dragoman.policies": policies or {},
            "dragoman.environment": environment or {},
        }
        lines = [
            line
            for group, named in groups.items()
            for line in [f"[{group}]", *(f"{name} = {module}:{attribute}" for name, attribute in named.items())]
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(site)
        return site

    yield install
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", "")).startswith(str(site)):
            del sys.modules[name]
