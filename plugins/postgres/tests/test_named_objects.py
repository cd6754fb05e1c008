"""Columns whose values are names of objects: numbers that a query mixes with them become no names of hidden objects."""

from dataclasses import replace
from itertools import product

import asyncpg
import pytest
from dragoman import Database, DragomanError, Gateway, Principal, UnsafeSql
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role

SCHEMA = """
CREATE SCHEMA shown;
CREATE SCHEMA zyx;
CREATE TABLE zyx.zyx_table (id int);
CREATE TYPE zyx.zyx_type AS ENUM ('a');
CREATE TEXT SEARCH CONFIGURATION zyx.zyx_configuration (COPY = english);
CREATE TEXT SEARCH DICTIONARY zyx.zyx_dictionary (TEMPLATE = simple);
CREATE FUNCTION zyx.zyx_function() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE DOMAIN shown.held AS regclass;
CREATE TYPE shown.pair AS (number int, relation shown.held);
CREATE TABLE shown.log (id int, relation regclass, called regproc, signature regprocedure, type regtype,
  space regnamespace, relations regclass[], own shown.held, pair shown.pair, search regconfig);
INSERT INTO shown.log VALUES (1, 'pg_class', 'now', 'now()', 'integer', 'pg_catalog', '{pg_class}', 'pg_class',
  '(1,pg_class)', 'english');
CREATE DOMAIN shown."odd()" AS regclass;
CREATE DOMAIN shown.a%(rest)s AS regclass;
CREATE TABLE shown.unusual (odd shown."odd()", long shown.a%(rest)s);
CREATE VIEW shown.latest AS SELECT * FROM shown.log;
CREATE VIEW shown.found AS SELECT id, to_tsvector('english', 'a cat') AS words FROM shown.log;
""".replace("%(rest)s", "b" * 62)  # the longest name: that of its array type is cut
NUMBERS = """
SELECT 'relations', oid::bigint FROM pg_class WHERE relname = 'zyx_table'
UNION SELECT 'types', oid FROM pg_type WHERE typname = 'zyx_type'
UNION SELECT 'functions', oid FROM pg_proc WHERE proname = 'zyx_function'
UNION SELECT 'schemas', oid FROM pg_namespace WHERE nspname = 'zyx'
UNION SELECT 'configurations', oid FROM pg_ts_config WHERE cfgname = 'zyx_configuration'
UNION SELECT 'dictionaries', oid FROM pg_ts_dict WHERE dictname = 'zyx_dictionary'
"""
COLUMNS = {
    "relation": "relations",
    "called": "functions",
    "signature": "functions",
    "type": "types",
    "space": "schemas",
    "own": "relations",
}
"""Of which objects the names are that the values of each column hold."""
TABLES = ("shown.log", "shown.latest")
MIXING = """
SELECT {column} FROM {table} UNION ALL SELECT {number}
SELECT {number} UNION ALL SELECT {column} FROM {table}
SELECT {column}::text FROM (SELECT {column} FROM {table} UNION ALL SELECT {number}) AS x
SELECT coalesce(NULLIF({column}, {column}), {number}) FROM {table}
SELECT CASE WHEN id > 1 THEN {column} ELSE {number} END FROM {table}
SELECT greatest({column}, {number}), least({column}, {number}) FROM {table}
SELECT ARRAY[{column}, {number}] FROM {table}
SELECT array_append(array_agg({column}), {number}) FROM {table}
SELECT array_agg({column}) || {number} FROM {table}
SELECT array_replace(array_agg({column}), {column}, {number}) FROM {table} GROUP BY {column}
SELECT lag({column}, 1, {number}) OVER () FROM {table}
SELECT x FROM {table}, LATERAL (VALUES ({column}), ({number})) AS v (x)
SELECT {column} FROM {table} FULL JOIN (SELECT {number} AS {column}) AS x USING ({column})
WITH RECURSIVE r AS (SELECT {column} FROM {table} UNION SELECT {number} FROM r) SELECT * FROM r
SELECT json_populate_record(NULL::{table}, json_build_object('{column}', '{number}'))
SELECT json_populate_record(l, json_build_object('{column}', '{number}')) FROM {table} AS l
SELECT ('(1,{number},{number},{number},{number},{number},{{{number}}})'::{table}).{column}
SELECT l FROM {table} AS l UNION ALL SELECT ROW(1,{number},{number},{number},{number},{number},NULL)
SELECT '{number}'::regclass, {column} FROM {table}
SELECT relations || {number} FROM {table}
SELECT relations || '{{{number}}}' FROM {table}
SELECT (pair).relation FROM {table} UNION ALL SELECT {number}
SELECT '(1,{number})'::shown.pair
SELECT json_populate_record(pair, '{{"relation": "{number}"}}') FROM {table}
SELECT NULL::shown.held UNION ALL SELECT {number}
SELECT '{{{number}}}'::shown._held, '{{{number}}}'::shown.held[], CAST('(1,{number})' AS shown.pair)
SELECT '{number}'::shown."odd()"
SELECT '{{{number}}}'::shown."_odd()"
SELECT '{{{number}}}'::shown."odd()"[]
SELECT '{{{number}}}'::shown._a{cut}
SELECT '{{"(1,{number})"}}'::shown._pair, held '{number}', '{{"(1,{number})"}}'::shown._latest
"""
CONSTANTS = ("'english'::regconfig", "'simple'::regdictionary", "CAST('english' AS pg_catalog.regconfig)")
MIXING_CONSTANTS = """
SELECT {constant} UNION ALL SELECT {number}
SELECT {number} UNION ALL SELECT {constant}
SELECT coalesce(NULLIF({constant}, {constant}), {number})
SELECT CASE WHEN 1 > 2 THEN {constant} ELSE {number} END
SELECT ARRAY[{constant}, {number}]
SELECT array_append(ARRAY[{constant}], {number})
SELECT lag({constant}, 1, {number}) OVER ()
SELECT x::text FROM (VALUES ({constant}), ({number})) AS v (x)
SELECT to_tsvector('english'::regconfig, 'a'), x FROM (SELECT {constant} AS x UNION SELECT {number}) AS v
SELECT to_tsvector((SELECT x FROM (SELECT {constant} AS x UNION SELECT {number}) AS v LIMIT 1), 'a')
SELECT to_tsvector('english', (SELECT {constant} UNION SELECT {number} OFFSET 1)::text)
SELECT to_tsvector(coalesce({constant}, {number}), 'a')
SELECT regconfig({number}), '{{{number}}}'::regconfig[], {number}::regdictionary
"""
READER = Principal("rita", subject="rita", groups=frozenset({"readers"}))


