"""What the doctor finds, of users with and without rights, on a server with rules for its access control.

One of its catalogs does not work, which must keep nobody from the others.
"""

import json

import pytest
from dragoman import ConnectionFailed, PermissionDenied, Scope
from dragoman_trino import doctor
from dragoman_trino.client import Client
from dragoman_trino.doctor import examine
from dragoman_trino.inspector import TrinoInspector
from dragoman_trino.testing.fixtures import start_server
from dragoman_trino.testing.server import CATALOGS, free_port

RULES = {
    "catalogs": [
        {"user": "admin|acting", "allow": "all"},
        {"user": "gateway|reader", "catalog": "memory|tpch|broken", "allow": "read-only"},
    ],
    "tables": [
        {"user": "admin|acting|gateway|reader", "schema": "hidden", "privileges": []},
        {"user": "admin", "privileges": ["SELECT", "INSERT", "DELETE", "UPDATE", "OWNERSHIP"]},
        {"user": "acting|gateway|reader", "privileges": ["SELECT"]},
    ],
    "queries": [
        {"user": "gateway", "allow": ["execute"]},
        {"user": "admin|acting|reader", "allow": ["execute", "view", "kill"]},
    ],
    "system_session_properties": [
        {"user": "gateway", "property": "query_max_.*", "allow": True},
        {"user": "gateway", "allow": False},
        {"allow": True},
    ],
    "impersonation": [{"original_user": "acting", "new_user": ".*", "allow": True}],
    "procedures": [{"user": "gateway", "privileges": []}, {"privileges": ["EXECUTE", "GRANT_EXECUTE"]}],
}
BROKEN = {"connector.name": "tpch", "tpch.splits-per-node": "0"}


@pytest.fixture(scope="module")
async def ruled_server(anyio_backend):
    """A server whose users have different rights; `memory.shop` has a table."""
    server = start_server(
        catalogs={**CATALOGS, "broken": BROKEN},
        files={
            "access-control.properties": "access-control.name=file\nsecurity.config-file={etc}/rules.json\n",
            "rules.json": json.dumps(RULES),
        },
    )
    await server.run("CREATE SCHEMA memory.shop", "CREATE TABLE memory.shop.orders (id bigint)")
    yield server
    server.stop()


async def findings(server, user, **settings):
    database = server.configure("memory", "shop", user=user, **settings)
    client = Client(database)
    try:
        return {finding.subject: finding for finding in await examine(client, database)}
    finally:
        await client.aclose()


async def counted(server):
    """What there is: tables, catalogs, queries that were ended by others."""
    tables = await server.run("SELECT table_schema, table_name FROM memory.information_schema.tables")
    catalogs = await server.run("SELECT catalog_name FROM system.metadata.catalogs")
    ended = "SELECT count(*) FROM system.runtime.queries WHERE error_code IN ('ADMINISTRATIVELY_KILLED')"
    return sorted(tables), sorted(catalogs), await server.run(ended)


async def test_a_user_that_may_only_read_is_found_to(ruled_server):
    assert (await findings(ruled_server, "gateway")).keys() == {"no_authentication"}


async def test_a_reader_without_other_rules_may_watch_and_set_but_not_write(ruled_server):
    await ruled_server.run("SELECT 1")
    found = await findings(ruled_server, "reader")
    assert found.keys() == {"kill_queries", "other_users_queries", "session_properties", "no_authentication"}
    assert {finding.severity for finding in found.values()} == {"warning"}


async def test_write_access_is_told_with_the_rule_that_closes_it(ruled_server):
    found = (await findings(ruled_server, "admin"))["write_access"]
    assert found.severity == "danger"
    assert "create tables in memory.shop, memory.default" in found.message
    assert "insert into memory.shop.orders" in found.message
    assert '{"user": "admin", "catalog": "memory", "allow": "read-only"}' in found.remedy


async def test_impersonation_is_told(ruled_server):
    found = await findings(ruled_server, "acting")
    assert found["impersonation"].severity == "danger"
    assert "impersonation" not in await findings(ruled_server, "admin")


async def test_without_access_control_catalogs_may_be_created(trino_server):
    found = await findings(trino_server, "anybody")
    assert (found["create_catalogs"].severity, found["write_access"].severity) == ("danger", "danger")
    assert [finding.severity for finding in found.values()] == sorted(finding.severity for finding in found.values())


async def test_looking_changes_nothing(trino_server):
    before = await counted(trino_server)
    await findings(trino_server, "anybody")
    assert await counted(trino_server) == before


async def test_many_schemas_and_tables_are_not_all_tried(trino_server, monkeypatch):
    monkeypatch.setattr(doctor, "MOST_TRIED", 1)
    monkeypatch.setattr(doctor, "SHOWN", 1)
    async with trino_server.schema() as schema:
        await trino_server.run("CREATE TABLE a (id bigint)", "CREATE TABLE b (id bigint)", schema=schema)
        database = trino_server.configure(*schema.split("."))
        client = Client(database)
        found = {finding.subject: finding for finding in await examine(client, database)}
        await client.aclose()
    assert found["write_access"].message.count(f"{schema}.") == 1
    assert " more" not in found["write_access"].message


async def test_looking_leaves_places_to_the_callers(trino_server):
    class Counting(Client):
        now = most = 0

        async def rows(self, sql, *, timeout=30.0, off=()):
            self.now += 1
            self.most = max(self.most, self.now)
            try:
                return await super().rows(sql, timeout=timeout, off=off)
            finally:
                self.now -= 1

    database = trino_server.configure("memory", "default")
    client = Counting(database)
    await examine(client, database)
    await client.aclose()
    assert client.most == doctor.AT_ONCE < database.pool_size


async def test_a_user_the_server_does_not_know_is_an_error(ruled_server):
    with pytest.raises(PermissionDenied):
        await findings(ruled_server, "nobody")


async def test_a_server_that_is_down_is_an_error(ruled_server):
    with pytest.raises(ConnectionFailed):
        await findings(ruled_server, "admin", port=free_port())


async def inspected(server, user, **settings):
    database = server.configure("memory", "shop", user=user, **settings)
    client = Client(database)
    inspector = TrinoInspector(database, client)
    try:
        return await inspector.schemas(), await inspector.tables(Scope())
    finally:
        await client.aclose()


@pytest.mark.parametrize("user", ["admin", "gateway"])
async def test_a_catalog_that_fails_is_named_and_the_others_are_told(ruled_server, user):
    schemas, inspection = await inspected(ruled_server, user)
    assert {"memory", "tpch"} <= {schema.catalog for schema in schemas}
    assert {"memory.shop.orders", "tpch.tiny.nation"} <= {str(table.relation) for table in inspection.tables}
    (notice,) = inspection.notices
    assert notice.startswith("Catalog broken (tpch) could not be read: ")


async def test_catalogs_that_are_not_configured_are_not_asked(ruled_server):
    schemas, inspection = await inspected(ruled_server, "gateway", schemas=("shop", "tpch.tiny"))
    assert {schema.catalog for schema in schemas} == {"memory", "tpch"}
    assert inspection.notices == ()
