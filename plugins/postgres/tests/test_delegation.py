"""The server keeps the rights of callers: role and settings, on pooled connections, nothing of one for another."""

import asyncio
import json
import random
from contextlib import asynccontextmanager
from dataclasses import replace

import asyncpg
import pytest
from dragoman import ConfigurationError, ConnectionFailed, Gateway, PermissionDenied, Principal, Secret, UnknownDatabase
from dragoman.cli.checking import Check
from dragoman.config import Configuration, Results, Server, load
from dragoman.config.roles import Grant, Role
from dragoman.gateway.breaker import FAILURES
from dragoman.model import Acting, Claims
from dragoman.tools import Toolbox

SCHEMA = """
DROP SCHEMA IF EXISTS sales, hr CASCADE;
CREATE SCHEMA sales;
CREATE SCHEMA hr;
CREATE TABLE sales.orders (id int PRIMARY KEY, tenant text, total int);
INSERT INTO sales.orders SELECT n, CASE n % 3 WHEN 0 THEN 'a' ELSE 'b' END, n FROM generate_series(1, 300) n;
CREATE TABLE hr.salaries (id int PRIMARY KEY, amount int);
INSERT INTO hr.salaries VALUES (1, 1000);
ALTER TABLE sales.orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON sales.orders USING (tenant = current_setting('app.tenant', true));
CREATE POLICY boss ON sales.orders TO "o""dd; boss" USING (true);
CREATE VIEW sales.leaky AS SELECT * FROM sales.orders;
GRANT USAGE ON SCHEMA sales TO seller, "o""dd; boss";
GRANT USAGE ON SCHEMA hr TO "o""dd; boss";
GRANT SELECT ON ALL TABLES IN SCHEMA sales TO seller;
GRANT SELECT ON ALL TABLES IN SCHEMA sales, hr TO "o""dd; boss";
ANALYZE sales.orders;
"""
LOGIN = "delegating"
COUNT = "SELECT count(*), min(tenant), max(tenant), current_user FROM sales.orders"


def caller(tenant, group="sellers", **claims):
    given = Claims({**claims, **({"tenant": tenant} if tenant is not None else {})})
    return Principal(f"of {tenant}", subject=f"of {tenant}", groups=frozenset({group}), claims=given)


ANN, BOB, BOSS = caller("a"), caller("b"), caller("x", "bosses")


@pytest.fixture
async def place(server, database_name):
    """The database as configured; who signs in may become two roles and reads nothing itself."""
    connection = await asyncpg.connect(server.address(database_name))
    names = ("seller", 'o"dd; boss', "stranger", LOGIN)
    existing = {row[0] for row in await connection.fetch("SELECT rolname FROM pg_roles")}
    for name in names:
        if name not in existing:
            quoted = name.replace('"', '""')
            how = "LOGIN NOINHERIT PASSWORD 'p'" if name == LOGIN else "NOLOGIN"
            await connection.execute(f'CREATE ROLE "{quoted}" {how}')
    await connection.execute(f'GRANT seller, "o""dd; boss" TO {LOGIN}')
    await connection.execute(SCHEMA)
    await connection.close()
    return server.configure(
        database_name,
        user=LOGIN,
        password=Secret("p"),
        pool_size=2,
        identity="role",
        database_roles={"boss": 'o"dd; boss', "seller": "seller"},
        session={"app.tenant": "{claims.tenant}", "app.caller": "{user} of {groups}"},
    )


def roles_of(database, **other):
    def role(name, group, *tables):
        grants = (Grant(database=database.name, tables=tables, key=f"roles.{name}.grants.0"),)
        return Role(name=name, groups=frozenset({group}), grants=grants)

    return {"seller": role("seller", "sellers", "sales.*"), "boss": role("boss", "bosses", "sales.*", "hr.*"), **other}


@asynccontextmanager
async def opened(database, reuse=0.0, **roles):
    configuration = Configuration(
        databases={database.name: database}, roles=roles_of(database, **roles), results=Results(reuse=reuse)
    )
    async with Gateway.open(configuration) as gateway:
        yield gateway


