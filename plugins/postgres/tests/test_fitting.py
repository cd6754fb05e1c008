"""A part of a table is used like the table: with the schema before its columns, and its key alone in GROUP BY."""

from dataclasses import replace

import pytest
from dragoman import DragomanError, Gateway, Principal
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.model import DeclaredKey

SCHEMA = """
DROP SCHEMA IF EXISTS public CASCADE;
CREATE SCHEMA public;
CREATE TYPE mood AS ENUM ('good', 'bad');
CREATE TABLE people (id int PRIMARY KEY, name varchar(40), mood mood, doc json, "Odd ""name" text, ssn text);
CREATE TABLE bills (id int PRIMARY KEY, person int REFERENCES people, total numeric(10, 2), at timestamp);
CREATE TABLE lines (bill int, place int, name text, PRIMARY KEY (bill, place));
CREATE TABLE parts (id int, bill int, place int, name text, ssn text);
CREATE TABLE notes (id int PRIMARY KEY, total int, ssn text);
CREATE TABLE old_notes () INHERITS (notes);
CREATE TABLE counts (id bigint PRIMARY KEY, total int, ssn text);
INSERT INTO people VALUES (1, 'Ann', 'good', '{"a": 1}', 'x', '9'), (2, 'Ann', 'bad', '{}', 'y', '9'),
    (3, 'Bob', NULL, NULL, NULL, '9');
INSERT INTO bills VALUES (1, 1, 10, '2024-01-01'), (2, 1, 5, '2024-02-01'), (3, 2, 7, '2024-02-02'), (4, NULL, 1, NULL);
INSERT INTO lines VALUES (1, 1, 'a'), (1, 2, 'b'), (2, 1, 'c');
INSERT INTO parts VALUES (1, 1, 1, 'p'), (2, 1, 1, 'q'), (3, 2, 1, 'r'), (4, 2, 9, 's');
INSERT INTO notes VALUES (1, 10), (2, 20);
INSERT INTO old_notes VALUES (1, 5);
INSERT INTO counts VALUES (9007199254740992, 1), (9007199254740993, 2);
"""
ROLES = {
    "whole": {},
    "filtered": {"filter": "true"},
    "masked": {"masks": {"*.ssn": "null"}},
    "hiding": {"deny_columns": ("*.ssn",)},
    "both": {"filter": "true", "masks": {"*.ssn": "null"}},
}
GROUPED = """
SELECT p.id, p.name, sum(b.total) FROM people p JOIN bills b ON b.person = p.id GROUP BY p.id ORDER BY 3 DESC
SELECT people.id, name, mood, count(*) FROM people LEFT JOIN bills ON person = people.id GROUP BY people.id ORDER BY 1
SELECT id, name, mood FROM people GROUP BY id HAVING name <> 'Bob' ORDER BY name, id
SELECT upper(p.name), count(b.id) n FROM people p LEFT JOIN bills b ON b.person = p.id GROUP BY p.id ORDER BY n, p.name
SELECT p.id, json_agg(p.doc), max(p.name) FROM people p JOIN bills b ON b.person = p.id GROUP BY p.id ORDER BY p.id
SELECT p.id, p."Odd ""name" FROM people p GROUP BY (p.id) ORDER BY 1
SELECT "Ü".id, "Ü".name, 'ü' FROM people "Ü" GROUP BY "Ü".id ORDER BY "Ü".id
SELECT b.*, count(*) FROM bills b JOIN lines l ON l.bill = b.id GROUP BY b.id ORDER BY b.id
SELECT p.name, b.at, min(place) FROM people p, bills b, lines WHERE person = p.id GROUP BY p.id, b.id ORDER BY b.id
SELECT l.bill, l.place, l.name FROM lines l JOIN parts USING (bill, place) GROUP BY l.place, l.bill ORDER BY 1, 2
SELECT date_trunc('month', b.at), p.name FROM people p JOIN bills b ON b.person = p.id GROUP BY 1, p.id ORDER BY 1, 2
SELECT p.name, rank() OVER (ORDER BY p.name, p.id) FROM people p GROUP BY p.id ORDER BY 2
SELECT id, (SELECT count(*) FROM bills b WHERE b.person = p.id AND p.name = 'Ann') FROM people p GROUP BY id ORDER BY id
SELECT * FROM (SELECT p.id, p.name, count(*) FROM people p GROUP BY p.id) x ORDER BY 1
WITH x AS (SELECT p.id, p.name FROM people p GROUP BY p.id) SELECT * FROM x ORDER BY 1
SELECT p.name FROM people p GROUP BY p.id UNION ALL SELECT name FROM lines l GROUP BY bill, place ORDER BY 1
SELECT person, p.id, p.name, count(*) FROM bills b JOIN people p ON p.id = b.person GROUP BY person, p.id ORDER BY p.id
SELECT id, count(*) FROM people JOIN (VALUES (1), (2)) v(id) USING (id) GROUP BY id ORDER BY id
SELECT id, name, count(*) FROM people JOIN (VALUES (1), (1), (2)) v(id) USING (id) GROUP BY id ORDER BY id
SELECT public.people.id, public.people.name FROM public.people GROUP BY public.people.id ORDER BY 1
SELECT name, count(*) FROM people GROUP BY ROLLUP (name) ORDER BY 1
SELECT p.id AS person, p.name, count(*) FROM people p JOIN bills b ON b.person = p.id GROUP BY 1 ORDER BY 1
SELECT p.name, p.id AS "Person" FROM people p GROUP BY "Person" ORDER BY 2
SELECT upper(p.name), p.id, b.id AS bill, b.at FROM people p JOIN bills b ON person = p.id GROUP BY 2, bill ORDER BY 3
SELECT bill AS b, place, name, count(*) FROM lines GROUP BY (1), (b, place) ORDER BY 1, 2
SELECT l.bill, l.place, l.name FROM lines l GROUP BY (l.place, l.bill) ORDER BY 1, 2
SELECT count(*), p.id, p.name FROM people p GROUP BY 2 ORDER BY 2
SELECT $$ü$$ || people.name FROM people GROUP BY people.id ORDER BY people.id
SELECT id, sum(total), count(*) FILTER (WHERE total > 5) FROM notes GROUP BY id ORDER BY id
SELECT id, pg_catalog.sum(total) FROM counts JOIN (VALUES (9007199254740992::float8)) v(id) USING (id) GROUP BY id
SELECT id, EXISTS (SELECT * FROM bills WHERE person = people.id) FROM people GROUP BY id ORDER BY id
SELECT id, (SELECT doc FROM (VALUES ('x')) v(doc)) FROM people GROUP BY id ORDER BY id
SELECT id, (SELECT max(total) FROM bills WHERE p.mood = 'bad' AND person = p.id) FROM people p GROUP BY id ORDER BY id
SELECT id, (SELECT sum(b.total + length(p.name)) FROM bills b WHERE person = p.id) FROM people p GROUP BY id ORDER BY id
SELECT id, sum(count(*)) OVER (ORDER BY p.name), max(length(p.name)) OVER () FROM people p GROUP BY id ORDER BY id
SELECT id, sum(sum(total)) OVER (ORDER BY at) FROM bills GROUP BY id ORDER BY id
"""
QUALIFIED = """
SELECT public.people.name FROM public.people ORDER BY public.people.id
SELECT public.people.name FROM people, bills b GROUP BY public.people.id ORDER BY public.people.id
SELECT public.bills.* FROM public.bills, public.people WHERE public.people.id = person ORDER BY public.bills.id
SELECT public . "people" . name, 'ü' FROM public.people WHERE "public".people.id = 1
SELECT (SELECT max(total) FROM public.bills WHERE public.bills.person = public.people.id) FROM public.people ORDER BY id
"""
REFUSED = """
SELECT bill, name, count(*) FROM lines GROUP BY bill
SELECT name, mood FROM people GROUP BY name
SELECT x.id, x.name FROM people AS x(key, id, name) GROUP BY x.id
SELECT place, l.name FROM parts LEFT JOIN lines l USING (bill, place) GROUP BY place, bill
SELECT bill, place, l.name FROM lines l NATURAL RIGHT JOIN (SELECT bill, place FROM parts) x GROUP BY bill, place
SELECT p.name, count(*) FROM people p GROUP BY GROUPING SETS ((p.id), ())
SELECT p.id AS total, p.name FROM people p, bills b GROUP BY total
SELECT p.id AS x, p.id + 1 AS x, p.name FROM people p GROUP BY x
SELECT p.*, p.id FROM people p, bills GROUP BY 2
SELECT p.id, p.name FROM people p GROUP BY ROW(p.id)
SELECT p.id, p.name FROM people p GROUP BY 3
SELECT p.name, p.id + 0 FROM people p GROUP BY 2
SELECT public.people.id FROM public.people p
SELECT (SELECT public.people.name FROM bills AS people LIMIT 1) FROM public.people p
SELECT public.bills.id FROM public.people
SELECT public.p.id FROM people p
"""


