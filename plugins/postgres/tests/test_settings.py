"""Whatever a database sets for its sessions, the gateway's answers are the same."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import asyncpg
import pytest
from dragoman import Gateway
from dragoman.tools.toolbox import Toolbox
from dragoman_postgres.testing import Server

ODD = {
    "quote_all_identifiers": "on",
    "transform_null_equals": "on",
    "standard_conforming_strings": "off",
    "backslash_quote": "on",
    "datestyle": "'German, DMY'",
    "intervalstyle": "sql_standard",
    "timezone": "'Asia/Kolkata'",
    "extra_float_digits": "-15",
    "bytea_output": "escape",
    "xmlbinary": "hex",
    "xmloption": "document",
    "array_nulls": "off",
    "client_encoding": "latin1",
    "statement_timeout": "1",
    "lock_timeout": "1",
    "default_transaction_isolation": "serializable",
    "default_transaction_deferrable": "on",
    "row_security": "off",
    "client_min_messages": "debug5",
}
TABLES = """
CREATE TYPE mood AS ENUM ('calm');
CREATE TABLE log (
    id integer PRIMARY KEY, who uuid[], words text[] CHECK (words IS NOT NULL), span int4range DEFAULT 'empty',
    "at" timestamptz, pause interval, part real, raw bytea, felt mood[], "Odd" "char");
CREATE INDEX ON log (lower(words[1])) WHERE id > 0;
CREATE VIEW late AS SELECT id, who, "Odd" FROM log WHERE "at" > '2024-01-01';
INSERT INTO log VALUES (
    1, '{9b2d6c1e-4f0a-4a53-8a51-0e0f3a5b7c11}', '{é}', '[1,2)',
    '2024-02-01 10:00:00+00', '1 mon 2 days', 0.1, '\\x00ff', '{calm}', 'x');
"""
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("execute_query", {"sql": "SELECT * FROM log"}),
    ("execute_query", {"sql": "SELECT id = NULL, 'a\\b', '02/01/2024'::date, ROW(1, span) FROM log"}),
    ("execute_query", {"sql": "SELECT '{NULL}'::text[]"}),
    ("execute_query", {"sql": "SELECT 'a'::xml, xmlelement(name a, raw) FROM log"}),
    ("execute_query", {"sql": "SELECT nosuch FROM log"}),
    ("describe_table", {"table_name": ["log", "late"], "include_indexes": True, "include_constraints": True}),
    ("describe_table", {"table_name": ["log", "late"], "detail": "full"}),
    ("read_schema", {}),
    ("explain_query", {"sql": "SELECT * FROM log WHERE id = 1"}),
]


@pytest.fixture(scope="module")
async def names(server: Server, anyio_backend: str) -> AsyncGenerator[tuple[str, str]]:
    """A database with settings of its own, and one without."""
    odd, plain = await server.create(TABLES), await server.create(TABLES)
    # A connection that was open before: later ones may be too short-lived to set anything.
    admin = await asyncpg.connect(server.address(odd))
    for name, value in ODD.items():
        await admin.execute(f'ALTER DATABASE "{odd}" SET {name} = {value}')
    await admin.close()
    yield odd, plain
    await server.drop(odd)
    await server.drop(plain)


async def _answers(server: Server, name: str) -> Mapping[int, str]:
    async with Gateway.open([server.configure(name, name="shop")]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        return {place: (await toolbox.call(tool, given)).text for place, (tool, given) in enumerate(CALLS)}


async def test_no_setting_of_a_database_changes_an_answer(server: Server, names: tuple[str, str]):
    odd, plain = [await _answers(server, name) for name in names]
    assert odd == plain


@pytest.mark.nightly
@pytest.mark.timeout(900)
async def test_no_switch_or_choice_that_the_server_has_changes_an_answer(server: Server, anyio_backend: str, subtests):
    name = await server.create(TABLES)
    admin = await asyncpg.connect(server.address(name))
    await _analyze(admin)
    plain = await _answers(server, name)
    explained = {place for place, (tool, _) in enumerate(CALLS) if tool == "explain_query"}
    for setting, value in await _choices(admin):
        await admin.execute(f"ALTER DATABASE \"{name}\" SET {setting} = '{value}'")
        answers = await _answers(server, name)
        await admin.execute(f'ALTER DATABASE "{name}" RESET {setting}')
        with subtests.test(setting=setting, value=value):
            assert {place for place in plain if plain[place] != answers[place]} <= explained
    await admin.close()
    await server.drop(name)


async def _analyze(admin: asyncpg.Connection) -> None:
    """Make statistics of the table, and wait for their date, which PostgreSQL before 15 learns a little later."""
    await admin.execute("ANALYZE log")
    while await admin.fetchval("SELECT last_analyze IS NULL FROM pg_stat_user_tables WHERE relname = 'log'"):
        pass


async def _choices(admin: asyncpg.Connection) -> list[tuple[str, str]]:
    """Return every value that a database may give its sessions for a switch or a choice, but for the present ones."""
    rows = await admin.fetch(
        "SELECT name, unnest(coalesce(enumvals, '{on,off}')) AS value, setting FROM pg_settings"
        " WHERE vartype IN ('bool', 'enum') AND context IN ('user', 'superuser')"
        # One ends the session at each error. The others are of one transaction.
        " AND name NOT IN ('exit_on_error', 'transaction_deferrable', 'transaction_isolation', 'transaction_read_only')"
    )
    return [(row["name"], row["value"]) for row in rows if row["value"] != row["setting"]]


async def test_no_deadline_of_transactions_ends_a_query_or_its_connection(server: Server, anyio_backend: str):
    name = await server.create()
    admin = await asyncpg.connect(server.address(name))
    has = admin.get_server_version() >= (17,)
    if has:
        await admin.execute(f"ALTER DATABASE \"{name}\" SET transaction_timeout = '500ms'")
    await admin.close()
    if not has:
        pytest.skip("PostgreSQL 17 and later have such a deadline")
    async with Gateway.open([server.configure(name, allow_functions=frozenset({"pg_sleep"}))]) as gateway:
        for _ in range(2):
            assert (await gateway.query(None, "SELECT 1 FROM pg_sleep(0.8)")).rows == [[1]]
    await server.drop(name)
