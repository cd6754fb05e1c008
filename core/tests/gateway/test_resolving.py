"""What `Call.resolve` tells of views: all that they read, or that it is not known."""

import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest
from dragoman import Call, Database, Gateway, InvalidSql, Output, Principal, Relation, Resolution, Statement, Validator
from dragoman.gateway.judge import Judge
from dragoman.gateway.offload import SHORT, Offload
from dragoman.gateway.tracing import MOST_COLUMNS

VIEWS = """
CREATE TABLE customer (id INTEGER PRIMARY KEY, email TEXT, host TEXT AS (substr(email, 5)));
CREATE VIEW plain AS SELECT id FROM customer;
CREATE VIEW computed AS SELECT host FROM customer;
CREATE VIEW shadowed AS SELECT 'customer'.email FROM customer, plain AS email;
CREATE VIEW of_the_engine AS SELECT sql FROM sqlite_schema;
CREATE VIEW twice AS SELECT * FROM of_the_engine;
CREATE VIEW lost AS SELECT * FROM gone;
"""
Resolve = Callable[[str], Awaitable[Resolution]]


class Noting(Validator):
    """Keeps what it sees last."""

    seen = Resolution(())

    async def check(self, statement: Statement, call: Call) -> None:
        self.seen = await call.resolve()


@pytest.fixture
async def resolve(tmp_path: Path) -> AsyncIterator[Resolve]:
    connection = sqlite3.connect(tmp_path / "views.db")
    connection.executescript(VIEWS)
    connection.close()
    database = Database(name="views", dialect="sqlite", database="views.db", folder=tmp_path)
    async with Gateway.open([database]) as gateway:
        opened = gateway.database()
        noting = Noting()
        offload = Offload(seconds=60)  # a busy machine is no slow statement
        judge = Judge(opened.dialect, opened.config, opened.catalog, [noting], opened.source, offload)

        async def resolved(sql: str) -> Resolution:
            await judge.judge(sql, "test", Principal("ada"))
            return noting.seen

        yield resolved
        await offload.aclose()


@pytest.mark.parametrize(
    ("view", "columns"),
    [
        ("plain", {"id"}),
        ("computed", {"host", "email"}),
        ("shadowed", {"id", "email", "host"}),
    ],
)
async def test_a_view_reads_what_its_definition_touches(view: str, columns: set[str], resolve: Resolve):
    found = (await resolve(f"SELECT 1 FROM {view}")).views[Relation(view, "main")]
    assert found is not None
    assert {column for relation, column in found if relation.name == "customer"} == columns


@pytest.mark.parametrize("view", ["of_the_engine", "twice", "lost"])
async def test_what_a_view_reads_beyond_the_catalog_is_not_known(view: str, resolve: Resolve):
    assert (await resolve(f"SELECT 1 FROM {view}")).views[Relation(view, "main")] is None


@pytest.mark.parametrize("view", ["plain", "computed", "customer"])
async def test_a_long_statement_touches_what_a_short_one_does(view: str, resolve: Resolve):
    short = await resolve(f"SELECT email FROM customer, {view} AS v")
    assert await resolve(f"SELECT email{' ' * SHORT}FROM customer, {view} AS v") == short
    assert Relation("customer", "main") in short.relations


async def test_each_output_tells_what_it_is_made_of(resolve: Resolve):
    found = await resolve(
        "EXPLAIN QUERY PLAN SELECT c.host AS h, p.id FROM customer AS c, plain AS p WHERE c.id = p.id"
    )
    customer, plain = Relation("customer", "main"), Relation("plain", "main")
    assert found.outputs == (
        Output("h", ((customer, "host"), (customer, "email"))),
        Output("id", ((plain, "id"),)),
    )
    assert (await resolve("SELECT * FROM customer NATURAL JOIN plain")).outputs is None


async def test_a_statement_that_touches_too_many_columns_is_refused(resolve: Resolve):
    names = ",".join(f"x{number:x}" for number in range(MOST_COLUMNS + 1))
    with pytest.raises(InvalidSql, match="touches more than"):
        await resolve(f"SELECT {names} FROM nowhere")


async def test_a_generated_column_is_what_it_is_made_of(resolve: Resolve):
    assert {column for _, column in (await resolve("SELECT host FROM customer")).columns} == {"host", "email"}
    assert {column for _, column in (await resolve("SELECT id FROM customer")).columns} == {"id"}
