"""Two databases of a server that differ only in what a caller does not see answer it alike, whatever it asks."""

import json
from collections.abc import AsyncIterator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import date
from typing import Any, cast

import asyncpg
import pytest
from dragoman import Database, DragomanError, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.gateway.queries import Query
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server
from dragoman_postgres.wrapping import wrap
from interference import ANALYST, Flavour, Generator, Maker, differences
from prying import POSTGRES as PRYING
from prying import TRINO as PRYING_ON_TRINO

COLUMNS = {
    "customers": "id bigint, name varchar, email varchar, ssn varchar, age bigint, born varchar",
    "orders": "id bigint, tenant varchar, customer_id bigint, total bigint, note varchar, secret varchar",
    "salaries": "id bigint, amount bigint",
    "accounts": "id bigint, holder varchar, email varchar, born varchar, iban varchar, pin varchar, balance bigint",
}


def accounts(width: int) -> list[tuple[object, ...]]:
    """Rows that look alike whatever the width of what masks and roles hide, and in which little or much is the same."""
    return [
        (
            n,
            ("first", "{}", "7", "(x", None)[n % 5],
            f"{n % 3}" + f"{n}zyxmark"[: width and n % 9] * width,
            f"{1990 + n % 4}-01-0{1 + n % 9 * (width > 0)}",
            f"zyx{n}" * width or None,
            f"{n}zyxmark" * width or None,
            n % 7 - 2,
        )
        for n in range(30)
    ]


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
    "accounts": accounts(0),
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
    "accounts": accounts(250),
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
MASKED = replace(POSTGRES, tables=("accounts", "accounts", "customers"))
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
    tables=("orders", "orders", "customers", "accounts"),
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


def configured(database: Database, schema: str, *, every_row: str | None = None) -> Configuration:
    """Return the configuration of a twin with its role; `every_row`: the filter of the table whose rows all show."""
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
    masked = Grant(
        database="shop",
        tables=(f"{schema}.accounts",),
        filter=every_row,
        deny_columns=("pin",),
        masks={"email": "partial", "born": "substr(born, 1, 4)", "iban": "null"},
        key="grants.2",
    )
    role = Role(name="analyst", groups=frozenset({"analysts"}), grants=(orders, customers, masked))
    return Configuration(databases={"shop": database}, roles={"analyst": role})


@asynccontextmanager
async def opened(twins: Iterable[Configuration]) -> AsyncIterator[list[Toolbox]]:
    async with AsyncExitStack() as stack:
        yield [Toolbox(await stack.enter_async_context(Gateway.open(each))) for each in twins]


@pytest.fixture(scope="module")
async def databases(anyio_backend: str) -> AsyncIterator[list[Database]]:
    server = Server.start()
    try:
        yield [server.configure(await server.create(script_on_postgres(rows)), name="shop") for rows in (SEEN, HIDDEN)]
    finally:
        server.stop()


def script_on_postgres(rows: dict[str, list[tuple[object, ...]]]) -> str:
    made = script(rows, "public")
    # Long values stay in their table, so that its pages are as many as its bytes ask for.
    wide = [f"ALTER TABLE accounts ALTER {name} SET STORAGE PLAIN" for name in ("email", "iban", "pin")]
    place = next(place for place, each in enumerate(made) if each.startswith("INSERT INTO public.accounts"))
    keys = ["ALTER TABLE orders ADD PRIMARY KEY (id)", "CREATE INDEX ON orders (total)"]
    return "; ".join(
        [*made[:place], *wide, *made[place:], *keys, "ALTER TABLE accounts ADD PRIMARY KEY (id)", "ANALYZE"]
    )


@pytest.fixture(scope="module")
async def on_postgres(databases: list[Database]) -> AsyncIterator[list[Toolbox]]:
    async with opened(configured(each, "public", every_row="true") for each in databases) as boxes:
        yield boxes


@pytest.fixture(scope="module")
async def on_postgres_masked(databases: list[Database]) -> AsyncIterator[list[Toolbox]]:
    async with opened(configured(each, "public") for each in databases) as boxes:
        yield boxes


@pytest.fixture(scope="module")
async def on_trino(trino_server, anyio_backend: str) -> AsyncIterator[tuple[list[Toolbox], list[str]]]:
    async with AsyncExitStack() as stack:
        boxes, schemas = [], []
        for rows in (SEEN, HIDDEN):
            schema = await stack.enter_async_context(trino_server.schema())
            await trino_server.run(*script(rows, schema))
            database = trino_server.configure(*schema.split("."), name="shop", schemas=(schema,))
            boxes.append(Toolbox(await stack.enter_async_context(Gateway.open(configured(database, schema)))))
            schemas.append(schema)
        assert len({*map(len, schemas)}) == 1, "the excerpt of a statement in an error depends on its length"
        yield boxes, schemas


async def check_postgres(twins, seeds, maker: Maker = POSTGRES):
    answered, different = await differences(twins, maker, seeds)
    assert not different, different
    return answered


async def prepared(box, sql) -> Any:
    """What runs a query, and the request that it is sent as."""
    opened = box.gateway.for_principal(ANALYST).database("shop")
    return opened.executor, (await Query.prepare(opened, sql, principal=ANALYST)).request


