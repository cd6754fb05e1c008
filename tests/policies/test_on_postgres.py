"""The policies over PostgreSQL, whose own column privileges say what a statement reads."""

import asyncpg
import pytest
from dragoman import DragomanError, ExplainOptions, Gateway, Refused, TableNotFound
from dragoman.config import Configuration
from dragoman.tools import Toolbox

from .conftest import write_policy

SHOP = """
CREATE TABLE person (id int PRIMARY KEY, secret text, name text, born date);
CREATE TABLE visit (id int PRIMARY KEY, person_id int REFERENCES person, secret text, note text);
CREATE TABLE place (id int, title text);
INSERT INTO person VALUES (1, 's', 'Ada', '1815-12-10');
CREATE SCHEMA hr;
CREATE TABLE hr.payroll (id int PRIMARY KEY, amount numeric);
CREATE TABLE changed (relation regclass);
INSERT INTO changed VALUES ('person');
CREATE VIEW revealed AS SELECT id, secret AS plain FROM person;
CREATE VIEW twice AS SELECT plain AS x FROM revealed;
CREATE VIEW whole AS SELECT p AS row FROM person p;
CREATE MATERIALIZED VIEW kept AS SELECT id, upper(secret) AS loud FROM person;
CREATE VIEW journeys AS SELECT note FROM visit;
CREATE VIEW harmless AS SELECT id, name FROM person;
CREATE ROLE policy_reader LOGIN;
GRANT SELECT (id, name, born) ON person TO policy_reader;
GRANT SELECT (id, person_id, note) ON visit TO policy_reader;
GRANT SELECT ON place TO policy_reader;
"""
TOUCHING = [
    "SELECT secret FROM person",
    "SELECT p.secret FROM person p",
    "SELECT person.secret FROM public.person",
    'SELECT "secret" FROM ONLY person',
    "SELECT * FROM person",
    "TABLE person",
    "SELECT p FROM person p",
    "SELECT person FROM person",
    "SELECT p.* FROM person p",
    "SELECT (p).secret FROM person p",
    "SELECT (p).* FROM person p",
    "SELECT row(p.*) FROM person p",
    "SELECT to_json(p) FROM person p",
    "SELECT row_to_json(p) FROM person p",
    "SELECT to_jsonb(person.*) FROM person",
    "SELECT json_agg(p) FROM person p",
    "SELECT p::text FROM person p",
    "SELECT count(p) FROM person p",
    "SELECT array_agg(p ORDER BY id) FROM person p",
    "SELECT p IS NULL FROM person p",
    "SELECT p = q FROM person p, person q",
    "SELECT x.b FROM person AS x (a, b, c, d)",
    "SELECT x.name FROM person AS x (id, name, secret, d)",
    "SELECT x.id FROM person AS x (other, id)",
    "SELECT id FROM person WHERE secret = 's'",
    "SELECT id FROM person ORDER BY secret",
    "SELECT count(*) FROM person GROUP BY secret",
    "SELECT count(*) FILTER (WHERE secret IS NULL) FROM person",
    "SELECT DISTINCT ON (secret) id FROM person",
    "SELECT rank() OVER (ORDER BY secret) FROM person",
    "SELECT rank() OVER w FROM person WINDOW w AS (PARTITION BY secret)",
    "SELECT note FROM visit JOIN person USING (secret)",
    "SELECT note FROM visit NATURAL JOIN person",
    "SELECT j.a FROM (visit v JOIN person p ON p.secret = v.note) AS j (a)",
    "SELECT j.y FROM (person p CROSS JOIN place) AS j (x, y)",
    "SELECT x.y FROM (SELECT secret AS y FROM person) x",
    "SELECT x.y FROM person p, LATERAL (SELECT p.secret AS y) x",
    "SELECT x.y FROM person p CROSS JOIN LATERAL (VALUES (p.secret)) AS x (y)",
    "SELECT u FROM person p, unnest(ARRAY[p.secret]) AS u",
    "SELECT v FROM person p, jsonb_each_text(to_jsonb(p)) AS e (k, v)",
    "WITH x AS (SELECT * FROM person) SELECT id FROM x",
    "WITH x AS MATERIALIZED (TABLE person) SELECT id FROM x",
    "WITH person AS (SELECT * FROM person) SELECT id FROM person",
    "WITH RECURSIVE r AS (SELECT id, secret FROM person UNION SELECT id, secret FROM r) SELECT id FROM r",
    "SELECT (SELECT secret FROM person LIMIT 1)",
    "SELECT (SELECT p FROM person p LIMIT 1) IS NULL",
    "SELECT id FROM place WHERE EXISTS (SELECT 1 FROM person WHERE secret = title)",
    "SELECT ARRAY(SELECT secret FROM person)",
    "SELECT id IN (SELECT id FROM person WHERE secret > 'a') FROM place",
    "SELECT name FROM person UNION ALL SELECT secret FROM visit",
    "SELECT title FROM place EXCEPT (SELECT secret FROM person)",
    "SELECT CASE WHEN secret = 's' THEN 1 END FROM person",
    "SELECT coalesce(secret, name) FROM person",
    "SELECT string_agg(secret, ',') FROM person",
    "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY secret) FROM person",
    "SELECT id FROM person LIMIT (SELECT length(secret) FROM person LIMIT 1)",
    "SELECT GROUPING(secret) FROM person GROUP BY ROLLUP (secret)",
    "SELECT s.* FROM person p TABLESAMPLE SYSTEM (100), LATERAL (SELECT p.secret) s",
    "VALUES ((SELECT secret FROM person LIMIT 1))",
    'SELECT U&"s\\0065cret" FROM person',
    'SELECT secret::text COLLATE "C" FROM person',
    "SELECT name, id FROM person ORDER BY row(person.*)",
    "SELECT public.person.secret FROM public.person",
    "SELECT u.secret FROM (person CROSS JOIN place) AS u",
    "SELECT secret FROM place AS secret, person",
    "SELECT secret(person) FROM person",
    "SELECT (SELECT secret FROM place AS secret LIMIT 1) FROM person",
    "SELECT (SELECT p.secret FROM (person CROSS JOIN place AS p) AS u LIMIT 1) FROM person AS p",
    "SELECT person.id FROM person, (WITH person AS (SELECT 1 AS secret) SELECT secret FROM person) x"
    " ORDER BY person.secret",
    f"SELECT {'p' * 63}.secret FROM person AS {'p' * 70}",
]
BEHIND_VIEWS = [
    "SELECT plain FROM revealed",
    "SELECT x FROM twice",
    "SELECT r.id FROM place JOIN revealed r USING (id)",
    "SELECT * FROM whole",
    "SELECT loud FROM kept",
]
OF_THE_ENGINE = [
    "SELECT most_common_vals FROM pg_stats",
    "SELECT * FROM pg_catalog.pg_class",
    "SELECT column_name FROM information_schema.columns",
]
ANSWERED = [
    "SELECT id, name, born FROM person",
    "SELECT p.name FROM person AS p JOIN visit v ON v.person_id = p.id",
    "SELECT count(*) FROM person WHERE name = 'Ada'",
    "WITH x AS (SELECT id, name FROM person) SELECT * FROM x",
    "SELECT 'secret' AS secret",
    "SELECT name AS secret FROM person",
    "SELECT to_json(x) FROM (SELECT id, name FROM person) x",
    "SELECT title FROM place",
    "SELECT * FROM place NATURAL JOIN (SELECT id FROM person) p",
    "SELECT name FROM harmless",
]


