"""No policy takes a wall away, whatever it wraps or replaces, and no database opens what only another one allows."""

import dataclasses
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from dragoman import ConfigurationError, Database, Gateway, UnsafeSql
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman_postgres.testing import Server

from .conftest import write_policy

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
    async def doctor(self):
        return (Finding(severity="note", subject="deaf", message="All is well.", remedy="None."),)

    async def aclose(self):
        closed.append("executor")

class Replacing(PolicyPlugin):
    def wrap_inspector(self, inspector, database, dialect):
        return Blind()

    def wrap_executor(self, executor, database, dialect):
        return Deaf(executor)

plugin = Replacing()
"""
AGREEING = """
from dragoman import *

class Agreeing(WrappedExecutor):
    async def prepare(self, request):
        pass

class Policy(PolicyPlugin):
    def wrap_executor(self, executor, database, dialect):
        return Agreeing(executor)

plugin = Policy()
"""


@pytest.fixture(scope="module")
async def planted(server: Server, anyio_backend: str) -> Database:
    """A database whose users have made a function called as one of the system's."""
    return server.configure(await server.create(PLANTED))


@pytest.fixture
def replacing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], list[str]]]:
    """A policy that replaces every inspector and keeps the executors from being closed; what it was told to close."""
    monkeypatch.syspath_prepend(write_policy(tmp_path / "site", "replacing", REPLACING))
    yield lambda: sys.modules["policy_replacing"].closed
    sys.modules.pop("policy_replacing", None)


@pytest.fixture
def agreeing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A policy whose executor says that every statement compiles."""
    monkeypatch.syspath_prepend(write_policy(tmp_path / "site", "agreeing", AGREEING))
    yield
    sys.modules.pop("policy_agreeing", None)


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


async def test_what_a_policy_says_is_added_to_what_the_doctor_finds(planted: Database, replacing):
    async with Gateway.open([planted]) as gateway:
        found = await gateway.database().doctor()
    assert found[0].severity == "danger"
    assert [finding.subject for finding in found].count("deaf") == 1


async def test_a_filter_is_compiled_though_a_policy_says_that_all_compiles(planted: Database, agreeing):
    grant = Grant(
        database=planted.name, tables=("public.seen",), filter="lower(note, 1) > ''", key="roles.clerk.grants.0"
    )
    role = Role(name="clerk", groups=frozenset({"clerks"}), grants=(grant,))
    configuration = Configuration(databases={planted.name: planted}, roles={"clerk": role})
    with pytest.raises(ConfigurationError, match="does not exist"):
        async with Gateway.open(configuration):
            pass
