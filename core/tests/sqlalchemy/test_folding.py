"""The base inspector on an engine that stores names in upper case and has no schemas, as Firebird and Oracle's kind do.

SQLite under a SQLAlchemy dialect that tells names as those of such engines do: plain ones in lower case, and one whose
case must be kept as a `quoted_name`, which is a subclass of `str`.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from dragoman import ForeignKey, Relation, Scope
from dragoman.sqlalchemy import SQLAlchemyInspector
from sqlalchemy.dialects import registry
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite

pytestmark = pytest.mark.anyio
NAMES = ("name", "referred_table")
COLUMNS = ("constrained_columns", "referred_columns", "column_names")
STORED = """
    CREATE TABLE CUSTOMERS (ID INTEGER PRIMARY KEY, "Full Name" TEXT, "note" TEXT);
    CREATE TABLE "orders" (ID INTEGER PRIMARY KEY, CUSTOMER INTEGER REFERENCES CUSTOMERS (ID));
    CREATE INDEX BY_CUSTOMER ON "orders" (CUSTOMER);
"""


class UpperDialect(SQLiteDialect_pysqlite):
    """Finds relations by the name that it told, whatever SQLite itself would find."""

    requires_name_normalize = True
    supports_statement_cache = True

    def get_schema_names(self, *_: Any, **__: Any) -> list[str]:
        raise NotImplementedError

    def get_table_names(self, *arguments: Any, **options: Any) -> Any:
        return [self.normalize_name(name) for name in super().get_table_names(*arguments, **options)]

    def get_pk_constraint(self, connection: Any, table_name: str, *_: Any, **__: Any) -> Any:
        columns: Any = self.get_columns(connection, table_name)
        return {"name": None, "constrained_columns": [each["name"] for each in columns if each["primary_key"]]}

    def _told(self, told: Any) -> Any:
        if isinstance(told, list):
            return [self._told(each) for each in told]
        return {key: self._normal(key, value) for key, value in told.items()}

    def _normal(self, key: str, value: Any) -> Any:
        if key in COLUMNS:
            return [self.normalize_name(name) for name in value]
        return self.normalize_name(value) if key in NAMES and value else value


def _asking(method: str) -> Any:
    def ask(self: UpperDialect, connection: Any, table_name: str, schema: str | None = None, **options: Any) -> Any:
        stored, options["info_cache"] = self.denormalize_name(table_name), None
        original = getattr(SQLiteDialect_pysqlite, method)
        return self._told(original(self, connection, stored, schema, **options))

    return ask


for fact in ("columns", "foreign_keys", "indexes"):
    setattr(UpperDialect, f"get_{fact}", _asking(f"get_{fact}"))
registry.register("upper", __name__, "UpperDialect")


@pytest.fixture
async def tables(tmp_path: Path, lite: Any) -> dict[str, Any]:
    with sqlite3.connect(tmp_path / "stored.db") as connection:
        connection.executescript(STORED)
    connection.close()
    inspector = SQLAlchemyInspector(lite(f"upper:///{tmp_path}/stored.db"))
    try:
        assert await inspector.schemas() == []
        told = (await inspector.tables(Scope())).tables
        one = (await inspector.tables(Scope(names=frozenset({"orders"})))).tables
        assert [each.relation.name for each in one] == ["orders"]
        return {each.relation.name: each for each in told}
    finally:
        await inspector.aclose()


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif is_dataclass(value):
        for field in fields(value):
            yield from texts(getattr(value, field.name))
    elif isinstance(value, tuple):
        for each in value:
            yield from texts(each)


async def test_names_are_told_as_they_are_stored(tables: dict[str, Any]) -> None:
    assert set(tables) == {"CUSTOMERS", "orders"}
    assert [column.name for column in tables["CUSTOMERS"].columns] == ["ID", "Full Name", "note"]
    assert {each.columns for each in tables["CUSTOMERS"].constraints} == {("ID",)}
    assert [(index.name, index.parts) for index in tables["orders"].indexes] == [("BY_CUSTOMER", ("CUSTOMER",))]
    assert tables["orders"].foreign_keys == (
        ForeignKey(
            relation=Relation("orders"),
            columns=("CUSTOMER",),
            references=Relation("CUSTOMERS"),
            referenced_columns=("ID",),
        ),
    )


async def test_every_name_is_a_text_and_nothing_more(tables: dict[str, Any]) -> None:
    assert {type(text) for table in tables.values() for text in texts(table)} == {str}
