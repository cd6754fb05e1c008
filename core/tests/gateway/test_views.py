"""What views read is found once for each view, however many others read it."""

import asyncio
import importlib
from pathlib import Path

import pytest
from dragoman import Database, Gateway, NotFound
from dragoman.config import load
from dragoman.model import LOCAL

LAYERS = 40
DIAMONDS = f"""
COLUMNS = (TableColumn(name="id", type="integer"),)
GONE = False
READINGS = []

def diamond(layer):
    below = f"left_{{layer - 1}} JOIN right_{{layer - 1}} USING (id)" if layer else "base"
    for side in ("left", "right"):
        below = f"gone_{{side}}_{{layer}}" if GONE else below
        name = Relation(f"{{side}}_{{layer}}", "main")
        yield Table(relation=name, type="view", columns=COLUMNS, definition=f"SELECT id FROM {{below}}")

class DiamondInspector(PretendInspector):
    async def tables(self, scope):
        READINGS.append(scope)
        table = lambda name, kind: Table(relation=Relation(name, "main"), type=kind, columns=COLUMNS)
        tables = [table("base", "table"), table("kept", "table"), table("far", "foreign table")]
        return Inspection((*tables, *(view for layer in range({LAYERS}) for view in diamond(layer))))

class DiamondPlugin(PretendPlugin):
    @hookimpl
    def inspector(self, database, executor):
        return DiamondInspector()

plugin = DiamondPlugin()
"""
RESOLVING = """
from dragoman import *

class Resolving(Validator):
    async def check(self, statement, call):
        found = await call.resolve()
        assert None not in found.views.values()

class Policy(PolicyPlugin):
    def validators(self, database, executor, inspector):
        return [Resolving()]

plugin = Policy()
"""
ROLES = """
[databases.x]
dialect = "pretend"

[roles.reader]
principals = ["*"]
[[roles.reader.grants]]
database = "x"
tables = ["main.base", "main.left_*", "main.right_*"]
"""
TOP = f"SELECT id FROM left_{LAYERS - 1}"


@pytest.fixture(autouse=True)
def diamonds(install) -> None:
    install("dragoman-diamonds", DIAMONDS, dialects={"pretend": "plugin"}, pretend=True)


async def test_a_role_reads_a_view_over_forty_layers_of_two_views_each(tmp_path: Path):
    (tmp_path / "dragoman.toml").write_text(ROLES)
    configuration = load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)
    async with asyncio.timeout(60), Gateway.open(configuration) as gateway:
        await gateway.query("x", TOP)
        seen = await gateway.for_principal(LOCAL).database("x").catalog.snapshot()
        assert len(seen.tables) == 2 * LAYERS + 1


async def test_foreign_tables_and_columns_are_sought_below_such_a_view(install):
    install("dragoman-resolving", RESOLVING, policies={"resolving": "plugin"})
    async with asyncio.timeout(60), Gateway.open([Database(name="x", dialect="pretend")]) as gateway:
        await gateway.query("x", TOP)


async def test_views_of_relations_that_are_gone_do_not_have_the_catalog_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    (tmp_path / "dragoman.toml").write_text(ROLES)
    inspected = importlib.import_module("dragoman_diamonds")
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        await gateway.query("x", "SELECT id FROM base")
        once = len(inspected.READINGS)
        assert once > 0
    monkeypatch.setattr(inspected, "GONE", True)
    inspected.READINGS.clear()
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        await gateway.query("x", "SELECT id FROM base")
        with pytest.raises(NotFound):
            await gateway.query("x", TOP)
        assert len(inspected.READINGS) <= once + 2  # again for the name in the statement, which does not exist


async def test_all_unknown_names_of_a_statement_have_the_catalog_read_again_once(tmp_path: Path):
    (tmp_path / "dragoman.toml").write_text(ROLES)
    inspected = importlib.import_module("dragoman_diamonds")
    async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)) as gateway:
        await gateway.query("x", "SELECT id FROM base")
        once = len(inspected.READINGS)
        with pytest.raises(NotFound):
            await gateway.query("x", f"SELECT 1 FROM {', '.join(f'far_off.gone_{number}' for number in range(50))}")
        assert len(inspected.READINGS) <= once + 5  # for the roles, the statement and its error, but not for each name
