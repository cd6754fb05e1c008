"""Whatever policies wrap, replace and answer, no wall falls: random ones are installed, and no attack comes through."""

import contextlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from dragoman import ConfigurationError, Database, Gateway, Principal
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.testing.corpus import cases, setup
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

from .conftest import write_policy

SOURCE = (Path(__file__).parent / "any_policy.py").read_text()
PLANTED = """
CREATE TABLE hidden (id integer, note text);
CREATE FUNCTION abs(text) RETURNS integer LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION counted(integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN 1; END';
CREATE VIEW calling AS SELECT counted(1) AS n;
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER far FOREIGN DATA WRAPPER elsewhere;
CREATE FOREIGN TABLE remote (line text) SERVER far;
CREATE VIEW through AS SELECT line FROM remote;
"""
ATTACKS = {
    "postgres": [
        *("SELECT abs('x')", "SELECT counted(1)", "SELECT n FROM calling", "SELECT line FROM remote"),
        *("SELECT line FROM through", "SELECT rolpassword FROM pg_authid", "SELECT passwd FROM pg_shadow"),
    ],
    "sqlite": ["SELECT load_extension('x')"],
}
HIDDEN = {
    "postgres": ["SELECT note FROM hidden", "SELECT count(*) FROM hidden", "SELECT h FROM hidden AS h WHERE id > 0"],
    "sqlite": ["SELECT note FROM hidden", "SELECT count(*) FROM hidden", "SELECT * FROM pragma_table_list"],
}
"""Refused to a role that is granted something else."""
HARMLESS = "SELECT 'harmless' AS kind"
TOOLS = ("execute_query", "execute_query", "explain_query", "get_sample_rows")
CLERK = Principal("clerk", subject="clerk", groups=frozenset({"clerks"}))
FEW = 40
"""Attacks of the corpus that are tried with each set of policies."""


@pytest.fixture(scope="module")
async def postgres(server: Server, anyio_backend: str) -> Database:
    return server.configure(await server.create(setup("postgres") + PLANTED))


@pytest.fixture(scope="module")
def sqlite(tmp_path_factory: pytest.TempPathFactory) -> Database:
    path = tmp_path_factory.mktemp("walls") / "shop.db"
    connection = apsw.Connection(str(path))
    connection.execute(setup("sqlite") + "CREATE TABLE hidden (id INTEGER, note TEXT);")
    connection.close()
    return Database(name="shop", dialect="sqlite", database=str(path))


@pytest.fixture
def database(dialect: str, request: pytest.FixtureRequest) -> Database:
    """The database that is asked."""
    found: Database = request.getfixturevalue(dialect)
    return found


@pytest.fixture
def policies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator:
    """`policies(chance)`: install one to three; what came to their executors is in the lists that are returned."""
    names: list[str] = []

    def install(chance: random.Random):
        for number in range(chance.randint(1, 3)):
            name = f"any{number}"
            source = f"{SOURCE}\n\nplugin = AnyPolicy({chance.randrange(10**9)})\n"
            monkeypatch.syspath_prepend(write_policy(tmp_path / name, name, source))
            names.append(f"policy_{name}")
        return lambda: [text for name in names for text in sys.modules[name].reached]

    yield install
    for name in names:
        sys.modules.pop(name, None)


async def attempt(gateway: Gateway, database: Database, tool: str, sql: str) -> bool:
    """Whether a statement is answered through a tool."""
    toolbox = Toolbox(gateway, profile="full")
    arguments = {"database": database.name, "sql": sql, **({"analyze": True} if tool == "explain_query" else {})}
    if tool == "get_sample_rows":
        arguments = {"database": database.name, "table_name": "customers", "where_clause": f"EXISTS ({sql})"}
    return not (await toolbox.call(tool, arguments, principal=CLERK)).is_error


def configured(database: Database) -> Configuration:
    """The database with a role that is granted one table."""
    grant = Grant(database=database.name, tables=("*.customers",), key="roles.clerk.grants.0")
    role = Role(name="clerk", groups=frozenset({"clerks"}), grants=(grant,))
    return Configuration(databases={database.name: database}, roles={"clerk": role})


@pytest.mark.parametrize(
    "seed",
    [*range(12), 116, *(pytest.param(seed, marks=pytest.mark.nightly) for seed in range(12, 400) if seed != 116)],
)
@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
async def test_no_policy_lets_an_attack_through(dialect: str, seed: int, database: Database, policies):
    chance = random.Random(f"{dialect} {seed}")
    reached = policies(chance)
    refused = [case.sql for case in (*cases(dialect), *cases("any")) if not case.allow]
    attacks = ATTACKS[dialect] + chance.sample(refused, FEW)
    roles = bool(seed % 2)
    attacks += HIDDEN[dialect] * roles
    answered: list[str] = []
    # Where a policy tells of no table, a role's grants fit nothing, and the gateway does not start.
    with contextlib.suppress(ConfigurationError):
        async with Gateway.open(configured(database) if roles else [database]) as gateway:
            answered = [sql for sql in attacks if await attempt(gateway, database, chance.choice(TOOLS), sql)]
            harmless = await attempt(gateway, database, "execute_query", HARMLESS)
            assert harmless == (HARMLESS in reached())
    assert answered == []
    texts = [sql.strip() for sql in attacks if sql.strip() not in HARMLESS]  # one is the word SELECT alone
    assert [sql for sql in texts if any(sql in text for text in reached())] == []
