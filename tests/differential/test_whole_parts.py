"""A part that has all rows answers as its table does: a filter that holds for every row changes no answer."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from random import Random

import asyncpg
from dragoman import DragomanError, Gateway, Principal
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import Database
from dragoman_postgres.testing import Server
from naming import Engine, Schema, query
from seeded import runs, schemas

ROLES = {"whole": None, "part": "1 = 1"}
"""By role, the filter of every table."""
LEFT_OUT: dict[Engine, tuple[str, ...]] = {"postgres": ("tableoid", "public."), "sqlite": ("rowid",)}
"""What a part does not have: columns of the system, and a schema before columns where a name means several things."""
Answer = tuple[list[str], list[str]]


def script(tables: Schema) -> list[str]:
    """Statements for tables with a key and one row. All values are different, and no order decides anything."""
    made: list[str] = []
    for number, (name, columns) in enumerate(tables.items(), 1):
        listed = ", ".join(f"{column} integer" for column in columns)
        values = ", ".join(str(10 * number + place) for place, _ in enumerate(columns))
        made += [f"CREATE TABLE {name} ({listed}, PRIMARY KEY ({columns[0]}))", f"INSERT INTO {name} VALUES ({values})"]
    return made


def configuration(database: Database, home: str) -> Configuration:
    roles = {
        name: Role(
            name=name,
            principals=frozenset({name}),
            grants=(Grant(database="db", tables=(f"{home}.*",), key=f"roles.{name}.grants.0", filter=rows),),
        )
        for name, rows in ROLES.items()
    }
    return Configuration(databases={"db": database}, roles=roles)


async def ask(gateway: Gateway, role: str, text: str) -> Answer | DragomanError:
    try:
        found = await gateway.query("db", text, limit=1000, principal=Principal(role, subject=role))
    except DragomanError as error:
        return error
    return [column.name for column in found.columns], sorted(map(repr, found.rows))


class Account:
    """What the two callers were answered."""

    def __init__(self, left_out: tuple[str, ...]) -> None:
        self._left_out = left_out
        self.answered = self.left_out = 0
        self.others: list[str] = []

    def add(self, text: str, whole: Answer | DragomanError, part: Answer | DragomanError) -> None:
        self.answered += not isinstance(part, DragomanError)
        if whole == part or (isinstance(whole, DragomanError) and isinstance(part, DragomanError)):
            return
        if any(word in text.lower() for word in self._left_out):
            self.left_out += 1
        else:
            self.others.append(f"{text}\n    {whole!r}\n    {part!r}")

    def check(self, asked: int) -> None:
        assert not self.others, "\n".join(self.others)
        assert self.answered > asked / 4
        assert self.left_out < asked / 8


async def compare(account: Account, opened: Database, engine: Engine, home: str, tables: Schema, seeds: range) -> None:
    async with Gateway.open(configuration(opened, home)) as gateway:
        for seed in seeds:
            text = query(Random(seed), engine, tables, home)
            account.add(text, *[await ask(gateway, role, text) for role in ROLES])


@runs(300, 8_000)
async def test_a_filter_that_holds_for_every_row_changes_no_answer_of_postgres(seeds: range, server: Server):
    account, name = Account(LEFT_OUT["postgres"]), await server.create("")
    connection = await asyncpg.connect(server.address(name))
    for tables, numbers in schemas(seeds):
        await connection.execute(";".join(("DROP SCHEMA public CASCADE", "CREATE SCHEMA public", *script(tables))))
        await compare(account, server.configure(name, name="db"), "postgres", "public", tables, numbers)
    await connection.close()
    await server.drop(name)
    account.check(len(seeds))


@runs(300, 8_000)
async def test_a_filter_that_holds_for_every_row_changes_no_answer_of_sqlite(seeds: range, tmp_path: Path):
    account = Account(LEFT_OUT["sqlite"])
    for tables, numbers in schemas(seeds):
        file = tmp_path / f"{numbers.start}.db"
        with closing(sqlite3.connect(file)) as connection:
            connection.executescript(";".join(script(tables)))
        opened = Database(name="db", dialect="sqlite", database=file.name, folder=tmp_path)
        await compare(account, opened, "sqlite", "main", tables, numbers)
    account.check(len(seeds))
