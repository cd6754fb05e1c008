"""What a role could do is found on real servers, and the SQL told with it closes it."""

import re
from collections.abc import AsyncGenerator
from typing import NamedTuple

import asyncpg
import pytest
from dragoman import ConnectionFailed, Database, Finding, Gateway, Secret
from dragoman_postgres.doctor import examine, settings
from dragoman_postgres.doctor.roles import minimal_role
from dragoman_postgres.doctor.settings import is_local
from dragoman_postgres.testing import Server

SHOP = """
CREATE SCHEMA app;
CREATE TABLE public.orders (id integer PRIMARY KEY, note text);
CREATE TABLE app.notes (id integer, body text);
CREATE SEQUENCE app.numbers;
CREATE VIEW app.recent AS SELECT id FROM app.notes;
CREATE FUNCTION app.promote() RETURNS void LANGUAGE sql SECURITY DEFINER AS 'UPDATE app.notes SET body = NULL';
CREATE FUNCTION app.plain() RETURNS integer LANGUAGE sql VOLATILE AS 'SELECT 1';
CREATE FUNCTION app.stored() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN RETURN NEW; END';
REVOKE EXECUTE ON FUNCTION app.promote() FROM PUBLIC;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
CREATE FOREIGN DATA WRAPPER nothing;
CREATE SERVER elsewhere FOREIGN DATA WRAPPER nothing;
CREATE FOREIGN TABLE app.remote (id integer) SERVER elsewhere;
CREATE FOREIGN TABLE app.program (id integer) SERVER elsewhere OPTIONS (program 'true');
"""


class Bench(NamedTuple):
    """A database and a role that may connect to it, nothing more."""

    server: Server
    database: Database
    role: str

    async def run(self, script: str) -> None:
        """Run statements as the administrator; `me` stands for the role."""
        await self.server.run(re.sub(r"\bme\b", f'"{self.role}"', script), self.database.name)

    async def findings(self, **settings) -> list[Finding]:
        database = self.server.configure(self.database.name, user=self.role, password=PASSWORD, **settings)
        return await examine(database)

    async def dangers(self) -> list[Finding]:
        return [finding for finding in await self.findings() if finding.severity == "danger"]


PASSWORD = Secret("planted-4711")


@pytest.fixture(scope="module")
async def shop(server: Server, database_name: str) -> Database:
    await server.run(SHOP, database_name)
    return server.configure(database_name)


@pytest.fixture
async def bench(server: Server, shop: Database) -> AsyncGenerator[Bench]:
    bench = Bench(server, shop, f"odd {shop.name}")
    await bench.run(f"CREATE ROLE me LOGIN PASSWORD '{PASSWORD.reveal()}'; CREATE ROLE grp")
    yield bench
    await bench.run("REASSIGN OWNED BY me, grp TO CURRENT_USER; DROP OWNED BY me, grp; DROP ROLE me, grp")


GROUP = "GRANT grp TO me"
PROMOTE = "GRANT USAGE ON SCHEMA app TO me; GRANT EXECUTE ON FUNCTION app.promote() TO me"
ON_DATABASE = "DO $$ BEGIN EXECUTE format('GRANT CREATE ON DATABASE %I TO me', current_database()); END $$"
# What is granted, the subject of what is found, and words of its message.
DANGERS = [
    ("ALTER ROLE me CREATEROLE", "createrole", "create roles"),
    ("ALTER ROLE me CREATEDB", "createdb", "create databases"),
    ("ALTER ROLE me REPLICATION", "replication", "by replication"),
    ("ALTER ROLE me BYPASSRLS", "bypassrls", "row-level security"),
    (f"{GROUP}; ALTER ROLE grp SUPERUSER", "superuser", "member of grp"),
    ("GRANT pg_read_server_files TO me", "pg_read_server_files", "files"),
    ("GRANT pg_execute_server_program TO me", "pg_execute_server_program", "programs"),
    (f"{GROUP}; GRANT pg_write_server_files TO grp", "pg_write_server_files", "files"),
    ("GRANT pg_signal_backend TO me", "pg_signal_backend", "sessions of others"),
    ("GRANT INSERT, UPDATE ON orders TO me", "write_grants", "INSERT, UPDATE on public.orders"),
    ("GRANT DELETE ON app.notes TO PUBLIC", "write_grants", "DELETE on app.notes"),
    ("GRANT UPDATE (body) ON app.notes TO me", "write_grants", "UPDATE on app.notes"),
    (f"{GROUP}; GRANT TRUNCATE ON orders TO grp", "write_grants", "TRUNCATE"),
    ("GRANT UPDATE ON pg_catalog.pg_class TO me", "write_grants", "pg_catalog.pg_class"),
    ("GRANT USAGE ON SEQUENCE app.numbers TO me", "sequence_grants", "USAGE on app.numbers"),
    ("ALTER TABLE app.notes OWNER TO me", "ownership", "table app.notes"),
    ("ALTER FUNCTION app.plain() OWNER TO me", "ownership", "function app.plain()"),
    (f"{GROUP}; ALTER VIEW app.recent OWNER TO grp", "ownership", "app.recent"),
    ("GRANT CREATE ON SCHEMA app TO me", "schema_create", "schema app"),
    ("GRANT CREATE ON SCHEMA public TO PUBLIC", "schema_create", "as everybody may"),
    (ON_DATABASE, "database_create", "database"),
    ("GRANT CREATE ON TABLESPACE pg_default TO me", "tablespace_create", "pg_default"),
    ("GRANT EXECUTE ON FUNCTION pg_read_file(text) TO me", "server_files", "pg_read_file"),
    ("GRANT EXECUTE ON FUNCTION lo_export(oid, text) TO me", "server_files", "lo_export"),
    ("GRANT EXECUTE ON FUNCTION pg_reload_conf() TO me", "administration", "pg_reload_conf"),
    (PROMOTE, "security_definer", "app.promote"),
    ("GRANT USAGE ON FOREIGN DATA WRAPPER nothing TO me", "foreign_data_wrappers", "nothing"),
    ("GRANT SELECT ON app.program TO me", "foreign_tables", "program"),
]  # fmt: skip


