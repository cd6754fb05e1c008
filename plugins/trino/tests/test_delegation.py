"""The server keeps the rights of callers: each statement runs as the caller, whom the gateway's user impersonates."""

import asyncio
import hashlib
import json
import random
import re
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trustme
from dragoman import ConfigurationError, Database, Gateway, PermissionDenied, Principal, Secret, UnknownDatabase
from dragoman.config import Configuration, Results, load
from dragoman.config.roles import Grant, Role
from dragoman.model import Claims
from dragoman.tools import Toolbox
from dragoman_trino.connecting import Connector
from dragoman_trino.testing.fixtures import start_server
from dragoman_trino.testing.server import free_port

PASSWORD = "correct horse"
READ = ["SELECT"]
PAGE = Path(__file__).parents[3] / "docs" / "delegation.md"
SECTION = PAGE.read_text(encoding="utf-8").split("## Access control of Trino")[1].split("\n## ")[0]


def shown(language):
    """What the page shows in a language."""
    (block,) = re.findall(rf"```{language}\n(.*?)```", SECTION, re.DOTALL)
    return block


def rules():
    """The page's rules, after those of the administrator and of what else is asked here."""
    admin = {"user": "admin", "privileges": [*READ, "INSERT", "DELETE", "UPDATE", "OWNERSHIP"]}
    gateway = {"user": "gateway", "schema": "sales", "table": "orders", "privileges": READ, "filter": "false"}
    first = {
        "catalogs": [{"user": "admin", "allow": "all"}],
        "queries": [{"user": "admin", "allow": ["execute", "view", "kill"]}],
        "schemas": [{"user": "admin", "owner": True}, {"owner": False}],
        "tables": [admin, gateway, {"user": "bob", "schema": "hr", "privileges": READ}],
    }
    page = json.loads(shown("json"))
    return {key: first.get(key, []) + page.get(key, []) for key in first.keys() | page.keys()}


SETTING = (
    "CREATE SCHEMA memory.sales",
    "CREATE SCHEMA memory.hr",
    "CREATE TABLE memory.sales.orders (id integer, tenant varchar, note varchar)",
    "INSERT INTO memory.sales.orders SELECT n, IF(n % 3 = 0, 'a', 'b'), 'zyx' || cast(n AS varchar)"
    " FROM UNNEST(sequence(1, 300)) t(n)",
    "CREATE TABLE memory.hr.salaries AS SELECT 1 id",
)
COUNT = "SELECT count(*), min(tenant), max(tenant), min(note) FROM sales.orders"
EXPECTED = {"ann": [100, "a", "a", "zyx102"], "bob": [200, "b", "b", "***"]}


def hashed(password):
    """A password as the server's file of passwords has it: rounds, salt and PBKDF2's hash."""
    salt = b"salt of the tests"
    return f"1000:{salt.hex()}:{hashlib.pbkdf2_hmac('sha1', password.encode(), salt, 1000, 32).hex()}"


def caller(user, **claims):
    return Principal(f"called {user}", subject=user, claims=Claims(claims))


ANN, BOB, EVE = caller("ann"), caller("bob"), caller("eve")


@pytest.fixture(scope="module")
def secure_port():
    """The https port of a server whose user `gateway` may impersonate ann and bob; http is for its administrator."""
    port, authority = free_port(), trustme.CA()
    own = authority.issue_cert("localhost")
    pem = own.private_key_pem.bytes() + b"".join(blob.bytes() for blob in own.cert_chain_pems)
    server = start_server(
        catalogs={"memory": {"connector.name": "memory"}},
        settings={
            "http-server.https.enabled": "true",
            "http-server.https.port": str(port),
            "http-server.https.keystore.path": "{etc}/server.pem",
            "http-server.authentication.type": "PASSWORD",
            "http-server.authentication.allow-insecure-over-http": "true",
            "internal-communication.shared-secret": "of the tests",
        },
        files={
            "server.pem": pem.decode(),
            "password-authenticator.properties": (
                "password-authenticator.name=file\nfile.password-file={etc}/passwords\n"
            ),
            "passwords": f"gateway:{hashed(PASSWORD)}\n",
            "access-control.properties": "access-control.name=file\nsecurity.config-file={etc}/rules.json\n",
            "rules.json": json.dumps(rules()),
            "authority.pem": authority.cert_pem.bytes().decode(),
        },
    )
    server._run(SETTING, "admin", None)
    assert server.folder is not None
    yield port, server.folder / "etc"
    server.stop()


@pytest.fixture(scope="module")
def lake(secure_port):
    """The server as configured, for its callers."""
    port, folder = secure_port
    return Database(
        name="lake",
        dialect="trino",
        host="localhost",
        port=port,
        database="memory",
        user="gateway",
        password=Secret(PASSWORD),
        folder=folder,
        options={"verify": "authority.pem"},
        identity="user",
        pool_size=2,
    )


