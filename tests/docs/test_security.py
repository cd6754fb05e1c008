"""The roles that the security page recommends may read, may do nothing else, and satisfy the doctor."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import asyncpg
import pytest
from dragoman import Database, Finding, Gateway, Secret
from dragoman_postgres.testing import Server
from dragoman_postgres.testing.fixtures import database_name, server

__all__ = ["database_name", "server"]

DOCS = Path(__file__).parents[2] / "docs"
ROLE, FOR_ALL = re.findall(r"```sql\n(.*?)```", (DOCS / "security.md").read_text(encoding="utf-8"), re.DOTALL)
SHOP = "CREATE TABLE orders (id integer PRIMARY KEY, note text); INSERT INTO orders VALUES (1, 'x')"
WRITES = (
    "INSERT INTO orders VALUES (2, 'y')",
    "UPDATE orders SET note = 'z'",
    "DELETE FROM orders",
    "TRUNCATE orders",
    "DROP TABLE orders",
    "CREATE TABLE more (id integer)",
    "SELECT lo_create(4711)",
    "SELECT pg_advisory_lock(1)",
    "CREATE TEMP TABLE more (id integer)",
    "SELECT pg_read_file('PG_VERSION')",
    "COPY orders TO PROGRAM 'true'",
)


@pytest.fixture(scope="module")
async def reader(server: Server, database_name: str) -> AsyncGenerator[Database]:
    await server.run(SHOP, database_name)
    await server.run(ROLE, database_name)
    yield server.configure(database_name, user="dragoman_reader", password=Secret("..."))
    await server.run("DROP OWNED BY dragoman_reader; DROP ROLE dragoman_reader", database_name)


@pytest.fixture(scope="module")
async def sealed(server: Server, reader: Database) -> Database:
    """The reader's database, with what every role may do taken away as well."""
    await server.run(FOR_ALL.replace("DATABASE shop", f'DATABASE "{reader.name}"'), reader.name)
    return reader


async def findings(database: Database, *severities: str) -> list[Finding]:
    async with Gateway.open([database]) as gateway:
        return [finding for finding in await gateway.database().doctor() if finding.severity in severities]


async def test_the_role_reads_and_the_doctor_finds_no_danger(reader: Database):
    assert await findings(reader, "danger") == []
    async with Gateway.open([reader]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[1]]


async def test_what_is_taken_from_all_leaves_no_warning(sealed: Database):
    assert await findings(sealed, "danger", "warning") == []


@pytest.mark.parametrize("write", WRITES)
async def test_the_role_may_do_nothing_else_even_in_a_transaction_that_writes(
    server: Server, sealed: Database, write: str
):
    connection = await asyncpg.connect(server.address(sealed.name, user="dragoman_reader", password="..."))
    try:
        await connection.execute("SET default_transaction_read_only = off")
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await connection.execute(write)
    finally:
        await connection.close()
