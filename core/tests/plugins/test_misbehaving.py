"""Plugins that misbehave at work: the error names plugin, distribution and method; the others keep answering."""

import asyncio
import logging
import threading
import time

import pytest
from dragoman import Database, DialectError, Gateway, Relation, Table
from dragoman.gateway import opened, watchdog

GOOD = """
from dataclasses import replace
PretendPlugin.dialect = replace(PretendPlugin.dialect, name="good")
plugin = PretendPlugin()
"""
ODD = """
import asyncio, concurrent.futures, os, time

class Died(BaseException):
    pass

class Name(str):
    pass

async def given(batches):
    for batch in batches:
        yield batch

class OddExecutor(PretendExecutor):
    @asynccontextmanager
    async def open(self, request):
        {opening}
        async with super().open(request) as stream:
            yield stream

    async def explain(self, request, options):
        {explaining}

    async def aclose(self):
        {closing}

class OddInspector(PretendInspector):
    async def tables(self, scope):
        {inspecting}

    async def schemas(self):
        {listing}
        return [Schema(name="main")]

    async def details(self, tables):
        {detailing}

class OddValidator(Validator):
    async def check(self, statement, call):
        {judging}

    async def state(self):
        {remembering}

class OddPlugin(PretendPlugin):
    dialect = Dialect(
        name="pretend", contract=CONTRACT, sqlglot="sqlite",
        capabilities=frozenset({{Capability.READ_ONLY_SESSION, Capability.EXPLAIN}}),
    )

    @hookimpl
    def executor(self, database):
        return OddExecutor(database)

    @hookimpl
    def inspector(self, database, executor):
        return OddInspector()

    @hookimpl
    def validators(self, database, executor, inspector):
        return [OddValidator()]

plugin = OddPlugin()
"""
PLACES = ("opening", "explaining", "closing", "inspecting", "listing", "detailing", "judging", "remembering")


@pytest.fixture
def gateway_of(install):
    """A gateway over a plugin that does the odd thing at one place, and a good one."""

    def made(**odd: str):
        source = ODD.format(**{place: odd.get(place, "pass") for place in PLACES})
        install("dragoman-odd", source, version="2.5", dialects={"pretend": "plugin"}, pretend=True)
        install("dragoman-good", GOOD, dialects={"good": "plugin"}, pretend=True)
        return Gateway.open([Database(name=name, dialect=name) for name in ("pretend", "good")])

    return made


async def answers(gateway: Gateway) -> bool:
    return (await gateway.query("good", "SELECT 1")).rows == [["good", "SELECT 1"]]


async def queried(gateway: Gateway):
    return await gateway.query("pretend", "SELECT 1")


async def inspected(gateway: Gateway):
    return await gateway.database("pretend").catalog.snapshot()


async def listed(gateway: Gateway):
    return await gateway.database("pretend").inspector.schemas()


async def detailed(gateway: Gateway):
    table = Table(relation=Relation("things", "main"))
    return await gateway.database("pretend").inspector.details([table])


async def explained(gateway: Gateway):
    return await gateway.explain("pretend", "SELECT 1")


IN_A_WORKER = "concurrent.futures.ProcessPoolExecutor(1).submit(os._exit, 3).result()"
FAULTS = {
    "leaks an exception": (
        "opening",
        "{}['hush']",
        queried,
        "Executor.open",
        "failed with KeyError in OddExecutor.open",
    ),
    "leaks one of judging": (
        "judging",
        "{}['hush']",
        queried,
        "OddValidator.check",
        "failed with KeyError in OddValid",
    ),
    "leaks one of remembering": (
        "remembering",
        "{}['hush']",
        queried,
        "OddValidator.state",
        "failed with KeyError in OddValidator.state",
    ),
    "tells details of nothing": (
        "detailing",
        "return []",
        detailed,
        "Inspector.details",
        "returned other relations",
    ),
    "leaks one of inspecting": ("inspecting", "1 / 0", inspected, "Inspector.tables", "failed with ZeroDivisionError"),
    "tells the wrong type": (
        "inspecting",
        "return []",
        inspected,
        "Inspector.tables",
        "returned list, not an Inspection",
    ),
    "tells nothing": ("inspecting", "return None", inspected, "Inspector.tables", "returned NoneType"),
    "tells relations as texts": (
        "inspecting",
        "return Inspection(('orders',))",
        inspected,
        "Inspector.tables",
        "gave an element of Inspection.tables as a str, not as Table",
    ),
    "tells columns as dicts": (
        "inspecting",
        "return Inspection((Table(relation=Relation('t', 'main'), columns=({'name': 'a'},)),))",
        inspected,
        "Inspector.tables",
        "gave an element of Table.columns as a dict, not as TableColumn",
    ),
    "tells names of a type of its own": (
        "inspecting",
        "return Inspection((Table(relation=Relation(Name('t'), 'main')),))",
        inspected,
        "Inspector.tables",
        "gave Relation.name as a Name, which is a subclass of str, and must give str",
    ),
    "tells an estimate that is no integer": (
        "inspecting",
        "return Inspection((Table(relation=Relation('t', 'main'), row_estimate=3.0),))",
        inspected,
        "Inspector.tables",
        "gave Table.row_estimate as a float, not as int",
    ),
    "tells schemas as texts": (
        "listing",
        "return ['main']",
        listed,
        "Inspector.schemas",
        "gave an element of what it told as a str, not as Schema",
    ),
    "tells schemas as one text": (
        "listing",
        "return 'main'",
        listed,
        "Inspector.schemas",
        "gave what it told as a str, not as a sequence of Schema",
    ),
    "yields rows as dicts": (
        "opening",
        "yield RowStream([Column('a', 'int')], given([[{'a': 1}]]))\n        return",
        queried,
        "Executor.open",
        "gave a row as a dict, not as a sequence of values in the order of the columns",
    ),
    "yields columns as dicts": (
        "opening",
        "yield RowStream([{'name': 'a'}], given([[(1,)]]))\n        return",
        queried,
        "Executor.open",
        "gave an element of RowStream.columns as a dict, not as Column",
    ),
    "yields batches all at once": (
        "opening",
        "yield RowStream([Column('a', 'int')], [[(1,)]])\n        return",
        queried,
        "Executor.open",
        "gave RowStream.batches as a list, not as an asynchronous iterator of batches",
    ),
    "yields no stream": (
        "opening",
        "yield [], []\n        return",
        queried,
        "Executor.open",
        "yielded a tuple, not a RowStream",
    ),
    "has no plan": ("explaining", "return 'SCAN'", explained, "Executor.explain", "returned str, not a Plan"),
    "leaves the program": (
        "opening",
        "raise SystemExit(3)",
        queried,
        "Executor.open",
        "failed with SystemExit in OddEx",
    ),
    "raises what nobody catches": (
        "opening",
        "raise Died",
        queried,
        "Executor.open",
        "failed with Died in OddExecutor",
    ),
    "leaves while it inspects": (
        "inspecting",
        "raise SystemExit",
        inspected,
        "Inspector.tables",
        "failed with SystemExit",
    ),
    "loses its worker": (
        "opening",
        f"await asyncio.to_thread(lambda: {IN_A_WORKER})",
        queried,
        "Executor.open",
        "Broken",
    ),
}


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_at_work_names_the_plugin_and_others_keep_answering(fault: str, gateway_of, caplog):
    place, body, ask, method, what = FAULTS[fault]
    async with gateway_of(**{place: body}) as gateway:
        for _ in range(2):
            with pytest.raises(DialectError) as raised:
                await ask(gateway)
            assert raised.value.message.startswith(f"{method} of 'pretend' of dragoman-odd 2.5 ")
            assert what in raised.value.message
            assert raised.value.suggestion.startswith("Upgrade dragoman-odd or report it to its authors")
            assert "hush" not in f"{raised.value} {raised.value.suggestion}"
            assert await answers(gateway)


