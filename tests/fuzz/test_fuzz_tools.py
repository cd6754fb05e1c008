"""Long, deep and odd arguments for every tool: each is answered in words of ours, and the event loop goes on meanwhile.

What would be a bug of ours (INTERNAL_ERROR) or of a plugin's (DIALECT_ERROR) fails. The loop's own thread is measured
in processor time, which a busy machine does not stretch.
"""

import contextlib
import gc
import itertools
import random
from collections.abc import Iterator
from typing import Any

import pytest
from dragoman import Call, Database, Gateway, Statement, Validator
from dragoman.gateway.judge import Judge
from dragoman.gateway.offload import Offload
from dragoman.tools import Toolbox
from dragoman_trino.testing.fixtures import trino_server
from pauses import failures, sqlite_file

pytestmark = pytest.mark.usefixtures("hints_of_each_gateway")

__all__ = ["trino_server"]

SCRIPT = """
CREATE TABLE users (id INTEGER PRIMARY KEY, email TEXT NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY, user_id INTEGER REFERENCES users (id), total NUMERIC(12, 2), note TEXT);
CREATE VIEW big AS SELECT * FROM orders WHERE total > 100;
INSERT INTO users VALUES (1, 'ada@example.com');
INSERT INTO orders VALUES (1, 1, 12.5, 'x');
"""
TRINO = [
    "CREATE TABLE users (id INTEGER NOT NULL, email VARCHAR NOT NULL)",
    "CREATE TABLE orders (id INTEGER NOT NULL, user_id INTEGER, total DECIMAL(12, 2), note VARCHAR)",
    "CREATE VIEW big AS SELECT * FROM orders WHERE total > 100",
    "INSERT INTO users VALUES (1, 'ada@example.com')",
    "INSERT INTO orders VALUES (1, 1, DECIMAL '12.5', 'x')",
]
MANY = "".join(f"CREATE TABLE table_with_a_long_name_{number:04} (id INTEGER);" for number in range(500))

TEXTS = [
    *(
        "",
        " ",
        "x" * 1000,
        "x" * 1001,
        "é" * 70_000,
        "\x00",
        "\x1b[31m",
        "\u202e",
        "\ud800",
        "a\udcffb",
        "\U0001f600",
        "ﷺ" * 300,
    ),
    *(
        '"',
        '""',
        '"a""b"',
        "'",
        "a.b.c.d.e",
        ".".join("x" * 400),
        '"' * 999,
        "[",
        "[a]",
        "`",
        ".",
        "..",
        "$1",
        "?",
        "--",
        "/*",
    ),
    *(
        "%_" * 500 + "~",
        "%_" * 125 + "~",
        "%a" * 125,
        "\\" * 249,
        "_" * 250,
        "(" * 900,
        "a" * 60 + "!",
        "10" * 400,
        "null",
    ),
    *("ordres", "usesr", "main.orders", "public.orders", "nowhere.orders", "pg_catalog.pg_class", "sqlite_master"),
]
NUMBERS = [
    0,
    -1,
    1,
    2,
    2**31,
    2**63,
    -(2**63) - 1,
    10**400,
    -(10**999),
    10**2000,
    0.0,
    -0.0,
    1.5,
    1e308,
    5e-324,
    float("nan"),
]
DEEP: Any = 1
for _ in range(500):
    DEEP = [DEEP]
OTHERS = [
    None,
    True,
    False,
    [],
    {},
    [None],
    [[]],
    {"a": 1},
    ["x"] * 1000,
    ["x"] * 1001,
    ["x" * 1001],
    [1, "a", None],
    DEEP,
]
LISTS = [
    [f"wrong_name_{number}" for number in range(1000)],
    [f"table_with_a_long_name_{number:04}" for number in range(1000)],
    ["orders", "main.orders", "Orders", '"orders"', "public.orders"] * 200,
    ["a." * 490 + f"n{number}" for number in range(1000)],
    ['"a".' * 150 + f"n{number}" for number in range(1000)],
    ["%_" * 450 + str(number) for number in range(1000)],
]
ODD = [*TEXTS, *NUMBERS, *OTHERS, *LISTS, {"k" * 5000: [{}] * 50}]