@asynccontextmanager
async def opened(lake, reuse=0.0, roles=None):
    configuration = Configuration(databases={"lake": lake}, roles=roles or {}, results=Results(reuse=reuse))
    async with Gateway.open(configuration) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def gateway(lake, anyio_backend):
    """A gateway for every test that needs no settings of its own: it reads the catalog of each caller once."""
    async with opened(lake) as gateway:
        yield gateway


@pytest.fixture(scope="module")
async def gateway_of_claims(lake, anyio_backend):
    """A gateway that takes the user of a caller from a claim."""
    async with opened(replace(lake, act_as="{claims.login}")) as gateway:
        yield gateway


async def rows(gateway, principal, sql=COUNT, params=()):
    return json.loads((await gateway.query(None, sql, params, principal=principal)).rows_json)


async def test_the_page_s_configuration_acts_for_its_callers(secure_port, tmp_path):
    port, folder = secure_port
    written = shown("toml").replace("trino.example/lake", f"localhost:{port}/memory")
    options = f'options = {{ verify = "{folder / "authority.pem"}" }}\n'
    file = tmp_path / "dragoman.toml"
    file.write_text(written + options)
    async with Gateway.open(load(file, environ={"LAKE_PASSWORD": PASSWORD}, folder=tmp_path)) as gateway:
        for name, expected in EXPECTED.items():
            assert await rows(gateway, caller("someone", preferred_username=name)) == [expected]
        with pytest.raises((PermissionDenied, UnknownDatabase)):
            await rows(gateway, caller("ann"))


async def ask(gateway, principal, tool, **arguments):
    return json.loads((await Toolbox(gateway, profile="full").call(tool, arguments, principal=principal)).text)


async def test_each_caller_has_its_own_rows_and_masks(gateway):
    for _ in range(2):
        assert await rows(gateway, ANN) == [EXPECTED["ann"]]
        assert await rows(gateway, BOB) == [EXPECTED["bob"]]
        assert await rows(gateway, ANN, "SELECT current_user") == [["ann"]]
        assert await rows(gateway, BOB, "SELECT count(*) FROM sales.orders WHERE id <= ?", [30]) == [[20]]


async def test_whom_the_gateway_may_not_impersonate_is_refused(gateway):
    for somebody in (EVE, caller("admin"), caller("gateway"), Principal()):
        told = await ask(gateway, somebody, "execute_query", sql=COUNT)
        assert "error" in told, somebody


@pytest.mark.parametrize(
    "user", ["ann ", " ann", "ann\r\nX-Trino-Role: system=ROLE{admin}", "\u0101nn", "ann\0", "", "\t", "gateway"]
)
async def test_a_name_that_a_header_would_change_or_that_signs_in_has_no_database(gateway_of_claims, user):
    assert gateway_of_claims.for_principal(caller("ann", login=user)).names == ()
    with pytest.raises(UnknownDatabase):
        await rows(gateway_of_claims, caller("ann", login=user))
    assert await rows(gateway_of_claims, caller("somebody", login="ann")) == [EXPECTED["ann"]]


async def test_who_lacks_the_claim_sees_no_database(gateway_of_claims):
    assert (await ask(gateway_of_claims, ANN, "list_databases"))["databases"] == []


async def test_the_catalog_is_that_of_the_caller(gateway):
    assert "salaries" in str(await ask(gateway, BOB, "list_tables"))
    assert "salaries" not in str(await ask(gateway, ANN, "list_tables"))
    assert "error" in await ask(gateway, ANN, "describe_table", table_name="hr.salaries")
    assert "error" not in await ask(gateway, BOB, "describe_table", table_name="hr.salaries")
    told = str(await ask(gateway, ANN, "explain_query", sql="SELECT * FROM sales.orders"))
    assert "'a'" not in told


@pytest.mark.parametrize("tool", ["execute_query", "explain_query"])
@pytest.mark.parametrize("sql", ["SELECT * FROM {}", "SELECT nowhere FROM {}", "SELECT id + 'x' FROM {}"])
async def test_no_error_tells_whether_a_table_exists_that_the_caller_may_not_read(lake, tool, sql, monkeypatch):
    # Near names are looked for that long, and on a busy machine the caller's part of the catalog is not read so soon.
    monkeypatch.setattr("dragoman.gateway.failures.PATIENCE", 60.0)
    async with opened(lake) as gateway:
        hidden, missing = [
            str(await ask(gateway, ANN, tool, sql=sql.format(name))).replace(name, "x")
            for name in ("hr.salaries", "hr.nothings")
        ]
        assert hidden == missing
        assert "NOT_FOUND" in hidden


async def test_the_engine_s_own_relations_stay_open(lake):
    sql = "SELECT table_name FROM memory.information_schema.tables WHERE table_schema = 'sales'"
    async with opened(lake) as gateway:
        assert "orders" in str(await ask(gateway, ANN, "execute_query", sql=sql))


