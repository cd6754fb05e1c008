"""Views that call functions which users made are refused, for dialects that say there may be such functions."""

from dataclasses import replace

import pytest
from dragoman import Database, Gateway, UnsafeSql
from dragoman.config import load

STORED = """
import dataclasses

VIEWS = dict(
    calls="SELECT leak() AS id",
    calls_qualified="SELECT main.leak(1) AS id FROM things",
    filters="SELECT id FROM things WHERE leak(id) > 0",
    nested="SELECT (SELECT max(leak(id)) FROM things) AS id",
    named="WITH c AS (SELECT leak() AS id) SELECT id FROM c",
    united="SELECT 1 AS id UNION SELECT leak()",
    above="SELECT id FROM calls",
    far_above="SELECT a.id FROM above AS a JOIN things ON things.id = a.id",
    elsewhere="SELECT id FROM aside.calls_aside",
    nowhere="SELECT id FROM missing",
    unread=None,
    broken="SELECT FROM (",
    writes="DELETE FROM things",
    lists="SELECT max(id) AS id FROM things",
    lists_above="SELECT id FROM lists",
)

class StoredInspector(PretendInspector):
    async def schemas(self):
        return [Schema(name="main"), Schema(name="aside")]

    async def tables(self, scope):
        things = (await super().tables(scope)).tables
        columns = things[0].columns
        view = lambda name, query, schema: Table(
            relation=Relation(name, schema), type="view", columns=columns, definition=query
        )
        views = [view(name, query, "main") for name, query in VIEWS.items()]
        return Inspection((*things, *views, view("calls_aside", "SELECT leak() AS id", "aside")))

class StoredPlugin(PretendPlugin):
    dialect = dataclasses.replace(
        PretendPlugin.dialect, stored_functions=True, rules=Rules(functions=frozenset({"max", "upper"}))
    )

    @hookimpl
    def inspector(self, database, executor):
        return StoredInspector()

plugin = StoredPlugin()
"""
CALLING = (
    "calls calls_qualified filters nested named united above far_above elsewhere nowhere unread broken writes".split()
)
ROLES = """
[databases.x]
dialect = "pretend"

[roles.reader]
principals = ["*"]
[[roles.reader.grants]]
database = "x"
tables = ["*.*"]
"""


@pytest.fixture
def stored(install) -> Database:
    install("dragoman-stored", STORED, dialects={"pretend": "plugin"}, pretend=True)
    return Database(name="x", dialect="pretend")


async def refused(gateway: Gateway, text: str) -> UnsafeSql:
    with pytest.raises(UnsafeSql) as caught:
        await gateway.query("x", text)
    return caught.value


@pytest.mark.parametrize("schemas", [(), ("main",)])
async def test_a_view_that_calls_a_function_that_is_not_listed_is_refused(stored: Database, schemas: tuple[str, ...]):
    async with Gateway.open([replace(stored, schemas=schemas)]) as gateway:
        for _ in range(2):
            for view in CALLING:
                error = await refused(gateway, f"SELECT upper(v.id) FROM main.{view} AS v")
                assert error.message.startswith(f"The view main.{view} calls a function"), error.message
                assert "leak" not in f"{error.message} {error.suggestion}"
            for view in ("things", "lists", "lists_above"):
                await gateway.query("x", f"SELECT upper(v.id) FROM main.{view} AS v")


async def test_it_is_refused_wherever_a_statement_reads_it(stored: Database):
    async with Gateway.open([stored]) as gateway:
        for text in (
            "SELECT 1 FROM things WHERE EXISTS (SELECT 1 FROM calls)",
            "WITH c AS (SELECT * FROM above) SELECT * FROM c",
            "SELECT * FROM things JOIN calls ON calls.id = things.id",
            "SELECT * FROM things UNION SELECT * FROM calls",
        ):
            await refused(gateway, text)
        await gateway.query("x", "WITH calls AS (SELECT 1 AS id) SELECT * FROM calls")


async def test_the_configuration_opens_a_view_or_its_function(stored: Database):
    async with Gateway.open([replace(stored, allow_relations=frozenset({"Main.Above"}))]) as gateway:
        await gateway.query("x", "SELECT id FROM above")
        await refused(gateway, "SELECT id FROM calls")
        await refused(gateway, "SELECT id FROM far_above")
    async with Gateway.open([replace(stored, allow_functions=frozenset({"leak"}))]) as gateway:
        await gateway.query("x", "SELECT id FROM far_above")
        await refused(gateway, "SELECT id FROM unread")


async def test_a_dialect_without_such_functions_reads_every_view(install):
    source = STORED.replace("stored_functions=True", "stored_functions=False")
    install("dragoman-stored", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        for view in CALLING:
            await gateway.query("x", f"SELECT id FROM {view}")


async def test_callers_with_roles_are_refused_it_too(stored: Database, tmp_path):
    roles = ROLES.replace('"*.*"', '"*.*", "main.calls", "main.above"')
    (tmp_path / "dragoman.toml").write_text(roles)
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        for view in ("calls", "above"):
            await refused(gateway, f"SELECT id FROM main.{view}")
        await gateway.query("x", "SELECT id FROM main.lists_above")


@pytest.mark.parametrize("where", [None, "id = 1"])
async def test_a_sample_does_not_read_it(stored: Database, where: str | None):
    async with Gateway.open([stored]) as gateway:
        with pytest.raises(UnsafeSql, match="calls a function"):
            await gateway.sample("x", "far_above", where=where)
        await gateway.sample("x", "lists_above", where=where)
