"""The inspector of the standard's views reports no foreign key that is not there."""

from dragoman import Gateway, Scope
from dragoman.sqlalchemy import InformationSchemaInspector

NAMESAKES = """
CREATE TABLE city (id integer PRIMARY KEY);
CREATE TABLE firm (code integer PRIMARY KEY);
CREATE TABLE visit (city integer, CONSTRAINT fk FOREIGN KEY (city) REFERENCES city);
CREATE TABLE bill (firm integer, paid integer, CONSTRAINT fk FOREIGN KEY (firm) REFERENCES firm);
CREATE TABLE note (fk integer, CONSTRAINT own PRIMARY KEY (fk));
CREATE TABLE tag (note integer, CONSTRAINT own_note FOREIGN KEY (note) REFERENCES note);
CREATE SCHEMA aside;
CREATE TABLE aside.tag (city integer, CONSTRAINT own_note FOREIGN KEY (city) REFERENCES city);
CREATE TABLE aside.mark (firm integer, CONSTRAINT own FOREIGN KEY (firm) REFERENCES firm);
"""


async def test_constraints_of_one_name_are_not_mixed_up(server):
    """Postgres names constraints by table. The standard's views cannot tell two of one schema apart."""
    name = await server.create(NAMESAKES)
    async with Gateway.open([server.configure(name)]) as gateway:
        opened = gateway.database()
        told = await InformationSchemaInspector(opened.config, opened.executor).tables(Scope())
    await server.drop(name)
    keys = {str(t.relation): [(k.columns, str(k.references)) for k in t.foreign_keys] for t in told.tables}
    assert {name: found for name, found in keys.items() if found} == {
        "public.tag": [(("note",), "public.note")],
        "aside.tag": [(("city",), "public.city")],
        "aside.mark": [(("firm",), "public.firm")],
    }
    primary = {str(table.relation): [each.columns for each in table.constraints] for table in told.tables}
    assert primary["public.note"] == [("fk",)]