QUERIES = [
    "SELECT id, email FROM users WHERE id = 1",
    "SELECT o.id, u.email FROM orders o JOIN users u ON u.id = o.user_id ORDER BY 1 LIMIT 3",
    "WITH t AS (SELECT count(*) AS n FROM orders GROUP BY user_id) SELECT max(n) FROM t",
    "SELECT CASE WHEN total > 1 THEN 'a' ELSE note END, total::numeric FROM orders",
    "SELECT cast('12' AS integer) + 1.5e3, -total, note || 'é' FROM orders UNION SELECT 1, 2, 'x'",
    "SELECT * FROM users WHERE email LIKE 'a%' AND id IN (SELECT user_id FROM orders) FINAL",
]
PIECES = [
    "(",
    ")",
    "'",
    '"',
    ",",
    ";",
    "$1",
    "?",
    "::",
    "--",
    "/*",
    "NULL",
    "1e400",
    "9" * 400,
    "\x00",
    "é",
    "[",
    "]",
    "FINAL",
    "x" * 300,
]
CASTS = [
    "numeric",
    "integer",
    "bigint",
    "double precision",
    "text",
    "boolean",
    "date",
    "timestamp",
    "json",
    "bytea",
    "uuid",
    "integer[]",
]


def bombs(size: int) -> Iterator[str]:
    """Statements of about `size` characters of which some grammar takes long."""
    yield "SELECT " + "1+" * (size // 2) + "1"
    yield "SELECT " + ",".join(f"c{number}" for number in range(size // 7))
    yield "SELECT " + "(" * (size // 2) + "1" + ")" * (size // 2)
    yield "SELECT 1 IN (" + ",".join("1" for _ in range(size // 2)) + ")"
    yield "SELECT " + "CASE WHEN true THEN " * (size // 40) + "1" + " END" * (size // 40)
    yield " UNION ALL ".join(["SELECT 1"] * (size // 18))
    yield "SELECT " + "abs(" * (size // 5) + "1" + ")" * (size // 5)
    yield "SELECT " + ",".join(f"zzf{number}(1)" for number in range(size // 10))
    yield "SELECT * FROM " + ",".join(f"t{number}" for number in range(size // 6))
    yield "SELECT " + "x" * size
    yield 'SELECT "' + "x" * size + '"'
    yield "SELECT 1 FROM " + "x" * size
    yield "SELECT " + "f" * size + "(1)"
    yield "SELECT * FROM " + "(SELECT * FROM " * (size // 16) + "users" + ")" * (size // 16)
    yield "SELECT" + " " * size + "1"
    yield "SELECT " + "- " * (size // 2) + "1"
    yield "SELECT " + "'a'||" * (size // 5) + "'a'"
    yield "SELECT " + "NOT " * (size // 4) + "true"
    yield "SELECT 1 WHERE " + "1=1 AND " * (size // 8) + "1=1"
    yield "SELECT $" + "a" * size + "$"
    yield "SELECT 1 /*" + "/*" * (size // 2)


def mutated(seed: int, count: int) -> Iterator[str]:
    """Queries with pieces put in, taken out and doubled."""
    chance = random.Random(seed)
    for _ in range(count):
        text = chance.choice(QUERIES)
        for _ in range(chance.randint(1, 3)):
            start, end = sorted(chance.sample(range(len(text) + 1), 2))
            middle = chance.choice(["", text[start:end] * 2, chance.choice(PIECES)])
            text = text[:start] + middle + text[end if chance.random() < 0.5 else start :]
        yield text


def large_values(dialect: str) -> Iterator[str]:
    """Statements whose answers have a few large values, or many nested ones: some fit into an answer, some do not."""
    if dialect == "postgres":
        for size in (100, 2_000, 40_000):
            series = f"FROM generate_series(1, {size}) g"
            yield f"SELECT array_fill(1, ARRAY[{size}, 10])"
            yield f"SELECT array_fill('a b'::text, ARRAY[{size}, 2, 5])"
            for element in (
                *("row(g, row(g, 'x'))", "ARRAY[row(g)]", "numrange(g, NULL)", "g * interval '1 day'", "g::numeric"),
                *("jsonb_build_object('a', g)", "point(g, g)", "sha256(g::text::bytea)", "'a\"b'::text"),
            ):
                yield f"SELECT array_agg({element}) {series}"
                yield f"SELECT {element}, ARRAY[{element}] {series}"
    elif dialect == "sqlite":
        for size in (100, 2_000, 40_000):
            numbers = f"WITH RECURSIVE n(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM n WHERE g < {size})"
            yield f"{numbers} SELECT json_group_array(json_object('a', g)) FROM n"
            yield f"{numbers} SELECT g, zeroblob(9), 'x' || g FROM n"
    else:
        for size in (100, 2_000, 9_000):
            series = f"sequence(1, {size})"
            yield f"SELECT transform({series}, g -> row(g, map(array[g], array['x'])))"
            yield f"SELECT map({series}, transform({series}, g -> array[row(g)]))"


class Resolving(Validator):
    """A policy that asks which columns a statement touches."""

    async def check(self, statement: Statement, call: Call) -> None:
        await call.resolve()


@pytest.fixture(scope="module")
async def postgres(anyio_backend):
    """A database of a server of its own; None where no server can be started."""
    testing = pytest.importorskip("dragoman_postgres.testing")
    server = testing.Server.start() if testing.installations() else None
    if server is not None:
        await server.run(SCRIPT)
    yield server and server.configure("postgres", name="shop")
    if server is not None:
        server.stop()


@pytest.fixture(scope="module")
async def trino(trino_server, anyio_backend):
    """A schema of a Trino server, with the same tables but their keys."""
    async with trino_server.schema() as schema:
        await trino_server.run(*TRINO, schema=schema)
        yield trino_server.configure(*schema.split("."), name="shop")


ALL_OF_TRINO = "trino, every call"


@pytest.fixture(
    params=[
        "sqlite",
        "postgres",
        pytest.param("trino", marks=pytest.mark.full),
        pytest.param(ALL_OF_TRINO, marks=pytest.mark.nightly),
    ]
)
def asked(request: pytest.FixtureRequest) -> str:
    """Which database is asked."""
    return request.param


@pytest.fixture
def step(asked) -> int:
    """How many calls of a long list one stands for: Trino takes a tenth of a second for each."""
    return 7 if asked == "trino" else 1


@pytest.fixture
def shop(asked, request: pytest.FixtureRequest, tmp_path, anyio_backend) -> Database:
    """The database that is asked."""
    if asked == "sqlite":
        return sqlite_file(tmp_path, "shop", SCRIPT)
    found = request.getfixturevalue(asked.partition(",")[0])
    if found is None:
        pytest.skip("no PostgreSQL server can be started here")
    return found


@pytest.fixture
async def toolbox(shop, tmp_path):
    """A database with few tables, and for names one with many."""
    async with Gateway.open([shop, sqlite_file(tmp_path, "many", MANY)]) as gateway:
        toolbox = Toolbox(gateway)
        # What is imported for the first call is no matter of its arguments.
        for name in ("shop", "many"):
            await toolbox.call("describe_table", {"database": name, "table_name": ["ordres"]})
        await toolbox.call("execute_query", {"database": "shop", "sql": "SELECT 1", "from_dialect": "mysql"})
        await toolbox.call("explain_query", {"database": "shop", "sql": "SELECT 1", "format": "yaml"})
        gc.collect()
        gc.freeze()
        yield toolbox
        gc.unfreeze()


def odd_calls(toolbox: Toolbox, database: str) -> Iterator[tuple[str, dict[str, Any]]]:
    usual = {
        "sql": "SELECT 1",
        "table_name": "orders",
        "from_table": "orders",
        "to_table": "users",
        "database": database,
    }
    for tool in toolbox.tools:
        properties = tool.input_schema["properties"]
        needed = {
            name: usual[name] for name in (*tool.input_schema.get("required", ()), "database") if name in properties
        }
        for name in (*properties, "no_such_argument"):
            for value in ODD:
                yield tool.name, {**needed, name: value}
        yield from ((tool.name, value) for value in OTHERS if not isinstance(value, dict))  # type: ignore[misc]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("database", ["shop", pytest.param("many", marks=pytest.mark.nightly)])
async def test_odd_arguments_are_answered_and_hold_nobody_up(toolbox, database, asked):
    # Trino takes a tenth of a second for most of them, and there are thousands.
    step = {"trino": 61, ALL_OF_TRINO: 7}.get(asked, 1)
    assert not await failures(toolbox, itertools.islice(odd_calls(toolbox, database), 0, None, step))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [500, pytest.param(16_000, marks=pytest.mark.nightly), 64_000])
async def test_long_statements_are_answered_and_hold_nobody_up(toolbox, size):
    ways: list[dict[str, Any]] = [{}] if size > 16_000 else [{}, {"from_dialect": "mysql"}]
    calls = [("execute_query", {"database": "shop", "sql": sql, **way}) for sql in bombs(size) for way in ways]
    calls += [
        ("get_sample_rows", {"database": "shop", "table_name": "orders", "where_clause": s[7:]}) for s in bombs(size)
    ]
    for number, sql in enumerate(bombs(size)):
        way = {"format": ("text", "json", "yaml")[number % 3], "verbose": number % 4 > 1}
        calls.append(("explain_query", {"database": "shop", "sql": sql, **way}))
    assert not await failures(toolbox, iter(calls))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", [500, pytest.param(64_000, marks=pytest.mark.full)])
async def test_columns_of_long_statements_are_resolved_and_hold_nobody_up(toolbox, size):
    opened = toolbox.gateway.database("shop")
    async with contextlib.aclosing(Offload()) as offload:
        opened.judge = Judge(opened.dialect, opened.config, opened.catalog, [Resolving()], opened.source, offload)
        await toolbox.call("execute_query", {"database": "shop", "sql": "SELECT 1 FROM users"})
        calls = (("execute_query", {"database": "shop", "sql": sql}) for sql in bombs(size))
        assert not await failures(toolbox, calls)


@pytest.mark.timeout(300)
async def test_large_values_are_answered_and_hold_nobody_up(toolbox):
    dialect = toolbox.gateway.database("shop").dialect.name
    calls = [
        ("execute_query", {"database": "shop", "sql": sql, "limit": 10_000, **way})
        for sql in large_values(dialect)
        for way in ({}, {"keep": "large"})
    ]
    long_plan = " UNION ALL ".join(["SELECT id FROM users"] * 400)
    calls += [("explain_query", {"database": "shop", "sql": long_plan, "format": told}) for told in ("json", "yaml")]
    assert not await failures(toolbox, iter(calls))


@pytest.mark.timeout(300)
async def test_broken_statements_are_told_in_words(toolbox, step):
    calls = []
    for number, sql in enumerate(mutated(seed=11, count=300)):
        way = {"from_dialect": ("mysql", "clickhouse", "trino")[number % 3]} if number % 2 else {}
        calls.append((("execute_query", "explain_query")[number % 5 == 0], {"database": "shop", "sql": sql, **way}))
    assert not await failures(toolbox, iter(calls[::step]))


@pytest.mark.timeout(300)
async def test_parameters_of_every_kind_are_taken_or_refused_in_words(toolbox, step):
    mark = "$1" if toolbox.gateway.database("shop").dialect.placeholder == "$1" else "?"
    values = [
        *TEXTS,
        *NUMBERS,
        *OTHERS,
        "1e100000000",
        "1" * 999,
        "0." + "0" * 900 + "1",
        "NaN",
        "9999-99-99",
        "{1,2}",
        "\\x00",
    ]
    statements = [f"SELECT CAST({mark} AS {kind})" for kind in CASTS] + [
        f"SELECT {mark}",
        f"SELECT id + {mark} FROM orders",
    ]
    calls = [
        ("execute_query", {"database": "shop", "sql": sql, "params": [value]}) for sql in statements for value in values
    ]
    calls += [("execute_query", {"database": "shop", "sql": "SELECT 1", "params": value}) for value in values]
    assert not await failures(toolbox, iter(calls[::step]))