@pytest.fixture(scope="module")
async def shop(server, anyio_backend):
    await server.run("DROP ROLE IF EXISTS policy_reader")
    name = await server.create(SHOP)
    yield server.configure(name)
    await server.drop(name)
    await server.run("DROP ROLE IF EXISTS policy_reader")


@pytest.fixture
async def guarded(shop, install):
    install("dragoman-column-policy")
    configuration = Configuration(databases={shop.name: shop}, policies={"columns": {"refuse": ["secret"]}})
    async with Gateway.open(configuration) as gateway:
        yield gateway


@pytest.fixture
async def reader(server, shop, anyio_backend):
    """A connection whose role may read everything but the secrets."""
    connection = await asyncpg.connect(server.address(shop.database, user="policy_reader"))
    yield connection
    await connection.close()


async def test_what_the_database_would_deny_is_refused(guarded: Gateway, reader):
    let_through, harmless = [], []
    for sql in TOUCHING:
        try:
            await reader.fetch(sql)
        except asyncpg.PostgresError as error:
            harmless += [] if isinstance(error, asyncpg.InsufficientPrivilegeError) else [(sql, str(error))]
        else:
            harmless.append((sql, "answered"))
        try:
            await guarded.query(None, sql)
        except DragomanError:
            continue
        let_through.append(sql)
    assert (let_through, harmless) == ([], [])


@pytest.mark.parametrize("sql", [*BEHIND_VIEWS, *OF_THE_ENGINE])
async def test_nothing_leads_to_the_column(sql: str, guarded: Gateway):
    with pytest.raises(Refused):
        await guarded.query(None, sql)


