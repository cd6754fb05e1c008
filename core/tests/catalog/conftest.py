"""Catalogs over plain facts: what an inspector would tell, written down."""

import asyncio
from collections.abc import Callable

import pytest
from dragoman import (
    CONTRACT,
    Database,
    DeclaredKey,
    Dialect,
    ForeignKey,
    Inspection,
    Inspector,
    Lexicon,
    Relation,
    Schema,
    Scope,
    Table,
    TableColumn,
)
from dragoman.catalog import Catalog, WholeCatalog

DIALECT = Dialect(
    name="facts",
    contract=CONTRACT,
    sqlglot="postgres",
    default_schema="public",
    reserved=frozenset({"order"}),
    lexicon=Lexicon(identifier_quotes='"`['),
)


class Facts(Inspector):
    """Tells what stands in `tables` and counts how often it is asked; `gate` holds answers back."""

    def __init__(self, *tables: Table, schemas: tuple[str, ...] = (), path: tuple[str, ...] = ()) -> None:
        self.all = list(tables)
        self.more = schemas
        self.path = path
        self.notices: tuple[str, ...] = ()
        self.scopes: list[Scope] = []
        self.gate = asyncio.Event()
        self.gate.set()

    async def version(self) -> str:
        return "1"

    async def schemas(self):
        names = dict.fromkeys((*(table.relation.schema for table in self.all), *self.more))
        places = {name: place for place, name in enumerate(self.path)}
        return [Schema(name=name, search_order=places.get(name)) for name in names if name]

    async def tables(self, scope: Scope) -> Inspection:
        self.scopes.append(scope)
        await self.gate.wait()
        return Inspection(tuple(table for table in self.all if table.relation in scope), self.notices)


def table(name: str, *columns: str, keys: tuple[ForeignKey, ...] = (), **facts) -> Table:
    """A table from "schema.name" and "column type"s; the schema is public unless it is said."""
    schema, _, plain = name.rpartition(".")
    relation = Relation(plain, schema or "public")
    made = tuple(TableColumn(name=c.split()[0], type=c.partition(" ")[2] or "integer", nullable=False) for c in columns)
    return Table(relation=relation, columns=made, foreign_keys=keys, **facts)


def key(source: str, columns: str, target: str, referenced: str = "id", name: str | None = None) -> ForeignKey:
    """A foreign key from words: `key("orders", "user_id", "users", "id")`; several columns apart by spaces."""
    return ForeignKey(
        relation=table(source).relation,
        columns=tuple(columns.split()),
        references=table(target).relation,
        referenced_columns=tuple(referenced.split()),
        name=name,
    )


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def build() -> Callable[..., Catalog]:
    """Make a catalog of facts."""

    def make(facts: Facts, *, keys: tuple[DeclaredKey, ...] = (), dialect: Dialect = DIALECT, clock=None, **settings):
        database = Database(name="shop", dialect="facts", keys=keys, **settings)
        return WholeCatalog(facts, dialect, database, **({} if clock is None else {"clock": clock}))

    return make


@pytest.fixture
def facts() -> type[Facts]:
    return Facts


@pytest.fixture
def make_table():
    return table


@pytest.fixture
def make_key():
    return key


@pytest.fixture
def dialect() -> Dialect:
    return DIALECT