@pytest.mark.parametrize(
    "sql",
    [
        "SHOW STATS FOR sales.orders",
        "SHOW STATS FOR (SELECT * FROM sales.orders)",
        "EXPLAIN SELECT * FROM sales.orders",
        "EXPLAIN (TYPE IO, FORMAT JSON) SELECT * FROM sales.orders",
    ],
)
async def test_no_statement_tells_how_many_rows_the_caller_does_not_see(gateway, sql):
    assert "error" in await ask(gateway, BOB, "execute_query", sql=sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SET SESSION AUTHORIZATION bob",
        "RESET SESSION AUTHORIZATION",
        "SET ROLE ALL",
        "SELECT * FROM hr.salaries",
        "SELECT * FROM system.runtime.queries WHERE \"user\" <> 'ann'",
        "PREPARE x FROM SELECT 1",
    ],
)
async def test_no_statement_changes_who_asks(gateway, sql):
    told = await ask(gateway, ANN, "execute_query", sql=sql)
    assert "error" in told or told["rows"] == []
    assert await rows(gateway, ANN) == [EXPECTED["ann"]]


async def test_callers_who_are_cancelled_and_crowd_never_mix(gateway):
    chance = random.Random(20260715)

    async def call(gateway, principal):
        task = asyncio.ensure_future(rows(gateway, principal))
        if chance.random() < 0.3:
            await asyncio.wait({task}, timeout=chance.random() / 5)
            task.cancel()
        try:
            (row,) = await task
        except asyncio.CancelledError:
            return 0
        assert row == EXPECTED[principal.subject]
        return 1

    answered = 0
    for _ in range(6):
        answered += sum(await asyncio.gather(*(call(gateway, chance.choice([ANN, BOB])) for _ in range(6))))
    assert answered > 10


async def test_kept_and_reused_answers_are_the_callers(lake):
    """Two sign-ins of one subject whose users differ share nothing."""
    one, other = caller("person", login="ann"), caller("person", login="bob")
    async with opened(replace(lake, act_as="{claims.login}"), reuse=600.0) as gateway:
        assert "error" not in await ask(gateway, one, "execute_query", sql=COUNT, keep="mine")
        assert (await ask(gateway, one, "get_result", result="mine"))["rows"] == [EXPECTED["ann"]]
        assert (await ask(gateway, other, "get_result", result="mine"))["error"]["code"] == "RESULT_NOT_FOUND"
        assert await rows(gateway, other) == [EXPECTED["bob"]]
        assert await rows(gateway, one) == [EXPECTED["ann"]]


async def test_filters_of_roles_hold_beside_the_servers(lake):
    grants = (Grant(database="lake", tables=("memory.sales.orders",), filter="id > 150", key="roles.all.grants.0"),)
    role = Role(name="all", principals=frozenset({"ann", "bob"}), grants=grants)
    async with opened(lake, roles={"all": role}) as gateway:
        assert (await rows(gateway, ANN))[0][0] == 50
        assert (await rows(gateway, BOB))[0][0] == 100
        assert "salaries" not in str(await ask(gateway, BOB, "list_tables"))
        with pytest.raises(UnknownDatabase):
            await rows(gateway, EVE)


async def test_a_cost_that_a_role_does_not_allow_is_refused(trino_server):
    """The server's own estimate, which it has for tables with statistics; else the timeout is the bound."""
    tiny = trino_server.configure("tpch", "tiny", name="lake")
    grants = (Grant(database="lake", tables=("tpch.tiny.*",), key="roles.all.grants.0"),)
    role = Role(name="all", principals=frozenset({"ann"}), grants=grants, max_cost=1e7)
    async with opened(tiny, roles={"all": role}) as gateway:
        assert await rows(gateway, ANN, "SELECT count(*) FROM tpch.tiny.nation") == [[25]]
        told = await ask(
            gateway, ANN, "execute_query", sql="SELECT count(*) FROM tpch.tiny.lineitem a, tpch.tiny.lineitem b"
        )
        assert told["error"]["code"] == "COST_EXCEEDED"


async def test_more_users_than_are_remembered_each_have_their_own(lake, monkeypatch):
    """Catalogs and transactions of those not seen for long go, and come back as theirs."""
    monkeypatch.setattr("dragoman.gateway.gateway.SETS_OF_ROLES", 1)
    monkeypatch.setattr("dragoman_trino.transactions.MOST_USERS", 1)
    async with opened(lake) as gateway:
        for _ in range(3):
            assert await rows(gateway, ANN) == [EXPECTED["ann"]]
            assert await rows(gateway, BOB) == [EXPECTED["bob"]]
        assert len(gateway.database()._faces) <= 2


async def test_the_gateways_own_user_runs_nothing_of_callers(gateway):
    from dragoman.model import Request

    with pytest.raises(PermissionDenied):
        gateway.database().executor.open(Request(statement=COUNT))


def test_two_ways_of_being_somebody_else_are_one_too_many(lake):
    with pytest.raises(ConfigurationError, match="session_user"):
        Connector(replace(lake, options={**lake.options, "session_user": "dave"}))