def roles(**limits):
    return {
        name: Role(
            name=name,
            principals=frozenset({name}),
            grants=(Grant(database="db", tables=("public.*",), key=f"roles.{name}.grants.0", **each),),
        )
        for name, each in limits.items()
    }


@pytest.fixture
async def database(server, database_name, admin):
    await admin.execute(SCHEMA)
    return server.configure(database_name, name="db")


@pytest.fixture
async def gateway(database):
    async with Gateway.open(Configuration(databases={"db": database}, roles=roles(**ROLES))) as opened:
        yield opened


async def ask(gateway, role, sql):
    answer = await gateway.query("db", sql, principal=Principal(role, subject=role))
    return [column.name for column in answer.columns], answer.rows


async def test_a_part_of_all_rows_answers_as_its_table_does(gateway, subtests):
    for sql in filter(None, (GROUPED + QUALIFIED).splitlines()):
        names, rows = await ask(gateway, "whole", sql)
        for role in ROLES:
            with subtests.test(role=role, sql=sql):
                assert rows
                assert await ask(gateway, role, sql) == (names, rows)


async def test_what_a_table_refuses_its_part_refuses(gateway, subtests):
    for sql in filter(None, REFUSED.splitlines()):
        for role in ROLES:
            with subtests.test(role=role, sql=sql), pytest.raises(DragomanError):
                await ask(gateway, role, sql)


