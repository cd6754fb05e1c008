"""Roles that are wrong in one place, made up from a seed: each stops the start and says where, and none opens."""

import contextlib
import random
import sqlite3
from dataclasses import replace

import pytest
from dragoman import Database, Gateway
from dragoman.config import Configuration, load
from dragoman.errors import ConfigurationError
from dragoman.tools import Toolbox
from dragoman_postgres.testing import Server

SCHEMA = """
CREATE TABLE {s}customers (customer_id INTEGER PRIMARY KEY, nickname TEXT, birthday TEXT, passport TEXT);
CREATE TABLE {s}purchases (purchase_id INTEGER PRIMARY KEY, tenant TEXT, customer INTEGER, discount INTEGER);
CREATE TABLE {s}salaries (employee INTEGER, amount INTEGER);
"""
ROLES = """
[roles.analyst]
groups = ["analysts"]
tools = ["execute_query", "describe_table", "list_tables"]
[[roles.analyst.grants]]
database = "warehouse"
tables = ["main.purchases"]
columns = ["purchase_id", "tenant", "customer"]
filter = "tenant = $claim.tenant AND discount < 50"
[[roles.analyst.grants]]
database = "warehouse"
tables = ["main.customers", "main.sal*"]
deny = ["main.salaries"]
deny_columns = ["*.passport"]
masks = { "main.customers.birthday" = "substr(birthday, 1, 4)", nickname = "partial" }
"""
FIRST, SECOND = "roles.analyst.grants.0", "roles.analyst.grants.1"
NAMES = {
    "execute_query": "roles.analyst.tools",
    "describe_table": "roles.analyst.tools",
    'database = "warehouse': f"{FIRST}.database",
    'tables = ["main.purchases': f"{FIRST}.tables",
    'columns = ["purchase_id", "tenant", "customer': f"{FIRST}.columns",
    "purchase_id": f"{FIRST}.columns",
    "main.salaries": f"{SECOND}.deny",
    "passport": f"{SECOND}.deny_columns",
    "main.customers.birthday": f"{SECOND}.masks",
    "nickname": f"{SECOND}.masks",
}
"""What ends with a name that is misspelled, and the key that it stands under."""
FILTER = "tenant = $claim.tenant AND discount < 50"
FILTERS = (
    "{name} = $claim.tenant",
    "{name}.tenant = $claim.tenant",
    "tenant = $clam.tenant",
    "tenant = ${name}",
    "tenant = $claim.",
    "(tenant = $claim.tenant",
    "tenant = $claim.tenant)",
    "tenant = 'a') OR (1 = 1",
    "tenant = $claim.tenant, 1",
    "tenant = $claim.tenant; SELECT 1",
    "tenant = 'a' UNION SELECT 1",
    "tenant = {name}(tenant)",
    "tenant IN (SELECT tenant FROM main.{name})",
    "EXISTS (DELETE FROM main.purchases)",
    "tenant = 'a",
    "tenant = ",
    "",
    "SELECT 1",
    "1 = 1 ORDER BY 1",
    "1 = 1 LIMIT 5",
)
MASKS = ("parital", "{name}(birthday)", "birthday, passport", "substr({name}, 1)", "birthday)", "", "$clam.x")


def misspell(name: str, dice: random.Random) -> str:
    """Return a name with one slip of a finger: a letter too few, too many, another one, or two in the wrong order."""
    place = dice.randrange(len(name) - 5, len(name) - 1)
    before, letter, after = name[:place], name[place], name[place + 1 :]
    slip = dice.choice(("drop", "double", "other", "swap"))
    if slip == "swap" and letter != after[0]:
        return before + after[0] + letter + after[1:]
    return before + {"drop": "", "double": letter * 2}.get(slip, "q") + after


def break_roles(dice: random.Random) -> tuple[str, str, str]:
    """Return roles that are wrong in one place, the key that is told, and the name that was meant, if it was one.

    What only the database can tell is told of the grant.
    """
    kind = dice.random()
    name = misspell("purchases", dice)
    if kind < 0.6:
        written, key = dice.choice(list(NAMES.items()))
        meant = written.rpartition('"')[2].rpartition(".")[2]
        return ROLES.replace(written, written.removesuffix(meant) + misspell(meant, dice), 1), key, meant
    if kind < 0.85:
        return ROLES.replace(FILTER, dice.choice(FILTERS).format(name=name)), FIRST, ""
    return ROLES.replace("substr(birthday, 1, 4)", dice.choice(MASKS).format(name=name)), SECOND, ""


@pytest.fixture(params=["sqlite", "postgres"])
async def warehouse(request, tmp_path, anyio_backend):
    """A database with the tables, as this engine has it."""
    if request.param == "postgres":
        server = Server.start()
        name = await server.create("CREATE SCHEMA main;" + SCHEMA.format(s="main."))
        yield server.configure(name, name="warehouse")
        server.stop()
        return
    import sqlite3

    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.executescript(SCHEMA.format(s=""))
    connection.close()
    yield Database(name="warehouse", dialect="sqlite", database="shop.db", folder=tmp_path)


async def open_with(roles: str, warehouse: Database, folder) -> None:
    """Open the database with roles that are written in a file."""
    file = folder / "dragoman.toml"
    file.write_text('[databases.warehouse]\nurl = "sqlite:///shop.db"\n' + roles)
    written = load(file, environ={}, folder=folder)
    opened: Configuration = replace(written, databases={"warehouse": warehouse})
    async with Gateway.open(opened) as gateway:
        Toolbox(gateway)


@pytest.mark.full
@pytest.mark.timeout(600)
async def test_roles_that_are_wrong_in_one_place_stop_the_start_and_say_where(warehouse, tmp_path):
    await open_with(ROLES, warehouse, tmp_path)
    for seed in range(150):
        roles, key, meant = break_roles(random.Random(seed))
        try:
            await open_with(roles, warehouse, tmp_path)
        except ConfigurationError as error:
            told = f"{error.message} {error.suggestion}"
        else:
            pytest.fail(f"open: {seed} {roles}")
        assert "dragoman.toml" in told, (seed, told)
        assert key in told, (seed, told)
        assert meant in told, (seed, told)


async def test_what_is_missing_is_told_with_what_was_not_read(tmp_path):
    """It may be there, and only not have been read."""
    file = tmp_path / "shop.db"
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.executescript("CREATE TABLE t (a); CREATE VIEW broken AS SELECT a FROM gone")
    configuration = tmp_path / "dragoman.toml"
    configuration.write_text(
        '[databases.shop]\nurl = "sqlite:///shop.db"\n[roles.reader]\nprincipals = ["*"]\n'
        '[[roles.reader.grants]]\ndatabase = "shop"\ntables = ["main.other"]\n'
    )
    with pytest.raises(ConfigurationError) as refused:
        async with Gateway.open(configuration):
            pass
    assert "names no table" in refused.value.message
    assert "broken" in str(refused.value.suggestion)
