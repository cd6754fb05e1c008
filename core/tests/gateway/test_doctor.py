"""What a database's role could do is asked once it has answered, told once, and never in a query's way."""

import asyncio
import logging
from collections.abc import Callable

import pytest
from dragoman import ConnectionFailed, Database, DialectError, Gateway
from dragoman.gateway import doctor

PRETEND = """
from dataclasses import replace

asked = []

class Examined(PretendExecutor):
    async def doctor(self):
        asked.append(self.database.name)
        {doctor}

class Odd(PretendPlugin):
    dialect = replace(PretendPlugin.dialect, capabilities=frozenset({capabilities}))

    @hookimpl
    def executor(self, database):
        return Examined(database)

plugin = Odd()
"""
FINDINGS = """return [
            Finding(severity="note", subject="n", message="A note.", remedy="None."),
            Finding(severity="danger", subject="superuser", message="It may do all.", remedy="Another role."),
        ]"""
ENFORCED = "{Capability.READ_ONLY_SESSION}"

Pretend = Callable[..., list[str]]


@pytest.fixture
def pretend(install) -> Pretend:
    """Install a dialect whose doctor runs the given code; returns whom it was asked about."""

    def make(code: str, capabilities: str = ENFORCED) -> list[str]:
        install("dragoman-odd", PRETEND.format(doctor=code, capabilities=capabilities), dialects=DIALECT, pretend=True)
        import dragoman_odd  # type: ignore[import-not-found]

        return dragoman_odd.asked  # type: ignore[no-any-return]

    return make


DIALECT = {"pretend": "plugin"}


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "DELAY", 0.0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.name == "dragoman.gateway.doctor" and r.levelname == "WARNING"]


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(20):
        while not condition():
            await asyncio.sleep(0.005)


async def test_findings_come_worst_first_with_the_core_s_own(pretend: Pretend):
    pretend(FINDINGS)
    database = Database(
        name="x",
        dialect="pretend",
        allow_functions=frozenset({"b", "a"}),
        allow_relations=frozenset({"pg_locks"}),
        allow_foreign_tables=True,
    )
    async with Gateway.open([database]) as gateway:
        findings = await gateway.database().doctor()
    assert [(each.severity, each.subject) for each in findings] == [
        ("danger", "superuser"),
        ("warning", "allow_foreign_tables"),
        ("note", "n"),
        ("note", "allow_functions"),
        ("note", "allow_relations"),
    ]
    assert "a, b" in findings[3].message
    assert "databases.x.allow_functions" in findings[3].remedy


async def test_an_engine_that_refuses_no_writes_is_a_danger(pretend: Pretend):
    pretend("return ()", capabilities="()")
    async with Gateway.open([Database(name="x", dialect="pretend", accept_unenforced=True)]) as gateway:
        (finding,) = await gateway.database().doctor()
    assert (finding.severity, finding.subject) == ("danger", "no_read_only_session")


async def test_a_dialect_without_checks_says_so(pretend: Pretend):
    pretend("return await super().doctor()")
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        (finding,) = await gateway.database().doctor()
    assert (finding.severity, finding.subject) == ("note", "no_checks")


async def test_a_plugin_s_own_errors_do_not_get_out(pretend: Pretend):
    pretend("raise KeyError('driver')")
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        with pytest.raises(DialectError, match="KeyError"):
            await gateway.database().doctor()


@pytest.mark.usefixtures("at_once")
async def test_dangers_are_logged_once_whatever_is_asked(pretend: Pretend, caplog: pytest.LogCaptureFixture):
    asked = pretend(FINDINGS)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        assert asked == []
        for _ in range(3):
            await gateway.query("x", "SELECT 1")
        await until(lambda: warnings(caplog))
        assert (await gateway.database().status(5)).state == "ready"
        await gateway.query("x", "SELECT 1")
    (warning,) = warnings(caplog)
    assert asked == ["x"]
    assert "It may do all." in warning
    assert "A note." not in warning
    assert "`dragoman doctor x`" in warning


@pytest.mark.usefixtures("at_once")
async def test_nothing_is_logged_without_danger(pretend: Pretend, caplog: pytest.LogCaptureFixture):
    asked = pretend("return await super().doctor()")
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        await gateway.query("x", "SELECT 1")
        await until(lambda: asked)
    assert warnings(caplog) == []


@pytest.mark.usefixtures("at_once")
async def test_the_first_query_does_not_wait_for_the_doctor_nor_does_the_end(pretend: Pretend):
    asked = pretend("import asyncio; await asyncio.Event().wait()")
    before = asyncio.all_tasks()
    async with asyncio.timeout(20):
        async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
            for _ in range(2):
                assert (await gateway.query("x", "SELECT 1")).row_count == 1
                await until(lambda: asked)
    assert asyncio.all_tasks() == before


@pytest.mark.usefixtures("at_once")
async def test_a_database_that_could_not_be_examined_is_examined_when_it_comes_up_again(
    pretend: Pretend, caplog: pytest.LogCaptureFixture
):
    asked = pretend(f"""if len(asked) == 1:
            raise ConnectionFailed("gone")
        {FINDINGS}""")
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        await gateway.query("x", "SELECT 1")
        await until(lambda: asked)
        assert warnings(caplog) == []
        gateway.database().health.saw(ConnectionFailed("gone"))
        await gateway.query("x", "SELECT 1")
        await until(lambda: warnings(caplog))
    assert asked == ["x", "x"]


async def test_a_dialect_that_leaks_in_the_background_spoils_nothing(
    pretend: Pretend, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(doctor, "DELAY", 0.0)
    caplog.set_level(logging.INFO)
    asked = pretend("raise KeyError('driver')")
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        await gateway.query("x", "SELECT 1")
        await until(lambda: asked and "could not be examined" in caplog.text)
        assert (await gateway.query("x", "SELECT 1")).row_count == 1
