"""Two databases of a server that differ only in what a caller does not see answer it alike, whatever it asks."""

import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import asyncpg
import pytest
from dragoman import Database, DragomanError, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.gateway.queries import Query
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server
from dragoman_postgres.wrapping import wrap
from interference import ANALYST, Flavour, Generator, differences

COLUMNS = {
    "customers": "id bigint, name varchar, email varchar, ssn varchar, age bigint, born varchar",
    "orders": "id bigint, tenant varchar, customer_id bigint, total bigint, note varchar, secret varchar",
    "salaries": "id bigint, amount bigint",
}
SEEN = {
    "customers": [
        (1, "Ada", "a@1", None, 20, "1990-01-01"),
        (2, "Bob", "b@1", None, 30, "1991-01-01"),
        (3, "(em", None, None, 40, None),
    ],
    "orders": [
        (20, "a", 3, 5, "(x", None),
        (5, "a", 2, 20, "{}", None),
        (21, "a", 3, 8, "7", None),
        (1, "a", 1, 10, "first", None),
        (9, "a", 1, 30, None, None),
    ],
    "salaries": [],
}
HIDDEN = {
    "customers": [
        (1, "Ada", "azyxmark", "zyx1", 20, "1990-07-07"),
        (2, "Bob", "bzyxmark", "zyx2", 30, "1991-07-07"),
        (3, "(em", None, "zyx3", 40, None),
        (7, "Eve", "e@zyx", "1", 99, "x"),
        (8, "Fay", "f", "2", -7, "y"),
    ],
    "orders": [
        *((*row[:5], "zyxmark") for row in SEEN["orders"]),
        (2, "b", 1, -9223372036854775808, "zyxmark", "s"),
        (8, "b", 2, 8, "{bad", "s"),
        (3, "c", 3, 100, "(", "s"),
        (100, "b", 9, 0, "", "s"),
        *((200 + n, "b", n, n, f"note {n}", "s") for n in range(3_000)),
    ],
    "salaries": [(1, 5)],
}
POSTGRES = Flavour(
    schema="public",
    failing=(
        "1 / ({n} - {k}) > -5",
        "CAST({t} AS bigint) > {k}",
        "'x' ~ {t}",
        "{t}::json IS NULL",
        "{t}::date > '2000-01-01'",
        "substr({t}, 1, {n}::int) = 'x'",
        "sqrt({n}) > {k}",
        "abs({n}) > {k}",
    ),
    lateral=True,
    row="SELECT {t} FROM {t}",
)
TRINO = Flavour(
    schema="{schema}",
    failing=(
        "1 / ({n} - {k}) > -5",
        "CAST({t} AS bigint) > {k}",
        "regexp_like('x', {t})",
        "json_parse({t}) IS NULL",
        "CAST({t} AS date) > DATE '2000-01-01'",
        "{n} + 9223372036854775807 > {k}",
        "element_at(ARRAY[1], {n}) = 1",
        "abs({n}) > {k}",
    ),
    lateral=True,
    row="SELECT {t} FROM {t}",
)


def script(rows: dict[str, list[tuple[object, ...]]], schema: str) -> list[str]:
    """Return the statements that make a database."""
    made = []
    for table, columns in COLUMNS.items():
        made.append(f"CREATE TABLE {schema}.{table} ({columns})")
        values = ", ".join(f"({', '.join(map(literal, row))})" for row in rows[table])
        made += [f"INSERT INTO {schema}.{table} VALUES {values}"] if values else []
    return made


