"""An answer of no rows says why: of the seeded causes nearly all are named, quickly and within the bounds."""

import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from causes import SEEDS, SHOP, rows
from dragoman import Database, Gateway, KnowledgeSettings
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role

FEWEST = 0.9


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def sqlite_shop(tmp_path_factory: pytest.TempPathFactory) -> Database:
    folder: Path = tmp_path_factory.mktemp("shop")
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.executescript(SHOP)
        for statement in rows():
            connection.execute(statement)
    connection.close()
    return Database(name="shop", dialect="sqlite", database="shop.db", folder=folder)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
async def gateway(request, sqlite_shop, anyio_backend) -> AsyncIterator[Gateway]:
    if request.param == "sqlite":
        async with Gateway.open([sqlite_shop]) as gateway:
            yield gateway
        return
    server = request.getfixturevalue("postgres")
    name = await server.create(";".join([SHOP.strip().rstrip(";"), *rows(), "ANALYZE"]))
    async with Gateway.open([server.configure(name)]) as gateway:
        yield gateway
    await server.drop(name)


async def test_the_causes_of_empty_answers_are_named(gateway: Gateway):
    missed: list[str] = []
    for seed in SEEDS:
        result = await gateway.query(None, seed.sql)
        assert result.rows in ([], [[0]], [[None]]), seed.sql
        told = " ".join(result.notices).lower()
        assert len(told.encode()) <= 400
        if not all(name in told for name in seed.names):
            missed.append(f"{seed.kind}: {seed.sql} -> {told!r}")
    assert len(missed) <= (1 - FEWEST) * len(SEEDS), "\n".join(missed)


@pytest.mark.parametrize("part", [{}, {"deny_columns": ("*.fax",)}], ids=["all", "a column less"])
async def test_callers_with_roles_are_told_the_causes_in_the_words_of_their_query(gateway: Gateway, part):
    """Dotted names and values are not taken for names that they may not know."""
    config = gateway.database().config
    grant = Grant(database=config.name, tables=("*",), key="roles.all.grants.0", **part)
    roles = {"all": Role(name="all", principals=frozenset({"*"}), grants=(grant,))}
    told: list[str] = []
    async with Gateway.open(Configuration(databases={config.name: config}, roles=roles)) as restricted:
        for seed in SEEDS:
            if "fax" not in seed.sql.lower() and "*" not in seed.sql:
                told += (await restricted.query(None, seed.sql)).notices
        told += (
            await restricted.query(None, "SELECT c.id FROM client AS c WHERE c.legacy_code = 'a@b.example'")
        ).notices
    assert len(told) > len(SEEDS) / 2
    assert "c.legacy_code = 'a@b.example'" in told[-1]
    assert not [each for each in told if "(hidden)" in each]


async def test_an_answer_with_rows_says_nothing_of_it(gateway: Gateway):
    for sql in ("SELECT id FROM purchase WHERE status = 'paid'", "SELECT fax FROM client WHERE id = 1"):
        assert (await gateway.query(None, sql)).notices == ()


async def test_parameters_are_bound_again_in_the_order_of_the_new_statement(gateway: Gateway):
    marks = ("$2", "$1") if gateway.database().dialect.placeholder == "$1" else ("?", "?")
    sql = f"SELECT id FROM purchase WHERE amount < {marks[0]} AND status = {marks[1]}"
    values = ["PAID", 30] if marks[0] == "$2" else [30, "PAID"]
    (told,) = (await gateway.query(None, sql, values)).notices
    assert told.startswith("status = 'PAID': no such value; there are paid, ")


async def test_values_that_may_lead_to_somebody_are_not_near_values(gateway: Gateway):
    (told,) = (await gateway.query(None, "SELECT id FROM client WHERE joined = '1999-01-01'")).notices
    assert "2024" not in told
    database = replace(gateway.database().config, knowledge=KnowledgeSettings(hide_values=("status",)), name="hiding")
    async with Gateway.open([database]) as hiding:
        (told,) = (await hiding.query(None, "SELECT id FROM purchase WHERE status = 'PAID'")).notices
    assert told == "status = 'PAID': no row meets it."


async def test_what_a_description_has_learned_is_told(gateway: Gateway):
    opened = gateway.database()
    await opened.knowledge.of([await opened.catalog.find("purchase")])
    (told,) = (await gateway.query(None, "SELECT id FROM purchase WHERE status = 'OPEN'")).notices
    assert told.startswith("status = 'OPEN': no such value; there are open, ")