async def test_the_fault_of_a_policy_is_told_as_the_policy_s(install):
    install("dragoman-good", GOOD, dialects={"good": "plugin"}, pretend=True)
    source = """
    from dragoman import *
    class Odd(WrappedExecutor):
        def open(self, request):
            raise KeyError(request.statement)
    class OddPolicy(PolicyPlugin):
        def wrap_executor(self, executor, database, dialect):
            return Odd(executor)
    policy = OddPolicy()
    """
    install("dragoman-odd-policy", source, policies={"odd": "policy"})
    async with Gateway.open([Database(name="good", dialect="good")]) as gateway:
        with pytest.raises(DialectError) as raised:
            await gateway.query("good", "SELECT 1")
    assert raised.value.message == "Executor.open of 'odd' of dragoman-odd-policy 1.0 failed with KeyError in Odd.open."
    assert "Upgrade dragoman-odd-policy" in raised.value.suggestion


@pytest.mark.parametrize("body", ["await asyncio.sleep(3600)", "raise KeyError('hush')", "raise SystemExit(3)"])
async def test_a_plugin_that_does_not_close_is_given_up_and_named(body: str, gateway_of, monkeypatch, caplog):
    monkeypatch.setattr(opened, "CLEANUP", 0.2)
    async with gateway_of(closing=body) as gateway:
        await queried(gateway)
        assert await answers(gateway)
        other = gateway.database("good").executor
    assert other.closed
    assert "closing the database pretend, served by 'pretend' of dragoman-odd 2.5, was abandoned" in caplog.text


# Blocking


async def test_a_plugin_that_blocks_the_event_loop_is_named_in_the_log(gateway_of, monkeypatch, caplog):
    monkeypatch.setattr(watchdog, "INTERVAL", 0.02)
    monkeypatch.setattr(watchdog, "LIMIT", 0.1)
    async with gateway_of(opening="time.sleep(1.0)") as gateway:
        await queried(gateway)
        assert await answers(gateway)
    # On a slow machine the first import of a parser may be reported too.
    told = [message for message in caplog.messages if "in OddExecutor.open;" in message]
    assert len(told) == 1
    assert "'pretend' of dragoman-odd 2.5 has blocked it for more than 0.1 seconds" in told[0]


async def test_slow_work_that_does_not_block_is_not_told(gateway_of, monkeypatch, caplog):
    monkeypatch.setattr(watchdog, "INTERVAL", 0.02)
    monkeypatch.setattr(watchdog, "LIMIT", 5.0)
    async with gateway_of(opening="await asyncio.sleep(0.3)") as gateway:
        await queried(gateway)
    assert not [record for record in caplog.records if record.name == watchdog.__name__]


async def test_nobody_watches_before_the_first_call_and_after_the_last_gateway(gateway_of):
    before = threading.enumerate()  # the watchdog of the test before may still be going

    def watching() -> list[str]:
        names = [thread.name for thread in threading.enumerate() if thread not in before]
        return [name for name in names if name == "dragoman-watchdog"]

    async with gateway_of() as gateway:
        assert watching() == []
        assert await answers(gateway)
        assert len(watching()) == 1
    deadline = time.monotonic() + 30
    while watching() and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    assert watching() == []


@pytest.fixture(autouse=True)
def levels(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