async def test_a_name_that_means_another_relation_inside_is_left_as_it_is(gateway):
    sql = "SELECT (SELECT public.people.name FROM (VALUES ('inner')) people(name)) FROM public.people"
    assert (await ask(gateway, "whole", sql))[1] == [["Ann"], ["Ann"], ["Bob"]]
    with pytest.raises(DragomanError, match="people"):
        await ask(gateway, "filtered", sql)


async def test_a_masked_key_stands_for_no_other_column(database):
    masked = roles(masked={"masks": {"people.id": "0"}})
    async with Gateway.open(Configuration(databases={"db": database}, roles=masked)) as gateway:
        with pytest.raises(DragomanError, match="GROUP BY"):
            await ask(gateway, "masked", "SELECT p.id, p.name FROM people p GROUP BY p.id")


async def test_a_key_that_only_the_configuration_declares_stands_for_no_other_column(database):
    declared = replace(database, keys=(DeclaredKey(table="parts", columns=("bill",)),))
    async with Gateway.open(Configuration(databases={"db": declared}, roles=roles(**ROLES))) as gateway:
        for role in ROLES:
            with pytest.raises(DragomanError, match="GROUP BY"):
                await ask(gateway, role, "SELECT bill, name, count(*) FROM parts GROUP BY bill")


async def test_a_key_of_a_table_with_heirs_stands_for_no_other_column(gateway, subtests):
    """Two rows may agree in it. Postgres itself takes the other columns of any of them."""
    for role in set(ROLES) - {"whole"}:
        with subtests.test(role=role), pytest.raises(DragomanError, match="GROUP BY"):
            await ask(gateway, role, "SELECT id, total FROM notes GROUP BY id")


async def test_the_key_of_a_partitioned_table_stands_for_its_other_columns(database, server, gateway):
    await server.run(
        "CREATE TABLE days (id int PRIMARY KEY, name text, ssn text) PARTITION BY RANGE (id);"
        "CREATE TABLE days_of_spring PARTITION OF days FOR VALUES FROM (1) TO (90);"
        "INSERT INTO days VALUES (1, 'a'), (2, 'a')",
        database.database,
    )
    for role in ROLES:
        assert (await ask(gateway, role, "SELECT name FROM days GROUP BY id"))[1] == [["a"], ["a"]]
