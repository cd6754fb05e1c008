"""Databases are opened when they are used, recover by themselves, and say how they are."""

import asyncio
import logging
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from dragoman import ConfigurationError, ConnectionFailed, Database, DialectError, Gateway, QueryTimeout, ResultTooLarge
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.gateway.confining import Confiner
from dragoman.model import LOCAL, Limits
from dragoman.sql import Statement


@pytest.fixture
def absent(tmp_path: Path) -> Database:
    return Database(name="later", dialect="sqlite", database="later.db", folder=tmp_path)


async def test_a_database_that_is_down_stops_nobody(absent: Database, shop: Database):
    async with Gateway.open([absent, shop]) as gateway:
        with pytest.raises(ConnectionFailed, match="'later'") as raised:
            await gateway.query("later", "SELECT 1")
        assert str(absent.folder) not in str(raised.value)
        assert (await gateway.query("shop", "SELECT 1 AS one")).rows == [[1]]


async def test_a_database_that_comes_up_later_is_found(absent: Database, shop: Database):
    async with Gateway.open([absent]) as gateway:
        assert (await gateway.database().status()).state == "unknown"
        with pytest.raises(ConnectionFailed):
            await gateway.query("later", "SELECT 1")
        down = await gateway.database().status()
        assert down.state == "unreachable"
        assert "later" in down.error
        os.rename(shop.folder / "shop.db", absent.folder / "later.db")
        assert (await gateway.query("later", "SELECT count(*) FROM orders")).rows == [[2000]]
        assert (await gateway.database().status()).state == "ready"
        assert (await gateway.sample("later", "customers", limit=1)).row_count == 1


async def test_asking_for_the_status_asks_the_database(absent: Database, shop: Database):
    async with Gateway.open([absent]) as gateway:
        assert (await gateway.database().status(5)).state == "unreachable"
        os.rename(shop.folder / "shop.db", absent.folder / "later.db")
        up = await gateway.database().status(5)
        assert (up.state, up.error) == ("ready", "")
        assert up.version.startswith("3.")
        os.remove(absent.folder / "later.db")
        assert (await gateway.database().status(5)).state == "unreachable"


async def test_a_worker_that_is_killed_is_replaced(gateway: Gateway, shop: Database, endless: str, running):
    others = workers()  # servers of other tests
    await gateway.query("shop", "SELECT 1 AS one")
    for worker in workers() - others:
        os.kill(worker, signal.SIGKILL)
    while workers() - others:
        await asyncio.sleep(0)
    assert (await gateway.query("shop", "SELECT 2 AS two")).rows == [[2]]
    task = asyncio.create_task(gateway.query("shop", endless))
    await running(shop)
    for worker in workers() - others:
        os.kill(worker, signal.SIGKILL)
    with pytest.raises(ResultTooLarge):
        await task
    assert (await gateway.query("shop", "SELECT 3 AS three")).rows == [[3]]


def workers() -> set[int]:
    from dragoman.testing.idleness import children

    return set(children())


async def test_closing_leaves_no_process(shop: Database):
    others = workers()  # servers of other tests
    async with Gateway.open([shop]) as gateway:
        await gateway.query("shop", "SELECT 1 AS one")
        assert workers() - others
    assert not workers() - others


UNENFORCED = """
from dataclasses import replace
PretendPlugin.dialect = replace(PretendPlugin.dialect, capabilities=frozenset())
plugin = PretendPlugin()
"""


async def test_a_dialect_that_cannot_enforce_reading_must_be_accepted(install):
    install("dragoman-odd", UNENFORCED, dialects={"pretend": "plugin"}, pretend=True)
    database = Database(name="x", dialect="pretend")
    with pytest.raises(ConfigurationError, match="no read-only sessions") as raised:
        async with Gateway.open([database]):
            pass
    assert "databases.x.accept_unenforced = true" in raised.value.suggestion
    async with Gateway.open([Database(name="x", dialect="pretend", accept_unenforced=True)]) as gateway:
        assert (await gateway.query("x", "SELECT 1")).row_count == 1


async def test_an_option_that_does_not_fit_is_told_at_the_start(shop: Database):
    with pytest.raises(ConfigurationError, match=r"databases\.shop\.options: unknown option 'memory'") as raised:
        async with Gateway.open([Database(name="shop", dialect="sqlite", options={"memory": 1})]):
            pass
    assert raised.value.suggestion.startswith("Did you mean 'memory")