@pytest.fixture
async def numbers(server, database_name) -> dict[str, int]:
    connection = await asyncpg.connect(server.address(database_name))
    await connection.execute("DROP SCHEMA IF EXISTS shown, zyx CASCADE;" + SCHEMA)
    told = {row[0]: row[1] for row in await connection.fetch(NUMBERS)}
    await connection.close()
    return told


def _by_roles(database: Database) -> Configuration:
    tables = ("shown.log", "shown.latest", "shown.found")
    grant = Grant(database=database.name, tables=tables, masks={"shown.latest.space": "null"}, key="roles.r.grants.0")
    role = Role(name="r", groups=frozenset({"readers"}), grants=(grant,))
    return Configuration(databases={database.name: database}, roles={"r": role})


def _by_schemas(database: Database) -> Configuration:
    return Configuration(databases={database.name: replace(database, schemas=("shown",))})


@pytest.fixture(params=[_by_roles, _by_schemas])
async def gateway(request, server, database_name, numbers):
    """A gateway whose callers see the schema `shown`."""
    async with Gateway.open(request.param(server.configure(database_name))) as opened:
        yield opened


async def test_numbers_become_no_names_of_hidden_objects(gateway, numbers):
    answered = 0
    for form, (column, kind), table in product(MIXING.strip().splitlines(), COLUMNS.items(), TABLES):
        statement = form.format(column=column, table=table, number=numbers[kind], cut="b" * 61)
        try:
            told = str(await gateway.query(None, statement, principal=READER))
            answered += 1
        except DragomanError as error:
            told = f"{error} {error.suggestion} {error.context}"
        assert "zyx" not in told, statement
    assert answered


async def test_constants_of_searches_make_no_names_of_numbers(gateway, numbers):
    for form, constant in product(MIXING_CONSTANTS.strip().splitlines(), CONSTANTS):
        for number in numbers.values():
            with pytest.raises(UnsafeSql):
                await gateway.query(None, form.format(constant=constant, number=number), principal=READER)


SEARCHES = """
SELECT to_tsvector('english'::regconfig, 'a cat')
SELECT to_tsvector(CAST('pg_catalog.english' AS regconfig), 'a cat')
SELECT words FROM shown.found
SELECT ts_headline('english'::regconfig, 'cat', plainto_tsquery('english'::regconfig, 'a cat'))
SELECT ts_lexize('english_stem'::regdictionary, 'cats')
"""


@pytest.mark.parametrize("sql", SEARCHES.strip().splitlines())
async def test_searches_name_their_configurations(gateway, sql):
    assert "cat" in str((await gateway.query(None, sql, principal=READER)).rows)


async def test_the_values_themselves_are_shown(gateway):
    names = ["pg_class", "now", "now()", "integer", "pg_catalog"]
    shown = [1, *names, ["pg_class"], "pg_class", "(1,pg_class)", "english"]
    for sql in ("SELECT * FROM shown.log", "SELECT l.* FROM shown.log AS l WHERE relation = 'pg_class' ORDER BY type"):
        assert (await gateway.query(None, sql, principal=READER)).rows == [shown]
    masked = await gateway.query(None, "SELECT relation, called FROM shown.latest", principal=READER)
    assert masked.rows == [["pg_class", "now"]]
    searched = await gateway.query(None, "SELECT to_tsvector(search, 'a cat') FROM shown.log", principal=READER)
    assert searched.rows == [["'cat':2"]]


async def test_a_table_that_is_seen_as_a_whole_has_a_plan(gateway):
    assert "Scan" in (await gateway.explain(None, "SELECT id FROM shown.log", principal=READER)).plan