@pytest.mark.parametrize("sql", ANSWERED)
async def test_what_does_not_touch_the_column_is_answered(sql: str, guarded: Gateway):
    await guarded.query(None, sql)


@pytest.fixture
async def hiding(shop, install):
    install("dragoman-tagging-policy")
    options = {"hide": ["hr.*", "visit"], "tags": {"team": "growth"}}
    configuration = Configuration(databases={shop.name: shop}, policies={"tagging": options})
    async with Gateway.open(configuration) as gateway:
        yield gateway


async def test_hidden_relations_are_neither_told_nor_queried(hiding: Gateway):
    catalog = hiding.database().catalog
    names = {table.relation.name for table in (await catalog.snapshot()).tables if not table.system}
    assert names == {"person", "place", "revealed", "twice", "whole", "kept", "harmless", "journeys", "changed"}
    for sql in (
        "SELECT * FROM hr.payroll",
        "SELECT 1 FROM visit",
        'TABLE "hr"."payroll"',
        "SELECT relname FROM pg_class",
        "SELECT table_name FROM information_schema.tables",
    ):
        with pytest.raises(TableNotFound):
            await hiding.query(None, sql)
    assert (await hiding.query(None, "SELECT name FROM person")).rows == [["Ada"]]


TELLING = [
    "EXPLAIN SELECT * FROM journeys",
    "SELECT 'visit'::regclass::oid, pg_get_viewdef('journeys'::regclass)",
    "SELECT to_regclass('visit')",
    "SELECT has_table_privilege('visit', 'SELECT')",
    "SHOW search_path",
]


@pytest.mark.parametrize("sql", TELLING)
async def test_no_other_statement_tells_of_hidden_relations(hiding: Gateway, sql: str):
    with pytest.raises(Refused):
        await hiding.query(None, sql)


async def test_the_core_keeps_hidden_relations_out_of_plans_and_definitions(hiding: Gateway):
    toolbox = Toolbox(hiding)
    for form in ("text", "json"):
        plan = await hiding.explain(None, "SELECT * FROM journeys", options=ExplainOptions(format=form, verbose=True))
        assert plan.plan is None
        assert "visit " not in f"{plan.warnings} {plan.notices} "
    assert "Scan" in (await hiding.explain(None, "SELECT name FROM person")).plan
    described = await toolbox.call("describe_table", {"table_name": ["journeys", "person"], "detail": "full"})
    assert "FROM visit" not in described.text
    hidden, absent = [
        (await toolbox.call("execute_query", {"sql": f"SELECT * FROM {name}"})).text for name in ("visit", "vizit")
    ]
    assert hidden.replace("visit", "x") == absent.replace("vizit", "x")


async def test_the_server_sees_the_tags(hiding: Gateway):
    shown = await hiding.query(None, "SELECT current_setting('application_name') AS name")
    assert shown.rows == [["dragoman principal=local team=growth"]]


HIDE = """
from dragoman import PolicyPlugin, Restriction, Restrictor

class Hide(Restrictor):
    def restrict(self, table, dialect):
        return Restriction(hidden=True) if table.relation.schema == "hr" else None

class Hiding(PolicyPlugin):
    def restrictor(self, database, principal):
        return HIDE

HIDE = Hide()
plugin = Hiding()
"""


@pytest.fixture(params=["tagging", "hiding"])
async def narrow(request, shop, install, tmp_path, monkeypatch):
    """A gateway with a policy that hides the schema `hr`: by wrapping the inspector, or by restricting relations."""
    if request.param == "tagging":
        install("dragoman-tagging-policy")
        options = {"hide": ["hr.*"]}
    else:
        monkeypatch.syspath_prepend(write_policy(tmp_path / "site", "hiding", HIDE))
        options = {}
    async with Gateway.open(Configuration(databases={shop.name: shop}, policies={request.param: options})) as gateway:
        yield gateway


async def test_numbers_become_no_names_of_hidden_relations(narrow: Gateway, server, shop):
    connection = await asyncpg.connect(server.address(shop.database))
    number = await connection.fetchval("SELECT 'hr.payroll'::regclass::oid")
    await connection.close()
    found = await narrow.query(None, f"SELECT relation::text FROM changed UNION ALL SELECT '{number}'")
    assert [value for (value,) in found.rows] == ["person", str(number)]
    with pytest.raises(DragomanError):
        await narrow.query(None, f"SELECT relation FROM changed UNION ALL SELECT {number}")
