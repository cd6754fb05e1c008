"""Foreign tables are refused by the core for every dialect that tells them, whatever policies hide."""

from dataclasses import replace
from typing import Any

import pytest
from dragoman import Database, Gateway, UnsafeSql

FOREIGN = """
FOUND = 'foreign table'

class FarInspector(PretendInspector):
    async def schemas(self):
        return [Schema(name="main"), Schema(name="aside")]

    async def tables(self, scope):
        view = lambda name, query: Table(relation=Relation(name, "main"), type="view", definition=query)
        return Inspection(
            (
                Table(relation=Relation("near", "main")),
                Table(relation=Relation("far", "main"), type=FOUND),
                view("over", "SELECT * FROM main.far"),
                view("above", "SELECT * FROM over, near"),
                Table(relation=Relation("hidden", "aside"), type=FOUND),
                view("across", "SELECT * FROM aside.hidden"),
                view("odd", "SELEKT"),
                view("broken", "SELECT FROM ("),
                Table(relation=Relation("untold", "main"), type="view"),
                view("fine", "SELECT * FROM near"),
            )
        )

class FarPlugin(PretendPlugin):
    @hookimpl
    def inspector(self, database, executor):
        return FarInspector()

plugin = FarPlugin()
"""
DISGUISING = """
import dataclasses
from dragoman import *

class Disguising(WrappedInspector):
    async def tables(self, scope):
        told = await self.inner.tables(scope)
        plain = tuple(dataclasses.replace(table, type="table", definition=None) for table in told.tables)
        return dataclasses.replace(told, tables=plain)

class Policy(PolicyPlugin):
    def wrap_inspector(self, inspector, database, dialect):
        return Disguising(inspector)

plugin = Policy()
"""
REACHING = [
    "SELECT * FROM far",
    "SELECT * FROM main.far AS x",
    "SELECT 1 FROM near WHERE EXISTS (SELECT 1 FROM far)",
    "WITH near AS (SELECT * FROM far) SELECT * FROM near",
    "SELECT * FROM over",
    "SELECT * FROM above",
    "SELECT * FROM across",
    "SELECT * FROM odd",
    "SELECT * FROM broken",
    "SELECT * FROM untold",
]
NEAR = ["SELECT * FROM near", "SELECT * FROM fine", "SELECT 1", "WITH far AS (SELECT 1) SELECT * FROM far"]


@pytest.fixture(params=[False, True], ids=["plain", "with a policy that tells them as tables"])
def far(install, request: pytest.FixtureRequest) -> Database:
    install("dragoman-far", FOREIGN, dialects={"pretend": "plugin"}, pretend=True)
    if request.param:
        install("dragoman-disguising", DISGUISING, policies={"disguising": "plugin"})
    return Database(name="x", dialect="pretend")


async def test_what_reaches_a_foreign_table_is_refused(far: Database):
    async with Gateway.open([far]) as gateway:
        for _ in range(2):
            for text in REACHING:
                with pytest.raises(UnsafeSql, match="foreign table"):
                    await gateway.query("x", text)
            for text in NEAR:
                await gateway.query("x", text)


async def test_a_view_over_a_foreign_table_outside_the_configured_schemas_is_refused(far: Database):
    async with Gateway.open([replace(far, schemas=("main",))]) as gateway:
        await gateway.query("x", "SELECT * FROM main.near")
        with pytest.raises(UnsafeSql, match="foreign table"):
            await gateway.query("x", "SELECT * FROM main.across")


@pytest.mark.parametrize(
    "opening", [{"allow_foreign_tables": True}, {"allow_relations": frozenset({"main.far", "Main.Over"})}]
)
async def test_configuration_opens_foreign_tables(far: Database, opening: dict[str, Any]):
    async with Gateway.open([replace(far, **opening)]) as gateway:
        for text in (REACHING[0], REACHING[4]):
            await gateway.query("x", text)
