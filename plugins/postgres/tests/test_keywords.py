"""Words of the grammar that an older server takes for names of functions: none of them calls what users made."""

from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence

import asyncpg
import pytest
from dragoman import DragomanError, Gateway
from dragoman_postgres.reserved import RESERVED
from dragoman_postgres.testing import Server

pytestmark = [pytest.mark.full, pytest.mark.timeout(600)]

MARK = "a function of a user ran"
TYPES = ("", "text", "text, text", "text, text, text", "jsonb, text", "VARIADIC text[]")
ARGUMENTS = ("", "'a'", "'a', 'b'", "'a', 'b', 'c'", "'{}'::jsonb, '$'")


def quote(word: str) -> str:
    return '"' + word.replace('"', '""') + '"'


def statements(words: Iterable[str]) -> Iterator[str]:
    """Each word as a call, with whatever stands in parentheses, and alone."""
    for word in words:
        yield f"SELECT {word}"
        yield from (f"SELECT {word}({given})" for given in ARGUMENTS)


@pytest.fixture(scope="module")
async def words(server: Server, database_name: str) -> Sequence[str]:
    """The keywords of this server and of the newest one. A user made functions with their names."""
    connection = await asyncpg.connect(server.address(database_name))
    try:
        told = await connection.fetch("SELECT word FROM pg_get_keywords()")
        found = sorted({row["word"] for row in told} | RESERVED)
        for word in found:
            for types in TYPES:
                await connection.execute(
                    f"CREATE FUNCTION {quote(word)}({types}) RETURNS text LANGUAGE sql AS $$ SELECT '{MARK}' $$"
                )
    finally:
        await connection.close()
    return found


@pytest.fixture(scope="module")
async def gateway(server: Server, database_name: str, words: Sequence[str]) -> AsyncGenerator[Gateway]:
    async with Gateway.open([server.configure(database_name)]) as opened:
        yield opened


async def test_no_word_of_the_grammar_calls_what_users_made(gateway: Gateway, words: Sequence[str]):
    ran: list[str] = []
    for statement in statements(words):
        try:
            answer = await gateway.query(None, statement)
        except DragomanError:
            continue
        if MARK in repr(answer.rows):
            ran.append(statement)
    assert not ran