async def test_a_role_that_may_only_read_is_in_no_danger(bench: Bench):
    await bench.run("GRANT USAGE ON SCHEMA app TO me; GRANT SELECT ON orders, app.notes, app.recent TO me")
    assert await bench.dangers() == []


@pytest.mark.parametrize(("granted", "subject", "words"), DANGERS, ids=[f"{d[1]}: {d[0][:40]}" for d in DANGERS])
async def test_a_right_is_found_and_the_sql_told_with_it_closes_it(
    bench: Bench, granted: str, subject: str, words: str
):
    await bench.run(granted)
    found = await bench.dangers()
    (danger,) = [finding for finding in found if finding.subject == subject]
    assert words in danger.message
    for finding in found:
        await bench.run(finding.remedy)
    assert await bench.dangers() == []


ORDINARY = """
GRANT USAGE ON SCHEMA app TO me;
CREATE TYPE app.mood AS ENUM ('sad', 'ok');
CREATE TYPE app.pair AS (a integer, b text);
CREATE DOMAIN app.percent AS integer CHECK (value <= 100);
CREATE TYPE app.span AS RANGE (subtype = float8);
CREATE TYPE app.moods AS RANGE (subtype = app.mood);
CREATE FUNCTION app.half(n integer) RETURNS integer LANGUAGE plpgsql AS 'BEGIN RETURN n / 2; END';
CREATE AGGREGATE app.total (integer) (sfunc = int4pl, stype = integer);
CREATE OPERATOR app.@@@ (rightarg = integer, function = app.half);
CREATE MATERIALIZED VIEW app.counted AS SELECT count(*) FROM app.notes;
"""


async def test_what_ordinary_databases_have_is_no_danger(bench: Bench):
    await bench.run(ORDINARY)
    assert await bench.dangers() == []


async def test_an_aggregate_of_functions_that_are_a_danger_is_one(bench: Bench):
    await bench.run("""
        GRANT USAGE ON SCHEMA app TO me;
        CREATE FUNCTION app.odd(integer, integer) RETURNS integer LANGUAGE internal AS 'int4pl';
        CREATE FUNCTION app.lent(integer, integer) RETURNS integer LANGUAGE sql SECURITY DEFINER AS 'SELECT 1';
        REVOKE EXECUTE ON FUNCTION app.odd(integer, integer), app.lent(integer, integer) FROM PUBLIC;
        CREATE AGGREGATE app.odds (integer) (sfunc = app.odd, stype = integer);
        CREATE AGGREGATE app.loans (integer) (sfunc = app.lent, stype = integer);
        CREATE AGGREGATE app.files (text) (sfunc = textcat, stype = text, initcond = '', finalfunc = pg_read_file);
    """)
    (danger,) = await bench.dangers()
    assert "app.odds" in danger.message
    assert "app.loans" in danger.message
    assert "app.files" in danger.message  # the role may not call pg_read_file itself
    await bench.run(danger.remedy)
    assert await bench.dangers() == []