async def rows(gateway, principal, sql=COUNT, **how):
    return json.loads((await gateway.query(None, sql, principal=principal, **how)).rows_json)


async def ask(gateway, principal, tool, **arguments):
    return json.loads((await Toolbox(gateway, profile="full").call(tool, arguments, principal=principal)).text)


async def test_each_caller_has_the_rows_of_its_own_role_and_settings(place):
    async with opened(place) as gateway:
        for _ in range(3):
            assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]
            assert await rows(gateway, BOB) == [[200, "b", "b", "seller"]]
            assert await rows(gateway, BOSS) == [[300, "a", "b", 'o"dd; boss']]


async def test_a_setting_may_have_the_name_of_any_word_of_the_grammar(place, server):
    connection = await asyncpg.connect(server.address("postgres"))
    words = [row[0] for row in await connection.fetch("SELECT word FROM pg_get_keywords()")]
    await connection.close()
    session = {**place.session, **{f"app.{word}": "{user}" for word in words}, **{f"{word}.app": "x" for word in words}}
    async with opened(replace(place, session=session)) as gateway:
        assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]


TELLING = """
EXPLAIN SELECT * FROM sales.orders|EXPLAIN (FORMAT JSON) SELECT * FROM sales.orders WHERE tenant = 'b'
SELECT reltuples FROM pg_class WHERE relname = 'orders'|SELECT relpages FROM pg_catalog.pg_class|TABLE pg_class
SELECT n_live_tup FROM pg_stat_user_tables|SELECT avg_width FROM pg_stats|SELECT * FROM pg_policies
SELECT pg_relation_size('sales.orders')|SELECT pg_total_relation_size('sales.orders')|SHOW server_version
WITH a AS (SELECT reltuples FROM pg_class) SELECT * FROM a|SELECT (SELECT sum(relpages) FROM pg_class)
SELECT x.reltuples FROM LATERAL (SELECT * FROM pg_class) AS x|SELECT 1 WHERE EXISTS (SELECT FROM pg_stat_all_tables)
"""


@pytest.mark.parametrize("identity", ["role", "session"])
async def test_no_statement_tells_how_many_rows_the_caller_does_not_see(place, identity):
    if identity == "session":
        place = replace(place, identity=identity, database_roles={}, user="postgres")
    configuration = Configuration(databases={place.name: place}, roles=roles_of(place) if identity == "role" else {})
    async with Gateway.open(configuration) as gateway:
        for sql in TELLING.replace("\n", "|").strip("|").split("|"):
            assert "error" in await ask(gateway, ANN, "execute_query", sql=sql), sql
        if identity == "session":
            assert await rows(gateway, ANN, "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'hr'")


async def test_values_of_callers_are_texts_whatever_they_hold(place):
    odd = [
        "'",
        "a' OR true --",
        "\\",
        "\\'",
        "a\\",
        "'; RESET ROLE; --",
        "$$",
        "é\u202e\U0001f600",
        "{user}",
        "E'a'",
        "",
    ]
    async with opened(replace(place, allow_functions=frozenset({"current_setting"}))) as gateway:
        for tenant in odd:
            told = await rows(
                gateway, caller(tenant), "SELECT current_setting('app.tenant'), count(*) FROM sales.orders"
            )
            assert told == [[tenant, 0]]
        said = await rows(gateway, ANN, "SELECT current_setting('app.caller')")
        assert said == [['of a of ["sellers"]']]


@pytest.mark.parametrize("bad", ["\0", "a\0b", "\ud800"])
async def test_a_value_that_no_server_takes_is_refused(place, bad):
    async with opened(place) as gateway:
        with pytest.raises(PermissionDenied):
            await rows(gateway, caller(bad))
        assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]


async def test_who_lacks_a_claim_is_refused_and_who_has_no_role_sees_no_database(place):
    async with opened(place) as gateway:
        with pytest.raises(PermissionDenied, match="'tenant'"):
            await rows(gateway, caller(None))
        with pytest.raises(UnknownDatabase):
            await rows(gateway, caller("a", "others"))
        assert gateway.for_principal(Principal("anybody")).names == ()