async def test_a_dialect_that_is_broken_is_told_at_the_start_and_to_who_asks(shop: Database, caplog):
    caplog.set_level(logging.WARNING)
    async with Gateway.open([shop, Database(name="lake", dialect="nessie")]) as gateway:
        assert "the database lake cannot be used" in caplog.text
        with pytest.raises(DialectError, match="'nessie'"):
            await gateway.query("lake", "SELECT 1")
        assert (await gateway.query("shop", "SELECT 1 AS one")).row_count == 1


LEAKY = """
import asyncio

class Leaky(PretendInspector):
    async def version(self):
        raise KeyError("driver")

    async def tables(self, scope):
        {tables}

class Odd(PretendPlugin):
    @hookimpl
    def inspector(self, database, executor):
        return Leaky()

plugin = Odd()
"""


async def test_an_inspector_s_own_errors_do_not_get_out(install):
    install("dragoman-odd", LEAKY.format(tables="1 / 0"), dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(DialectError, match="ZeroDivisionError"):
            await gateway.sample("x", "things")
        status = await gateway.database().status(5)
    assert status.state == "unreachable"
    assert "KeyError" in status.error
    assert "driver" not in status.error


async def test_an_inspector_has_the_database_s_timeout(install):
    hanging = LEAKY.format(tables="await asyncio.Event().wait()")
    install("dragoman-odd", hanging, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend", timeout=0.01)]) as gateway:
        with pytest.raises(QueryTimeout):
            await gateway.sample("x", "things")


async def test_a_call_s_own_timeout_counts_while_the_catalog_is_read(install, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dragoman.gateway.gateway.PATIENCE", 0.01)
    hanging = LEAKY.format(tables="await asyncio.Event().wait()")
    install("dragoman-odd", hanging, dialects={"pretend": "plugin"}, pretend=True)
    role = Role(name="all", principals=frozenset({"*"}), grants=(Grant(database="x", tables=("*",)),))
    settings = Configuration(databases={"x": Database(name="x", dialect="pretend", timeout=600)}, roles={"all": role})
    async with asyncio.timeout(60), Gateway.open(settings) as gateway:
        with pytest.raises(QueryTimeout, match=r"^Within 0\.01 seconds it was not known what the query reads"):
            await gateway.query("x", "SELECT 1 FROM things", timeout=0.01)


async def hang(self: Confiner, statement: Statement) -> None:
    await asyncio.Event().wait()


def masked(shop: Database, timeout: float) -> Configuration:
    own = Grant(database="shop", tables=("*",), masks={"*.name": "hash"})
    return Configuration(
        databases={"shop": replace(shop, timeout=timeout)},
        roles={"all": Role(name="all", principals=frozenset({"*"}), grants=(own,))},
    )


async def test_a_kept_result_s_statement_is_judged_again_within_the_timeout(
    shop: Database, monkeypatch: pytest.MonkeyPatch
):
    async with asyncio.timeout(60), Gateway.open(masked(shop, 5)) as gateway:
        await gateway.kept.keep("names", "shop", "SELECT name FROM customers", principal=LOCAL, tool="execute_query")
        monkeypatch.setattr(Confiner, "confine", hang)
        gateway.for_principal(LOCAL).database("shop").limits = Limits(10, 1000, 0.01)
        with pytest.raises(QueryTimeout, match=r"it was not known what the query reads"):
            await gateway.kept.find("names", LOCAL)


async def test_a_call_s_timeout_counts_while_its_statement_is_confined(shop: Database, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Confiner, "confine", hang)
    settings = masked(shop, 600)
    async with asyncio.timeout(60), Gateway.open(settings) as gateway:
        with pytest.raises(QueryTimeout, match=r"^Within 0\.01 seconds it was not known what the query reads"):
            await gateway.query("shop", "SELECT 1 FROM customers", timeout=0.01)


async def test_an_error_does_not_wait_for_a_catalog_that_hangs(install, monkeypatch: pytest.MonkeyPatch):
    from dragoman import TableNotFound
    from dragoman.gateway import failures

    monkeypatch.setattr(failures, "PATIENCE", 0.01)
    source = LEAKY.format(tables="await asyncio.Event().wait()").replace(
        "class Odd(PretendPlugin):",
        """
class Missing(PretendExecutor):
    @asynccontextmanager
    async def open(self, request):
        raise TableNotFound("no such table", identifier="thing")
        yield

class Odd(PretendPlugin):
    # No relation is looked up before the statement runs.
    dialect = __import__("dataclasses").replace(PretendPlugin.dialect, foreign_tables=False)

    @hookimpl
    def executor(self, database):
        return Missing(database)
""",
    )
    install("dragoman-odd", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(TableNotFound, match="no such table"):
            await gateway.query("x", "SELECT * FROM thing")
