"""No policy takes a wall away, whatever it wraps or replaces, and no database opens what only another one allows."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dragoman import Database, Gateway, UnsafeSql
from dragoman_postgres.testing import Server

# abs(text) is no function of the system's, so what answers to the name is a user's.
PLANTED = """
CREATE TABLE seen (note text);
CREATE FUNCTION abs(text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION counted(integer) RETURNS integer LANGUAGE sql AS 'SELECT 1';
"""
REPLACING = """
from dragoman import *

closed = []

class Blind(Inspector):
    async def version(self):
        return "0"

    async def schemas(self):
        return ()

    async def tables(self, scope):
        return Inspection(())

    async def aclose(self):
        closed.append("inspector")

class Deaf(WrappedExecutor):
    async def aclose(self):
        closed.append("executor")

class Replacing(PolicyPlugin):
    def wrap_inspector(self, inspector, database, dialect):
        return Blind()

    def wrap_executor(self, executor, database, dialect):
        return Deaf(executor)

plugin = Replacing()
"""


@pytest.fixture(scope="module")
async def planted(server: Server, anyio_backend: str) -> Database:
    """A database whose users have made a function called as one of the system's."""
    return server.configure(await server.create(PLANTED))


@pytest.fixture
def replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """A policy that replaces every inspector and keeps the executors from being closed; what it was told to close."""
    (tmp_path / "replacing.py").write_text(REPLACING)
    info = tmp_path / "dragoman_replacing-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-replacing\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[dragoman.policies]\nreplacing = replacing:plugin\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield lambda: sys.modules["replacing"].closed
    sys.modules.pop("replacing", None)


async def test_users_functions_stay_refused_though_a_policy_replaces_the_inspector(planted: Database, replacing):
    async with Gateway.open([planted]) as gateway:
        assert await gateway.database().inspector.version() == "0"
        with pytest.raises(UnsafeSql, match="users of this database made"):
            await gateway.query(planted.name, "SELECT abs('x')")
        assert (await gateway.query(planted.name, "SELECT pg_catalog.abs(-1)")).rows == [[1]]


async def test_what_a_policy_replaces_is_closed_all_the_same(planted: Database, replacing):
    # A connection that nobody closed is an error of the run.
    async with Gateway.open([planted]) as gateway:
        await gateway.query(planted.name, "SELECT 1")
    assert replacing() == ["inspector", "executor"]


async def test_what_one_database_allows_another_does_not(planted: Database):
    opened = dataclasses.replace(planted, name="opened", allow_functions=frozenset({"counted"}))
    text = "SELECT counted(1)"
    async with Gateway.open([planted, opened]) as gateway:
        for _ in range(2):
            assert (await gateway.query("opened", text)).rows == [[1]]
            with pytest.raises(UnsafeSql, match="counted"):
                await gateway.query(planted.name, text)