async def test_the_catalog_is_that_of_the_role(place):
    async with opened(place) as gateway:
        assert await ask(gateway, ANN, "list_tables") == {
            "tables": {"sales": ["orders"]},
            "views": {"sales": ["leaky"]},
        }
        assert "salaries" in str(await ask(gateway, BOSS, "list_tables"))
        told = str(await ask(gateway, ANN, "describe_table", table_name="sales.orders", detail="full"))
        assert "300" not in told, "how many rows there are is not the caller's to know"
        assert (await ask(gateway, ANN, "describe_table", table_name="hr.salaries"))["error"][
            "code"
        ] == "SCHEMA_NOT_FOUND"
        assert "salaries" not in str(await ask(gateway, ANN, "search_catalog", query="salaries", kinds=["table"]))
        assert "300" not in str(
            await ask(gateway, ANN, "explain_query", sql="SELECT * FROM sales.orders", analyze=True)
        )


@pytest.mark.parametrize(
    "sql",
    [
        "RESET ROLE",
        "SET ROLE none",
        "SET SESSION AUTHORIZATION DEFAULT",
        "RESET ALL",
        "DISCARD ALL",
        "ROLLBACK",
        "SET LOCAL app.tenant = 'b'",
        "SELECT set_config('app.tenant', 'b', true)",
        "SELECT pg_catalog.set_config('role', 'none', false)",
        "WITH x AS MATERIALIZED (SELECT set_config('app.tenant', 'b', true)) SELECT count(*) FROM x, sales.orders",
        "SELECT query_to_xml('select set_config(''role'', ''none'', false)', true, true, '')",
        "SELECT 1; RESET ROLE",
        "SELECT dblink('', 'select 1')",
        "DO $$ BEGIN RESET ROLE; END $$",
        "SHOW app.tenant",
    ],
)
async def test_no_statement_changes_who_asks(place, sql):
    async with opened(place) as gateway:
        assert "error" in await ask(gateway, ANN, "execute_query", sql=sql) or sql.startswith("SHOW")
        assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]
        assert await rows(gateway, BOB) == [[200, "b", "b", "seller"]]


async def test_a_session_that_was_changed_for_good_is_clean_for_the_next(place):
    """Even what a function does that an administrator allows by mistake ends with the transaction."""
    loose = replace(place, allow_functions=frozenset({"set_config"}), pool_size=1)
    async with opened(loose) as gateway:
        for setting in ("app.tenant", "role"):
            value = "b" if setting == "app.tenant" else "none"
            told = await ask(gateway, ANN, "execute_query", sql=f"SELECT set_config('{setting}', '{value}', false)")
            assert told["rows"] == [[value]]
            assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]