async def plan(box, sql):
    """The plan of a query as it is sent, without what it reads in front of it: that is of the size of a twin."""
    executor, request = await prepared(box, sql)
    sent = wrap(request.statement, request.limits, lead=request.confinement.lead if request.confinement else 0)
    rows = await executor.run(f"EXPLAIN (FORMAT JSON) {sent.text}", request)
    top = json.loads(rows[0][0])[0]["Plan"]
    return {name: value for name, value in without_members(top).items() if name not in ("Startup Cost", "Total Cost")}


async def plans(twins, flavour, seeds):
    """How many queries were planned, and those of which the plans differ."""
    planned, different = 0, []
    for seed in seeds:
        sql = Generator(seed, flavour).query()
        try:
            one = await plan(twins[0], sql)
        except (DragomanError, asyncpg.PostgresError):
            continue
        planned += 1
        if one != await plan(twins[1], sql):
            different.append((seed, sql))
    return planned, different


def without_members(node):
    below = [each for each in node.get("Plans", ()) if not each.get("Subplan Name", "").startswith("CTE part_")]
    return {**node, "Plans": [without_members(each) for each in below]}


async def check_trino(twins, seeds, maker: Maker = TRINO):
    boxes, schemas = twins
    short = [schema.split(".")[1] for schema in schemas]

    def within(text: str, twin: int) -> str:
        written = text.replace("{schema}", schemas[twin])
        return written if written != text else text.replace(short[twin], "shop")

    answered, different = await differences(boxes, maker, seeds, within)
    assert not different, different
    return answered


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_what_is_hidden_changes_no_answer_of_postgres(on_postgres):
    assert await check_postgres(on_postgres, range(1_000, 2_000)) > 350


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_what_is_hidden_changes_no_answer_of_many_of_postgres(on_postgres):
    assert await check_postgres(on_postgres, range(3_000, 103_000)) > 40_000


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_what_is_hidden_changes_no_plan_of_postgres(on_postgres):
    # Which rows that are seen a failing condition comes to is the plan's to decide.
    planned, different = await plans(on_postgres, POSTGRES, range(350))
    assert planned > 250
    assert not different, different


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_what_is_hidden_changes_no_cost_of_postgres(on_postgres):
    # As `max_cost` counts it, but for what the server rounds off.
    estimated = 0
    for seed in range(40):
        try:
            asked = [await prepared(box, Generator(seed, POSTGRES).query()) for box in on_postgres]
            one, other = [await executor.estimate_cost(request) for executor, request in asked]
        except DragomanError:
            continue
        assert abs(one - other) <= 1, seed
        estimated += 1
    assert estimated > 30


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_masked_cells_of_any_width_change_nothing_on_postgres_beside_a_filter(on_postgres):
    answered, different = await differences(on_postgres, MASKED, range(500))
    assert not different, different
    assert answered > 300
    planned, different = await plans(on_postgres, MASKED, range(300))
    assert not different, different
    assert planned > 200


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_masked_cells_of_any_width_change_nothing_on_postgres_in_many_calls(on_postgres):
    answered, different = await differences(on_postgres, MASKED, range(1_000, 51_000))
    assert not different, different
    assert answered > 25_000


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_masked_cells_alone_change_plans_of_postgres_and_no_answer_but_failures(on_postgres_masked):
    """Without a filter plans follow the bytes of a table: that decides at most whether a condition fails."""
    answered, different = await differences(on_postgres_masked, MASKED, range(500))
    assert answered > 300
    for each in different:
        seed, _, _, *answers = cast(tuple[Any, ...], each)
        assert any(answer.get("error", {}).get("code") == "QUERY_ERROR" for answer in answers), (seed, answers)
    assert (await plans(on_postgres_masked, MASKED, range(100)))[1]


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_what_is_hidden_changes_no_answer_of_trino(on_trino):
    assert await check_trino(on_trino, range(40)) > 20


# A job of its own asks these at each change, the clock the others: each night another twentieth of as many as Postgres.
@pytest.mark.nightly
@pytest.mark.timeout(36_000)
@pytest.mark.parametrize("seeds", [range(1_000, 3_000), None], ids=["2000", "tonight"])
async def test_what_is_hidden_changes_no_answer_of_many_of_trino(on_trino, seeds):
    seeds = seeds or tonight()
    print(f"Seeds {seeds.start} to {seeds.stop - 1}")
    assert await check_trino(on_trino, seeds) > len(seeds) // 2


@pytest.mark.full
@pytest.mark.timeout(1_200)
async def test_no_syntax_of_postgres_pries_into_what_is_hidden(on_postgres):
    assert await check_postgres(on_postgres, range(500), PRYING) > 50


@pytest.mark.full
@pytest.mark.timeout(400)
async def test_no_syntax_of_trino_pries_into_what_is_hidden(on_trino):
    assert await check_trino(on_trino, range(60), PRYING_ON_TRINO) > 5


@pytest.mark.nightly
@pytest.mark.timeout(36_000)
async def test_no_syntax_of_many_pries_into_what_is_hidden_on_servers(on_postgres, on_trino):
    assert await check_postgres(on_postgres, range(2_000, 22_000), PRYING) > 2_000
    assert await check_trino(on_trino, range(1_000, 2_000), PRYING_ON_TRINO) > 100


def tonight(nights: int = 20, calls: int = 5_000) -> range:
    start = 3_000 + date.today().toordinal() % nights * calls
    return range(start, start + calls)