async def test_everything_at_once_is_closed_by_what_is_told(bench: Bench):
    await bench.run("GRANT SELECT ON orders TO me")
    for granted, _, _ in DANGERS:
        if GROUP not in granted:
            await bench.run(granted)
    found = await bench.findings()
    assert {d[1] for d in DANGERS if GROUP not in d[0]} <= {finding.subject for finding in found}
    for finding in found:
        if ";" in finding.remedy:
            await bench.run(finding.remedy)
    left = {finding.subject for finding in await bench.findings()}
    assert left <= {"unlisted_functions"}
    reader = bench.server.configure(bench.database.name, user=bench.role, password=PASSWORD)
    async with Gateway.open([reader]) as gateway:
        assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[0]]


async def test_a_superuser_is_told_so_with_a_role_to_use_instead(server: Server, bench: Bench):
    findings = await examine(bench.database)
    assert [finding.subject for finding in findings if finding.severity == "danger"] == ["superuser"]
    remedy = next(finding.remedy for finding in findings if finding.subject == "superuser")
    assert remedy == minimal_role(bench.database)
    await server.run(remedy, bench.database.name)
    try:
        reader = server.configure(bench.database.name, user="dragoman_reader", password=Secret("..."))
        assert [finding for finding in await examine(reader) if finding.severity == "danger"] == []
        async with Gateway.open([reader]) as gateway:
            assert (await gateway.query(None, "SELECT count(*) FROM orders")).rows == [[0]]
    finally:
        await server.run("DROP OWNED BY dragoman_reader; DROP ROLE dragoman_reader", bench.database.name)


RLS = """
DROP TABLE IF EXISTS app.guarded CASCADE; CREATE TABLE app.guarded (id integer);
ALTER TABLE app.guarded ENABLE ROW LEVEL SECURITY; CREATE VIEW app.behind AS SELECT id FROM app.guarded;
CREATE VIEW app.seen AS SELECT id FROM app.behind; CREATE MATERIALIZED VIEW app.kept AS SELECT id FROM app.guarded
"""
WARNINGS = [
    ("GRANT pg_monitor TO me", "pg_monitor"),
    ("GRANT pg_read_all_settings TO me", "pg_read_all_settings"),
    ("ALTER DEFAULT PRIVILEGES IN SCHEMA app GRANT INSERT ON TABLES TO me", "default_privileges"),
    ("ALTER DEFAULT PRIVILEGES GRANT USAGE ON SEQUENCES TO PUBLIC", "default_privileges"),
    ("GRANT USAGE ON FOREIGN SERVER elsewhere TO me", "foreign_servers"),
    ("GRANT SELECT ON app.remote TO me", "foreign_tables"),
    (f"{RLS}; GRANT SELECT ON app.seen TO me", "row_security_views"),
    (f"{RLS}; GRANT SELECT (id) ON app.kept TO me", "row_security_materialized"),
    (f"{RLS}; ALTER TABLE app.guarded OWNER TO me", "row_security_owner"),
    ("ALTER ROLE me SET work_mem = '1GB'", "work_mem"),
    ("ALTER ROLE me SET row_security = off", "row_security"),
    ("ALTER ROLE me SET statement_timeout = 0", "statement_timeout"),
]


@pytest.mark.parametrize(("granted", "subject"), WARNINGS, ids=[w[0] for w in WARNINGS])
async def test_a_missing_limit_is_a_warning_with_the_sql_that_sets_it(bench: Bench, granted: str, subject: str):
    await bench.run(granted)
    (warning,) = [finding for finding in await bench.findings() if finding.subject == subject]
    assert warning.severity == "warning"
    await bench.run(warning.remedy)
    assert subject not in {finding.subject for finding in await bench.findings()}


async def test_what_everybody_may_do_on_a_fresh_server_is_a_warning(server: Server, bench: Bench):
    fresh = await server.create()
    findings = await examine(server.configure(fresh, user=bench.role, password=PASSWORD))
    await server.drop(fresh)
    warned = {finding.subject for finding in findings if finding.severity == "warning"}
    assert {"large_objects", "advisory_locks", "log_messages", "temporary_tables", "temp_file_limit"} <= warned


async def test_a_function_the_configuration_names_was_looked_at(bench: Bench):
    await bench.run(PROMOTE)
    findings = await bench.findings(allow_functions=frozenset({"app.promote", "app.plain"}))
    told = {finding.subject: finding for finding in findings}
    assert told["security_definer"].severity == "warning"
    assert "app.plain" in told["allowed_functions"].message


async def test_many_tables_are_closed_by_one_statement(bench: Bench):
    await bench.run("".join(f"CREATE TABLE app.t{n} (); GRANT INSERT ON app.t{n} TO me;" for n in range(20)))
    (danger,) = await bench.dangers()
    assert danger.remedy == f'REVOKE INSERT ON ALL TABLES IN SCHEMA "app" FROM "{bench.role}";'
    assert "and 15 more" in danger.message


