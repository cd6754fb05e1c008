"""The gate beside the server: what one reads in a statement, the other reads too."""

import json
import random
from collections.abc import AsyncGenerator

import pytest
from dragoman import DragomanError, Relation, Statement
from dragoman.testing.corpus import cases, setup
from dragoman_trino.client import Client
from dragoman_trino.gate import read
from dragoman_trino.grammar.tokens import tokens
from dragoman_trino.lexicon import LEXICON
from dragoman_trino.testing import Server

QUERIES = [
    case.sql
    for case in cases("trino")
    if case.allow and not case.sql.startswith(("SHOW", "DESC", "EXPLAIN")) and "?" not in case.sql
]
MUTATIONS = 400


@pytest.fixture(scope="module")
async def schema(trino_server: Server) -> AsyncGenerator[str]:
    made = "\n".join(line for line in setup("trino").splitlines() if not line.startswith("--")).split(";")
    async with trino_server.schema() as name:
        await trino_server.run(*made, schema=name)
        yield name


@pytest.fixture(scope="module")
async def client(trino_server: Server, schema: str) -> AsyncGenerator[Client]:
    """Statements of ours, in the corpus' schema."""
    opened = Client(trino_server.configure(*schema.split(".")))
    yield opened
    await opened.aclose()


def parsed(text: str) -> Statement:
    return Statement.parse(text, sqlglot="trino", lexicon=LEXICON)


async def test_every_table_the_server_reads_is_one_the_gate_found(client: Client, schema: str):
    catalog, name = schema.split(".")
    missed: dict[str, set[Relation]] = {}
    seen = 0
    for sql in QUERIES:
        statement = parsed(sql)
        found = {Relation(each.name, each.schema or name, each.catalog or catalog) for each in read(statement).names}
        if Relation("big_orders", name, catalog) in found:
            found.add(Relation("orders", name, catalog))
        plan = json.loads((await client.rows(f"EXPLAIN (TYPE IO, FORMAT JSON) {statement.text}"))[0][0])
        places = [table["table"] for table in plan["inputTableColumnInfos"]]
        tables = {
            Relation(place["schemaTable"]["table"], place["schemaTable"]["schema"], place["catalog"])
            for place in places
        }
        seen += len(tables)
        if tables - found:
            missed[sql] = tables - found
    assert missed == {}
    assert seen > 100


def mutated(chance: random.Random) -> str:
    """One of the queries with a token gone, twice there, replaced, or with a piece of another query in between."""
    words = [token.text for token in tokens(chance.choice(QUERIES))]
    other = [token.text for token in tokens(chance.choice(QUERIES))]
    place, start = chance.randrange(len(words)), chance.randrange(len(other))
    piece = other[start : start + chance.randrange(1, 6)]
    gone = chance.choice([0, 0, 1])
    words[place : place + gone] = chance.choice([piece, piece[:1], words[place : place + 1], []])
    return " ".join(words)


async def test_what_the_gate_cannot_parse_the_server_cannot_parse_either(client: Client):
    chance = random.Random(476)
    refused = 0
    for _ in range(MUTATIONS):
        sql = mutated(chance)
        try:
            refusal = read(parsed(sql)).refusal
        except DragomanError:
            continue
        if refusal is None or refusal.kind != "invalid":
            continue
        refused += 1
        with pytest.raises(DragomanError) as error:
            await client.rows(f"EXPLAIN (TYPE VALIDATE) {sql}")
        assert error.value.context.get("error_name") == "SYNTAX_ERROR", sql
    assert refused > MUTATIONS / 4
