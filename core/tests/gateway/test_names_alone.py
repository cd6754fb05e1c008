"""A name without a schema means what the database looks up, not the only relation of that name that is visible."""

import pytest
from dragoman import Database, Gateway, NotFound

TWO_SCHEMAS = """
class TwoInspector(PretendInspector):
    async def schemas(self):
        return [Schema(name="main", search_order={order}), Schema(name="aside")]

    async def tables(self, scope):
        columns = (TableColumn(name="id", type="integer"),)
        both = [Relation("things", "main"), Relation("things", "aside"), Relation("only", "aside")]
        return Inspection(tuple(Table(relation=each, columns=columns) for each in both))

class TwoPlugin(PretendPlugin):
    dialect = dataclasses.replace(PretendPlugin.dialect, default_schema={default})

    @hookimpl
    def inspector(self, database, executor):
        return TwoInspector()

plugin = TwoPlugin()
"""


@pytest.mark.parametrize(("order", "default"), [(0, None), (None, "main"), (0, "main")])
async def test_it_means_nothing_where_its_schema_is_not_open(install, order: int | None, default: str | None):
    source = "import dataclasses\n" + TWO_SCHEMAS.format(order=order, default=repr(default))
    install("dragoman-two", source, dialects={"pretend": "plugin"}, pretend=True)
    async with Gateway.open([Database(name="x", dialect="pretend", schemas=("aside",))]) as gateway:
        await gateway.query("x", "SELECT id FROM aside.things")
        for text in ("things", '"things"', "only", "main.things"):
            with pytest.raises(NotFound):
                await gateway.query("x", f"SELECT id FROM {text}")
    async with Gateway.open([Database(name="x", dialect="pretend", schemas=("aside", "main"))]) as gateway:
        await gateway.query("x", "SELECT id FROM things")