async def test_functions_the_lists_do_not_have_are_a_note(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    from dataclasses import replace

    from dragoman_postgres.doctor import calls
    from dragoman_postgres.rules import load_allowed

    shipped = load_allowed()
    assert "unlisted_functions" not in {finding.subject for finding in await bench.findings()}
    monkeypatch.setattr(calls, "load_allowed", lambda: replace(shipped, functions=shipped.functions - {"lower", "sin"}))
    (note,) = [finding for finding in await bench.findings() if finding.subject == "unlisted_functions"]
    assert note.severity == "note"
    assert "lower, sin" in note.message
    monkeypatch.setattr(calls, "load_allowed", lambda: replace(shipped, functions=shipped.functions | {"nextval"}))
    (warning,) = [finding for finding in await bench.findings() if finding.subject == "changed_functions"]
    assert "nextval" in warning.message


async def test_a_check_the_role_may_not_make_is_a_note(bench: Bench):
    await bench.run("REVOKE SELECT ON pg_catalog.pg_foreign_table FROM PUBLIC")
    (note,) = [finding for finding in await bench.findings() if finding.subject == "not_checked"]
    await bench.run("GRANT SELECT ON pg_catalog.pg_foreign_table TO PUBLIC")
    assert note.severity == "note"
    assert "foreign tables" in note.message


async def test_users_functions_are_never_called_by_the_doctor(bench: Bench):
    await bench.run("""
        DROP SCHEMA IF EXISTS first CASCADE;
        CREATE SCHEMA first;
        GRANT USAGE ON SCHEMA first TO me;
        CREATE FUNCTION first.raised() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE 'taken over'; END $$;
        CREATE FUNCTION first.equal(oid, oid) RETURNS boolean LANGUAGE sql AS 'SELECT first.raised()';
        CREATE OPERATOR first.= (FUNCTION = first.equal, LEFTARG = oid, RIGHTARG = oid);
        CREATE FUNCTION first.pg_has_role(oid, oid, text) RETURNS boolean LANGUAGE sql AS 'SELECT first.raised()';
        ALTER ROLE me SET search_path = first, pg_catalog""")
    assert "not_checked" not in {finding.subject for finding in await bench.findings()}


STATE = """
SELECT (SELECT md5(string_agg(c::text, '' ORDER BY oid)) FROM pg_class c WHERE relkind <> 't'),
  (SELECT md5(string_agg(p::text, '' ORDER BY oid)) FROM pg_proc p),
  (SELECT md5(string_agg(r::text, '' ORDER BY oid)) FROM pg_authid r),
  (SELECT md5(string_agg(s::text, '')) FROM pg_db_role_setting s),
  (SELECT count(*) FROM pg_largeobject_metadata), (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')
"""


async def test_the_doctor_changes_nothing_and_leaves_no_connection(bench: Bench):
    admin = await asyncpg.connect(bench.server.address(bench.database.name))
    try:
        before = await admin.fetchrow(STATE)
        await bench.findings()
        assert await admin.fetchrow(STATE) == before
        assert await admin.fetchval("SELECT count(*) FROM pg_stat_activity WHERE usename = $1", bench.role) == 0
    finally:
        await admin.close()


async def test_no_password_and_no_address_is_told(bench: Bench):
    for finding in await bench.findings():
        told = finding.message + finding.remedy
        assert PASSWORD.reveal() not in told
        assert str(bench.database.host) not in told


async def test_a_server_that_is_not_there_is_a_connection_error(bench: Bench):
    with pytest.raises(ConnectionFailed):
        await examine(bench.server.configure(bench.database.name, host="127.0.0.1", port=1))


@pytest.mark.parametrize(
    ("host", "local"),
    [
        ("/run/postgresql", True),
        ("localhost", True),
        ("localhost:5433", True),
        ("127.0.0.1", True),
        ("127.8.8.8:1", True),
        ("::1", True),
        ("[::1]:5433", True),
        ("db.example", False),
        ("10.0.0.1:5432", False),
        ("localhost.example", False),
        ("2001:db8::1", False),
    ],
)
def test_a_host_is_this_machine_or_another(host: str, local: bool):
    assert is_local(host) == local


async def test_an_open_way_to_another_machine_is_a_danger(bench: Bench, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(settings, "is_local", lambda host: False)
    (danger,) = await bench.dangers()
    assert danger.subject == "not_encrypted"
    assert "sslmode=verify-full" in danger.remedy