def literal(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def configured(database: Database, schema: str) -> Configuration:
    """Return the configuration of a twin with its role."""
    tenant = "tenant = $claim.tenant"
    orders = Grant(
        database="shop", tables=(f"{schema}.orders",), filter=tenant, deny_columns=("secret",), key="grants.0"
    )
    customers = Grant(
        database="shop",
        tables=(f"{schema}.customers",),
        filter=f"id IN (SELECT customer_id FROM {schema}.orders WHERE {tenant})",
        deny_columns=("ssn",),
        masks={"email": "partial", "born": "substr(born, 1, 4)"},
        key="grants.1",
    )
    role = Role(name="analyst", groups=frozenset({"analysts"}), grants=(orders, customers))
    return Configuration(databases={"shop": database}, roles={"analyst": role})


@pytest.fixture(scope="module")
async def on_postgres(anyio_backend: str) -> AsyncIterator[list[Toolbox]]:
    server = Server.start()
    async with AsyncExitStack() as stack:
        stack.callback(server.stop)
        boxes = []
        for rows in (SEEN, HIDDEN):
            keys = "ALTER TABLE orders ADD PRIMARY KEY (id); CREATE INDEX ON orders (total); ANALYZE;"
            name = await server.create("; ".join([*script(rows, "public"), keys]))
            gateway = await stack.enter_async_context(
                Gateway.open(configured(server.configure(name, name="shop"), "public"))
            )
            boxes.append(Toolbox(gateway))
        yield boxes


@pytest.fixture(scope="module")
async def on_trino(trino_server, anyio_backend: str) -> AsyncIterator[tuple[list[Toolbox], list[str]]]:
    async with AsyncExitStack() as stack:
        boxes, schemas = [], []
        for rows in (SEEN, HIDDEN):
            schema = await stack.enter_async_context(trino_server.schema())
            await trino_server.run(*script({table: each[:60] for table, each in rows.items()}, schema))
            database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
            boxes.append(Toolbox(await stack.enter_async_context(Gateway.open(configured(database, schema)))))
            schemas.append(schema)
        yield boxes, schemas


async def check_postgres(twins, seeds):
    answered, different = await differences(twins, POSTGRES, seeds)
    assert not different, different
    return answered


async def plan(box, sql):
    """The plan of a query as it is sent, without what it reads in front of it: that is of the size of a twin."""
    opened = box.gateway.for_principal(ANALYST).database("shop")
    request = (await Query.prepare(opened, sql, principal=ANALYST)).request
    sent = wrap(request.statement, request.limits, lead=request.confinement.lead if request.confinement else 0)
    rows = await opened.executor.run(f"EXPLAIN (FORMAT JSON) {sent.text}", request)
    top = json.loads(rows[0][0])[0]["Plan"]
    return {name: value for name, value in without_members(top).items() if name not in ("Startup Cost", "Total Cost")}


def without_members(node):
    below = [each for each in node.get("Plans", ()) if not each.get("Subplan Name", "").startswith("CTE part_")]
    return {**node, "Plans": [without_members(each) for each in below]}


async def check_trino(twins, seeds):
    boxes, schemas = twins
    short = [schema.split(".")[1] for schema in schemas]

    def within(text: str, twin: int) -> str:
        written = text.replace("{schema}", schemas[twin])
        return written if written != text else text.replace(short[twin], "shop")

    answered, different = await differences(boxes, TRINO, seeds, within)
    assert not different, different
    return answered


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_what_is_hidden_changes_no_answer_of_postgres(on_postgres):
    assert await check_postgres(on_postgres, range(1_000, 3_000)) > 700


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_what_is_hidden_changes_no_answer_of_many_of_postgres(on_postgres):
    assert await check_postgres(on_postgres, range(3_000, 103_000)) > 40_000


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_what_is_hidden_changes_no_plan_of_postgres(on_postgres):
    # Which rows that are seen a failing condition comes to is the plan's to decide.
    planned = 0
    for seed in range(700):
        sql = Generator(seed, POSTGRES).query()
        try:
            one = await plan(on_postgres[0], sql)
        except (DragomanError, asyncpg.PostgresError):
            continue
        assert one == await plan(on_postgres[1], sql), (seed, sql)
        planned += 1
    assert planned > 500


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_what_is_hidden_changes_no_answer_of_trino(on_trino):
    assert await check_trino(on_trino, range(40)) > 20


# A job of its own asks the first of them at each change, the clock all.
@pytest.mark.nightly
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("seeds", [range(1_000, 3_000), range(3_000, 8_000)], ids=["2000", "5000"])
async def test_what_is_hidden_changes_no_answer_of_many_of_trino(on_trino, seeds):
    assert await check_trino(on_trino, seeds) > len(seeds) // 2