async def test_callers_who_are_cancelled_and_crowd_the_pool_never_mix(place):
    """Two connections, three kinds of callers, hundreds of calls, a third of them cancelled at any moment."""
    chance = random.Random(20260715)
    expected = {ANN: [100, "a", "a", "seller"], BOB: [200, "b", "b", "seller"], BOSS: [300, "a", "b", 'o"dd; boss']}

    async def call(gateway, principal):
        slow = "SELECT count(*), min(tenant), max(tenant), current_user FROM sales.orders, generate_series(1, 2000)"
        sql = slow if chance.random() < 0.2 else COUNT
        task = asyncio.ensure_future(rows(gateway, principal, sql))
        if chance.random() < 0.35:
            await asyncio.wait({task}, timeout=chance.random() / 50)
            task.cancel()
        try:
            ((count, *rest),) = await task
        except asyncio.CancelledError:
            return 0
        assert [count // 2000 if sql is slow else count, *rest] == expected[principal]
        return 1

    async with opened(place) as gateway:
        answered = 0
        for _ in range(20):
            crowd = [call(gateway, chance.choice([ANN, BOB, BOSS])) for _ in range(12)]
            answered += sum(await asyncio.gather(*crowd))
        assert answered > 100


async def test_a_kept_result_is_of_the_values_it_was_made_with(place):
    """The same person with another tenant, or another role, has neither the kept result nor a reused answer."""
    moved = Principal("of a", subject="of a", groups=ANN.groups, claims=Claims({"tenant": "b"}))
    promoted = Principal("of a", subject="of a", groups=frozenset({"bosses"}), claims=ANN.claims)
    async with opened(place, reuse=600.0) as gateway:
        kept = await ask(gateway, ANN, "execute_query", sql=COUNT, keep="mine")
        assert "error" not in kept
        assert (await ask(gateway, ANN, "get_result", result="mine"))["rows"] == [[100, "a", "a", "seller"]]
        assert await rows(gateway, ANN) == [[100, "a", "a", "seller"]]
        for other, own in ((moved, [200, "b", "b", "seller"]), (promoted, [300, "a", "b", 'o"dd; boss'])):
            assert (await ask(gateway, other, "get_result", result="mine"))["error"]["code"] == "RESULT_NOT_FOUND"
            assert await rows(gateway, other) == [own]
        assert (await ask(gateway, ANN, "get_result", result="mine"))["rows"] == [[100, "a", "a", "seller"]]


LOSSES = {
    "REVOKE SELECT ON sales.orders FROM seller": "SCHEMA_NOT_FOUND",
    "REVOKE SELECT ON sales.orders FROM seller; GRANT SELECT (id) ON sales.orders TO seller": "RESULT_NOT_FOUND",
    "REVOKE USAGE ON SCHEMA sales FROM seller": "SCHEMA_NOT_FOUND",
    "DROP TABLE sales.orders CASCADE": "SCHEMA_NOT_FOUND",
    "ALTER TABLE sales.orders RENAME total TO sum": "RESULT_NOT_FOUND",
    "GRANT SELECT ON hr.salaries TO seller": "",
}


@pytest.mark.parametrize("change", LOSSES)
async def test_what_was_kept_goes_with_the_right_to_read_it(place, server, database_name, change):
    async with opened(replace(place, catalog_ttl=0), reuse=60) as gateway:
        sql = "SELECT * FROM sales.orders"
        await ask(gateway, ANN, "execute_query", sql=sql, keep="mine")
        assert (await ask(gateway, ANN, "get_result", result="mine"))["row_count"] == 100
        await server.run(change, database_name)
        for tool, arguments in (("get_result", {"result": "mine"}), ("export_result", {"result": "mine"})):
            told = await ask(gateway, ANN, tool, **arguments)
            assert told.get("error", {}).get("code", "") == LOSSES[change], told
        again = await ask(gateway, ANN, "execute_query", sql=sql)
        assert any("kept result" in each for each in again.get("notices", ())) == (not LOSSES[change])


async def test_a_saved_query_of_what_the_server_hides_is_told_of_nowhere(place, server, database_name, tmp_path):
    connection = await asyncpg.connect(server.address(database_name))
    await connection.execute(
        "REVOKE SELECT ON sales.orders FROM seller; GRANT SELECT (id, tenant) ON sales.orders TO seller"
    )
    await connection.close()
    for name, sql in (("open", "SELECT id FROM sales.orders"), ("zyx_total", "SELECT total FROM sales.orders")):
        (tmp_path / f"{name}.sql").write_text(f"-- expose: tool\n{sql}\n")
    configuration = Configuration(
        databases={place.name: place}, roles=roles_of(place), server=Server(queries_dir=tmp_path)
    )
    async with Gateway.open(configuration) as gateway:
        assert [each["name"] for each in (await ask(gateway, ANN, "list_queries"))["queries"]] == ["open"]
        assert "zyx" not in str(await ask(gateway, ANN, "read_resource"))
        assert "zyx_total" in await Toolbox(gateway, profile="full").hidden_tools(ANN)
        told = [str(await ask(gateway, ANN, "run_query", name=name)) for name in ("zyx_total", "zyx_none")]
        assert told[0].replace("zyx_total", "zyx_none") == told[1]
        assert len((await ask(gateway, BOSS, "list_queries"))["queries"]) == 2


async def test_what_runs_for_nobody_is_refused(place):
    """The gateway's own executor does nothing that is not done as somebody."""
    from dragoman.model import Request

    async with opened(place) as gateway:
        with pytest.raises(PermissionDenied):
            gateway.database().executor.open(Request(statement=COUNT))
        async with gateway.database().executor.open(Request(statement="SELECT 1", acting=Acting())) as stream:
            assert [each.name for each in stream.columns] == ["?column?"]


async def test_a_role_that_cannot_be_taken_refuses_its_callers_without_naming_it(place):
    for name in ("stranger", "no such role"):
        wrong = replace(place, database_roles={"seller": name, "boss": 'o"dd; boss'})
        async with opened(wrong) as gateway:
            with pytest.raises(ConnectionFailed) as raised:
                await rows(gateway, ANN)
            assert name not in str(raised.value.as_dict())
            assert (await rows(gateway, BOSS))[0][0] == 300


async def test_the_check_of_a_configuration_tells_why_roles_were_not_checked(place):
    wrong = replace(place, database_roles={"seller": "stranger", "boss": 'o"dd; boss'})
    check = Check(Configuration(databases={wrong.name: wrong}, roles=roles_of(wrong)), [])
    assert await check.problems() == []
    (warning,) = check.warnings
    assert "roles were not checked: " in warning
    assert "does not let the gateway act for this caller" in warning


async def test_whom_the_server_refuses_shuts_nobody_else_out(place):
    """Failures count for who acts so: the database answers the others, and is told as ready to them."""
    wrong = replace(place, database_roles={"seller": "stranger", "boss": 'o"dd; boss'})
    async with opened(wrong) as gateway:
        for _ in range(2 * FAILURES):
            assert (await ask(gateway, ANN, "execute_query", sql=COUNT))["error"]["code"] == "CONNECTION_ERROR"
            assert "error" in await ask(gateway, ANN, "describe_table", table_name="sales.orders")
        assert (await rows(gateway, BOSS))[0][0] == 300
        assert "error" not in await ask(gateway, BOSS, "describe_table", table_name="sales.orders")
        assert (await ask(gateway, BOSS, "list_databases"))["databases"][0]["status"] == "ready"


async def test_the_doctor_tells_what_does_not_hold(place):
    doubtful = replace(place, database_roles={**place.database_roles, "seller": "stranger"})
    async with opened(doubtful) as gateway:
        found = {each.subject: each for each in await gateway.database().doctor()}
    assert "stranger" in found["delegation_role"].message
    assert "sales.leaky" in found["row_security_views"].message
    assert "delegation_login" not in found


async def test_what_the_doctor_tells_of_roles_that_callers_act_as_is_closed_in_those_roles(place, server):
    made = "CREATE MATERIALIZED VIEW sales.frozen AS SELECT * FROM sales.orders; ALTER ROLE seller BYPASSRLS;"
    await server.run(f"{made} GRANT SELECT ON sales.frozen TO seller", place.database)
    try:
        async with opened(place) as gateway:
            for subject in ("row_security_materialized", "bypassrls"):
                found = {each.subject: each for each in await gateway.database().doctor()}
                assert "seller" in found[subject].remedy
                assert 'REVOKE "seller"' not in found[subject].remedy
                await server.run(found[subject].remedy, place.database)
                left = {each.subject for each in await gateway.database().doctor()}
                assert subject not in left
    finally:
        await server.run("ALTER ROLE seller NOBYPASSRLS; DROP MATERIALIZED VIEW sales.frozen", place.database)


async def test_may_tells_as_whom_the_server_acts(place):
    from dragoman.cli.may import _ask, _lines

    configuration = Configuration(databases={place.name: place}, roles=roles_of(place))
    lines = [*_lines(await _ask(configuration, ANN, place.name, None))]
    assert '  acts as role seller, app.tenant a, app.caller of a of ["sellers"]' in lines
    nobody = await _ask(configuration, caller(None), place.name, COUNT)
    assert (nobody["allowed"], nobody["code"]) == (False, "PERMISSION_DENIED")
    lacking = await _ask(configuration, caller(None), place.name, None)
    assert "'tenant'" in lacking["databases"][place.name]["acts_as"]["lacks"]
    assert "  acts as role seller" in [*_lines(lacking)]


async def test_settings_alone_tell_who_asks(place, server, database_name):
    """Whoever signs in reads the table, and the policy decides by the caller's settings."""
    connection = await asyncpg.connect(server.address(database_name))
    await connection.execute(
        f"GRANT USAGE ON SCHEMA sales, hr TO {LOGIN}; GRANT SELECT ON sales.orders, hr.salaries TO {LOGIN}"
    )
    await connection.close()
    alone = replace(place, identity="session", database_roles={}, pool_size=1)
    async with Gateway.open([alone]) as gateway:
        for _ in range(2):
            assert await rows(gateway, ANN) == [[100, "a", "a", LOGIN]]
            assert await rows(gateway, BOB) == [[200, "b", "b", LOGIN]]
        with pytest.raises(PermissionDenied):
            await rows(gateway, Principal("nobody"))
        found = {each.subject: each for each in await gateway.database().doctor()}
        assert "hr.salaries" in found["delegation_open"].message


async def test_policies_filters_and_the_servers_rights_hold_together(place):
    """A filter of the gateway's narrows what the server leaves."""
    grants = (Grant(database=place.name, tables=("sales.orders",), filter="total > 150", key="roles.seller.grants.0"),)
    seller = Role(name="seller", groups=frozenset({"sellers"}), grants=grants)
    async with opened(place, seller=seller) as gateway:
        assert await rows(gateway, ANN) == [[50, "a", "a", "seller"]]
        assert (await rows(gateway, BOSS))[0][0] == 300


async def test_a_reload_takes_other_roles(place):
    async with opened(place) as gateway:
        assert (await rows(gateway, ANN))[0][0] == 100
        changed = replace(place, database_roles={"seller": 'o"dd; boss'})
        roles = roles_of(place)
        await gateway.reload(replace(gateway.configuration, databases={place.name: changed}, roles=roles))
        assert (await rows(gateway, ANN))[0] == [300, "a", "b", 'o"dd; boss']
        with pytest.raises(UnknownDatabase):
            await rows(gateway, BOSS)


@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ('identity = "role"', "databases.shop.identity: database_roles names no role"),
        ('identity = "role"\ndatabase_roles = { sellr = "seller" }', "Did you mean seller?"),
        ('identity = "role"\ndatabase_roles = { seller = "NONE" }', "cannot be called 'NONE'"),
        ('identity = "user"', "postgres cannot keep the rights of callers by identity = 'user'"),
        ('identity = "session"', "databases.shop.identity: no value in session identifies"),
        ('identity = "session"\nsession = { role = "{user}" }', "databases.shop.session.role: not a setting"),
        ('identity = "session"\nsession = { "a.b; RESET ROLE" = "x" }', "not a setting"),
        ('identity = "session"\nsession = { "a.b" = "{claim.tenant}" }', "in braces"),
        ('identity = "rule"', "identity"),
    ],
)
async def test_what_cannot_be_stops_the_start(tmp_path, keys, told):
    (tmp_path / "dragoman.toml").write_text(
        f'[databases.shop]\nurl = "postgresql://nobody@127.0.0.1:1/shop"\n{keys}\n'
        '[roles.seller]\ngroups = ["sellers"]\n[[roles.seller.grants]]\ndatabase = "shop"\ntables = ["sales.*"]\n'
    )
    with pytest.raises(ConfigurationError) as raised:
        async with Gateway.open(load(tmp_path / "dragoman.toml", environ={}, folder=tmp_path)):
            pass
    assert told in str(raised.value.as_dict())
    assert "dragoman.toml" in raised.value.message
