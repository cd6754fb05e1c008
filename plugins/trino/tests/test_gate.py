"""The gate by itself: no database is asked."""

import time
from typing import Any

import pytest
from dragoman import (
    Call,
    Database,
    DragomanError,
    ParsedStatement,
    Principal,
    Relation,
    Resolution,
    Statement,
    UnsafeSql,
    WriteDenied,
)
from dragoman.testing.corpus import Case, cases
from dragoman.validators import ReadOnly, check_text, read
from dragoman_trino.grammar import Statements
from dragoman_trino.grammar.tokens import tokens
from dragoman_trino.lexicon import LEXICON
from dragoman_trino.plugin import plugin
from dragoman_trino.rules import load_allowed, names, read_policy, rules
from hypothesis import given, settings
from hypothesis import strategies as st

CASES = cases("any") + cases("trino")
LAKE = Database(name="lake", dialect="trino", database="tpch", schema="tiny")


def statement(text: str) -> Statement:
    return Statement.parse(text, sqlglot="trino", lexicon=LEXICON)


def judged(text: str, database: Database | None = None) -> ParsedStatement:
    """What a statement reads, once the core has judged it."""
    parsed = read(plugin.dialect, statement(text))
    ReadOnly(plugin.dialect, database).judge(parsed)
    return parsed


def verdict(text: str) -> str:
    try:
        check_text(plugin.dialect, text)
    except DragomanError as error:
        return error.code
    return ""


async def checked(text: str, database: Database) -> None:
    """Check a statement as the gateway does; the catalog is not asked."""

    async def resolve() -> Resolution:
        raise AssertionError("the catalog was asked")

    async def relations() -> tuple[()]:
        raise AssertionError("the catalog was asked")

    call = Call(
        principal=Principal(),
        tool="execute_query",
        database=database,
        resolve=resolve,
        relations=relations,
        parsed=read(plugin.dialect, statement(text)),
        dialect=plugin.dialect,
    )
    await ReadOnly(plugin.dialect, database).check(statement(text), call)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_is_the_expected_one(case: Case):
    assert verdict(case.sql) == case.code


# Of connectors and versions that no test server has.
ELSEWHERE = [
    "SELECT * FROM lake.sales.orders FOR VERSION AS OF 8954597067493422955",
    "SELECT * FROM orders FOR TIMESTAMP AS OF TIMESTAMP '2024-01-01 00:00:00 UTC' AS o WHERE o.id = 1",
    "SELECT * FROM orders FOR VERSION AS OF 'branch' o JOIN orders FOR VERSION AS OF 'other' p ON o.id = p.id",
    "SELECT * FROM TABLE(lake.system.table_changes(schema_name => 's', table_name => 't', start_snapshot_id => 1))",
    'SELECT * FROM lake.sales."orders$snapshots" ORDER BY committed_at DESC LIMIT 1',
    'SELECT "$path", "$file_modified_time" FROM lake.sales.orders',
    "SELECT count(*) FILTER (WHERE id > 1) OVER (PARTITION BY city) FROM customers",
    "SELECT * FROM customers NATURAL JOIN cities",
    "SELECT learn_classifier(label, features(a, b)) FROM samples",
    "SELECT to_date('2024', 'yyyy'), char2hexint('a'), timestamp_objectid(TIMESTAMP '2024-01-01 00:00:00')",
    "SELECT * FROM a.b.c TABLESAMPLE BERNOULLI (10) LIMIT 5",
    "SHOW GRANTS ON TABLE orders",
    "SHOW ROLES FROM lake",
    "SHOW CURRENT ROLES",
    "SHOW ROLE GRANTS FROM lake",
    "SHOW CREATE MATERIALIZED VIEW m",
    "SHOW CREATE FUNCTION lake.sales.f",
]


@pytest.mark.parametrize("text", ELSEWHERE)
def test_what_other_servers_have_passes(text: str):
    assert verdict(text) == ""


READINGS = [
    ("SELECT lower(x), system.builtin.upper(y) FROM s.t", "s.t", "lower system.builtin.upper"),
    ("WITH a AS (SELECT * FROM b) SELECT * FROM a, c", "b c", ""),
    ("WITH a AS (SELECT * FROM a) SELECT * FROM a", "a", ""),
    ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", "", ""),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", "b", ""),
    ("WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM a) SELECT * FROM a", "", ""),
    ("WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM (SELECT * FROM a)) SELECT * FROM a", "", ""),
    ("WITH RECURSIVE a (x) AS (SELECT 1 UNION ALL SELECT (SELECT max(x) FROM a)) SELECT * FROM a", "a", "max"),
    (
        "WITH RECURSIVE a (x) AS (SELECT * FROM (WITH b AS (SELECT * FROM a), a AS (SELECT 1) SELECT * FROM b))"
        " SELECT * FROM a",
        "a",
        "",
    ),
    ("WITH RECURSIVE a (x) AS (SELECT * FROM a, (WITH a AS (SELECT 1) SELECT * FROM a)) SELECT * FROM a", "a", ""),
    ('WITH RECURSIVE s (x) AS (SELECT * FROM s, (WITH "\u017f" AS (SELECT 1) SELECT 1)) SELECT * FROM s', "s", ""),
    ("WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b)", "", ""),
    ('WITH "A" AS (SELECT 1) SELECT * FROM a', "", ""),
    ("WITH a AS (SELECT 1) SELECT * FROM s.a", "s.a", ""),
    ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a", "a", ""),
    ('SELECT * FROM "Cat"."Sch"."T" AS x JOIN t ON true', "cat.sch.t t", ""),
    ("SELECT * FROM TABLE(exclude_columns(input => TABLE(a), columns => DESCRIPTOR(b)))", "a", "exclude_columns"),
    ("TABLE a UNION TABLE s.b", "a s.b", ""),
    ("SELECT (SELECT max(x) FROM b) FROM UNNEST(sequence(1, 2)) AS t (x)", "b", "max sequence"),
    ("DESCRIBE s.t", "s.t", ""),
    ("SHOW STATS FOR (SELECT * FROM t)", "t", ""),
    ("EXPLAIN SELECT * FROM t", "t", ""),
]


@pytest.mark.parametrize(("text", "relations", "functions"), READINGS)
def test_a_reading_tells_relations_and_functions(text: str, relations: str, functions: str):
    parsed = judged(text)
    assert sorted(map(str, parsed.names)) == relations.split()
    assert sorted(parsed.functions) == functions.split()


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("SELECT * FROM a FOR VERSION AS OF 1, b", "a"),
        ("SELECT * FROM s.a FOR TIMESTAMP AS OF now() AS x JOIN b FOR VERSION AS OF 'main' ON true", "s.a b"),
        ("WITH c AS (SELECT * FROM a FOR VERSION AS OF 1) SELECT * FROM c, b", "a"),
        ("SELECT (SELECT max(x) FROM a FOR VERSION AS OF 1) FROM b", "a"),
    ],
)
def test_a_reading_tells_older_versions(text: str, versions: str):
    assert " ".join(str(each.relation) for each in judged(text).versions) == versions


REFUSED_AT = [
    ("SELECT 'é', do_harm(1)", "do_harm"),
    ("SELECT 1 FROM a, b, system.runtime.queries", "system"),
    ("SELECT * FROM t, TABLE(c.system.query(query => 'x'))", "c.system"),
    ("SELECT /* a */ 1 INTO b", "INTO"),
    ("WITH SESSION x = 1 SELECT 1", "SESSION"),
    ("SELECT * FROM t FOR UPDATE", "FOR"),
    ("SELECT a FROM t WHERE x => 1", "=>"),
]


@pytest.mark.parametrize(("text", "place"), REFUSED_AT)
def test_a_refusal_tells_its_place_and_what_to_do(text: str, place: str):
    with pytest.raises(DragomanError) as refused:
        judged(text)
    assert refused.value.offset == text.index(place)
    assert refused.value.suggestion


ALLOWED_BY_CONFIGURATION = [
    ("SELECT do_harm(1)", {"allow_functions": frozenset({"do_harm"})}),
    ("SELECT memory.default.Evil(1)", {"allow_functions": frozenset({"Memory.default.evil"})}),
    ("SELECT * FROM TABLE(pg.system.query(query => 'x'))", {"allow_functions": frozenset({"pg.system.query"})}),
    ("SELECT * FROM system.runtime.queries", {"allow_relations": frozenset({"system.runtime.queries"})}),
]


@pytest.mark.parametrize(("text", "fields"), ALLOWED_BY_CONFIGURATION)
async def test_configuration_opens_what_it_names_and_nothing_else(text: str, fields: dict[str, Any]):
    with pytest.raises(UnsafeSql):
        await checked(text, LAKE)
    opened = Database(name="lake", dialect="trino", **fields)
    await checked(text, opened)
    with pytest.raises(UnsafeSql):
        await checked(f"SELECT pg_sleep(1), ({text})", opened)


HOMES = [
    ("SELECT * FROM queries", "system", "runtime"),
    ("SELECT * FROM runtime.queries", "system", None),
    ("SELECT * FROM runtime.queries", "SYSTEM", "metadata"),
    ("SELECT * FROM runtime.queries", None, None),
]


@pytest.mark.parametrize(("text", "catalog", "schema"), HOMES)
async def test_what_is_closed_stays_closed_under_a_short_name(text: str, catalog: str | None, schema: str | None):
    with pytest.raises(UnsafeSql, match="not open"):
        await checked(text, Database(name="lake", dialect="trino", database=catalog, schema=schema))


async def test_a_schema_called_as_the_engine_s_own_is_open_in_another_catalog():
    await checked("SELECT * FROM runtime.queries", LAKE)


SCHEMAS = ("tiny", "memory.sales", '"Odd Name".x')
INSIDE = [
    "SELECT * FROM nation, tiny.nation, tpch.tiny.nation, memory.sales.orders",
    'SELECT * FROM "odd name".x.y',
    "WITH a AS (SELECT 1) SELECT * FROM a",
    "SHOW TABLES",
    "SHOW TABLES FROM memory.sales",
    "SHOW COLUMNS FROM tiny.nation",
    "SHOW FUNCTIONS",
    "SHOW SESSION",
    "SHOW GRANTS ON TABLE nation",
    "SHOW STATS FOR (SELECT * FROM nation)",
    "SELECT 1",
]
OUTSIDE = [
    "SELECT * FROM sf1.nation",
    "SELECT * FROM memory.hr.people",
    "SELECT * FROM memory.tiny.nation",
    "SELECT * FROM sales.orders",
    "SELECT * FROM information_schema.tables",
    "SELECT * FROM system.metadata.catalogs",
    "WITH hr AS (SELECT 1) SELECT * FROM memory.hr.people",
    "SELECT 1 FROM nation WHERE EXISTS (SELECT 1 FROM sf1.nation)",
    "SELECT * FROM TABLE(exclude_columns(input => TABLE(sf1.nation), columns => DESCRIPTOR(name)))",
    "DESCRIBE memory.hr.people",
    "SHOW TABLES FROM memory.hr",
    "SHOW TABLES FROM sf1",
    "SHOW CREATE SCHEMA memory.hr",
    "SHOW FUNCTIONS FROM memory.hr",
    "SHOW STATS FOR sf1.nation",
    "SHOW SCHEMAS",
    "SHOW SCHEMAS FROM tpch",
    "SHOW CATALOGS",
    "SHOW GRANTS",
    "SHOW ROLES",
]


@pytest.mark.parametrize("text", INSIDE)
async def test_the_configured_schemas_are_open(text: str):
    await checked(text, Database(name="lake", dialect="trino", database="tpch", schema="tiny", schemas=SCHEMAS))


@pytest.mark.parametrize("text", OUTSIDE)
async def test_nothing_outside_the_configured_schemas_is_read_or_shown(text: str):
    narrow = Database(name="lake", dialect="trino", database="tpch", schema="tiny", schemas=SCHEMAS)
    with pytest.raises(UnsafeSql, match="open to queries"):
        await checked(text, narrow)
    await checked(text, LAKE)


async def test_a_schema_alone_is_of_any_catalog_when_the_session_has_none():
    anywhere = Database(name="lake", dialect="trino", schemas=("tiny",))
    await checked("SELECT * FROM tpch.tiny.nation, memory.tiny.t", anywhere)
    with pytest.raises(UnsafeSql):
        await checked("SELECT * FROM tpch.sf1.nation", anywhere)


def test_writes_are_told_apart_from_mistakes():
    with pytest.raises(WriteDenied):
        judged("EXECUTE IMMEDIATE 'SELECT 1'", LAKE)
    assert verdict("SELEKT 1") == "INVALID_SQL"


DEEP = [
    "SELECT " + "+".join(["1"] * 20_000),
    "SELECT " + "(" * 20_000 + "1" + ")" * 20_000,
    "SELECT " + "(" * 40 + "1" + ")" * 40 + ", (1)" * 12_000,
    "SELECT 1" + " UNION SELECT 1" * 4_000,
    "SELECT " + "- " * 20_000 + "1",
    "SELECT " + "NOT " * 10_000 + "true",
    "SELECT " + "CASE WHEN " * 5_000,
    "SELECT " + "x -> " * 10_000 + "1",
    "SELECT CAST(1 AS " + "array<" * 10_000,
    "SELECT " + "a." * 20_000 + "b",
    "SELECT " + "ARRAY[" * 9_000,
    "SELECT " + "a[1]" * 9_000,
    "SELECT " + "'" * 60_001,
    "SELECT " + ", ".join(["system.builtin.lower('a')"] * 2_500),
    "SELECT " + ", ".join(["pg_sleep(1)"] * 2_500),
    "SELECT * FROM a" + " JOIN b ON true" * 4_000,
    "SELECT * FROM " + "a JOIN " * 8_000 + "b",
    "WITH " + ", ".join(f"a{n} AS (SELECT 1)" for n in range(3_000)) + " SELECT 1",
    "EXPLAIN " * 8_000 + "SELECT 1",
    "SELECT * FROM t MATCH_RECOGNIZE (PATTERN (" + "A " * 20_000 + ") DEFINE A AS true)",
]


def members(first: str, each: str, levels: int, start: str = "WITH") -> str:
    """A query of members of WITH, of which each names the one before, as `{0}`."""
    later = (f", x{level + 1} AS ({each.format(f'x{level}')})" for level in range(levels))
    return f"{start} x0 AS ({first}){''.join(later)} SELECT count(*) FROM x{levels}"


MULTIPLYING = [
    "SELECT a.id FROM {0} a, {0} b",
    "SELECT * FROM {0} UNION ALL SELECT * FROM {0}",
    "TABLE {0} UNION ALL (TABLE {0})",
    "SELECT id FROM {0} WHERE id IN (SELECT id FROM {0})",
    "SELECT id, (SELECT max(id) FROM {0}) AS most FROM {0}",
    "SELECT id FROM {0}, LATERAL (SELECT max(id) FROM {0})",
    "SELECT id FROM {0} JOIN TABLE(exclude_columns(TABLE({0}), DESCRIPTOR(n))) ON true",
    "WITH y AS (TABLE {0}), z AS (SELECT * FROM y, y) SELECT * FROM z",
    "WITH {0} AS (SELECT * FROM {0}, {0}) TABLE {0}",
    "SELECT id FROM {0} MATCH_RECOGNIZE (PATTERN (a) DEFINE a AS id IN (SELECT id FROM {0}))",
]


@pytest.mark.parametrize("first", ["SELECT id FROM orders", "SELECT 1 AS id", "VALUES 1"])
@pytest.mark.parametrize("each", MULTIPLYING)
def test_members_of_with_that_multiply_are_refused_and_a_few_of_them_pass(first: str, each: str):
    assert verdict(members(first, each, 6)) == ""
    assert verdict(members(first, each, 20)) == "UNSAFE_SQL"


def test_members_that_name_themselves_count_as_often_as_they_are_planned():
    each = "SELECT 1 AS id UNION ALL SELECT a.id FROM {0}, {0} a"
    recursive = "SELECT 1 AS id UNION ALL SELECT x0.id + 1 FROM x0 WHERE x0.id < 5"
    assert verdict(members(recursive, each, 4, "WITH RECURSIVE")) == ""
    own = ", ".join(
        f"x{level} AS (SELECT 1 AS id UNION ALL SELECT x{level}.id FROM x{level}, x{level - 1})"
        for level in range(1, 6)
    )
    assert verdict(f"WITH RECURSIVE x0 AS (SELECT 1 AS id), {own} SELECT * FROM x5") == "UNSAFE_SQL"


@pytest.mark.parametrize("count", [60, 1_000])
def test_many_members_that_are_named_once_pass(count: int):
    assert verdict(members("SELECT id FROM orders", "SELECT id FROM {0}", count)) == ""


def matching(pattern: str) -> str:
    return f"SELECT * FROM t MATCH_RECOGNIZE (ORDER BY id PATTERN ({pattern}) DEFINE a AS true)"


LONG_PATTERNS = [
    "a{5001}",
    "a{1,1000000}",
    "a{,1000000}",
    "a{1000000,}",
    "a{1_000_000}",
    "a{" + "9" * 5_000 + "}",
    "((a{100}){100}){100}",
    "(a b?){5000}",
    "(){1000000}",
    "^{1000000}",
    "{- a -}{1000000}",
    "{- a{100} -}{100}",
    "(a | b{2,3} c){2000}",
    "PERMUTE(a, b, c, d, e, f, g)",
    "PERMUTE((), (), (), (), (), (), ())",
    "PERMUTE(" + ", ".join(["a"] * 300) + ")",
    "PERMUTE(a, PERMUTE(a, b, c, d, e, f), b)",
]


@pytest.mark.parametrize("pattern", LONG_PATTERNS)
def test_a_row_pattern_that_is_long_when_it_is_written_out_is_refused(pattern: str):
    assert verdict(matching(pattern)) == "UNSAFE_SQL"


@pytest.mark.parametrize(
    "pattern",
    [
        "a+? b{2,3}? c*? d?? | (e f)+",
        "^ a{1,365} {- b* -} c $",
        "PERMUTE(a, b{2}, (c d)) {3}",
        "() | a{0,}",
        "PERMUTE(a, b, c, d, e, f)",
        "permute a{,5}",
    ],
)
def test_an_ordinary_row_pattern_passes(pattern: str):
    assert verdict(matching(pattern)) == ""


@pytest.mark.parametrize("text", DEEP, ids=range(len(DEEP)))
def test_long_and_deep_texts_get_a_verdict_soon(text: str):
    started = time.perf_counter()
    verdict(text)
    assert time.perf_counter() - started < 30


PIECES = [case.sql for case in CASES if case.sql]
GLUE = ["", " ", "(", ")", "'", '"', "/*", "*/", "--", ";", "\\", "->", "=>", "{-", "[", "?", ",", "."]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(PIECES), st.sampled_from(PIECES), st.data())
def test_mutated_statements_always_get_a_verdict(one: str, other: str, data: st.DataObject):
    cut = data.draw(st.integers(0, len(one)))
    paste = data.draw(st.integers(0, len(other)))
    code = verdict(one[:cut] + data.draw(st.sampled_from(GLUE)) + other[paste:])
    assert code in ("", "INVALID_SQL", "UNSAFE_SQL", "WRITE_OPERATION_DENIED")


WORDS = sorted({token.text for case in CASES if case.allow for token in tokens(case.sql) if token.text})


@settings(max_examples=400, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join))
def test_words_in_any_order_get_a_verdict(text: str):
    assert verdict(f"SELECT {text}") in ("", "INVALID_SQL", "UNSAFE_SQL", "WRITE_OPERATION_DENIED")


REFUSED = [case.sql for case in cases("trino") if case.code == "UNSAFE_SQL" and case.sql.startswith("SELECT ")]
FRAMES = [
    "SELECT * FROM ({}) AS x",
    "WITH x AS ({}) SELECT * FROM x",
    "SELECT (SELECT count(*) FROM ({}) AS x)",
    "SELECT 1 WHERE EXISTS ({})",
    "SELECT 1 WHERE 1 = ALL ({})",
    "SELECT 1 IN ({}, 2)",
    "EXPLAIN {}",
    "({}) UNION ALL (SELECT 1)",
    "SELECT ARRAY[({})]",
    "SELECT transform(ARRAY[1], x -> ({}))",
    "SELECT CASE WHEN ({}) THEN 1 END",
    "SELECT 1 FROM customers, LATERAL ({}) AS x",
    "SELECT * FROM (customers CROSS JOIN ({}))",
    "SELECT json_object('a' : ({}))",
    "SHOW STATS FOR ({})",
    "SELECT * FROM TABLE(exclude_columns(input => TABLE({}), columns => DESCRIPTOR(a)))",
    "SELECT 1 ORDER BY ({})",
    "SELECT sum(1) OVER (ORDER BY ({}))",
]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(REFUSED), st.lists(st.sampled_from(FRAMES), min_size=1, max_size=4))
def test_what_is_refused_stays_refused_within_other_queries(text: str, frames: list[str]):
    for frame in frames:
        text = frame.format(text)
    assert verdict(text) != ""


WRITES = [case.sql for case in cases("trino") if case.reason in {"writes rows", "defines, changes or drops"}]
DRESSES = [
    "EXPLAIN {}",
    "EXPLAIN (TYPE VALIDATE) {}",
    "EXPLAIN ANALYZE {}",
    "WITH a AS (SELECT 1) {}",
    "WITH a AS ({}) SELECT 1",
    "SELECT * FROM ({})",
    "SELECT 1 UNION ALL {}",
    "/* SELECT 1 */ {}",
    "-- SELECT 1\n{}",
    "({})",
    "VALUES ({})",
    "SHOW STATS FOR ({})",
    "PREPARE p FROM {}",
    "SELECT 1; {}",
    "\n\t {} ;",
]


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(WRITES), st.lists(st.sampled_from(DRESSES), min_size=1, max_size=3), st.booleans())
def test_a_write_is_refused_however_it_is_dressed(text: str, dresses: list[str], swapped: bool):
    for dress in dresses:
        text = dress.format(text)
    assert verdict(text.swapcase() if swapped else text) != ""


CALLS = [
    (case.sql, call.offset)
    for case in CASES
    if case.allow
    for reader in [Statements(statement(case.sql).text)]
    for call in reader.read().calls
    if call.name not in {"current_schema", "current_path"}  # which have no parentheses
]


def test_every_call_of_the_allowed_queries_is_judged():
    """Each called name in turn becomes one that nobody listed."""
    for sql, offset in CALLS:
        end = sql.index("(", offset)
        assert verdict(f"{sql[:offset]}do_harm{sql[end:]}") == "UNSAFE_SQL"


def test_no_list_lets_pass_what_the_policy_takes_away():
    rules = load_allowed()
    assert not rules.functions & {"fail", "query", "raw_query", "kill_query", "$operator$add"}
    assert not rules.tables.fullmatch("postgresql.system.query")
    assert not rules.system.fullmatch("runtime.queries")
    assert set(names(read_policy()["forms"])) <= rules.functions


@pytest.mark.parametrize(
    ("name", "whole"),
    [
        ("orders$files", "orders"),
        ("orders$FILES@12", "orders"),
        ("a$b$partitions", "a$b"),
        ("orders$secret", None),
        ("a$b", None),
        ("$files", None),
        ("orders", None),
    ],
)
def test_only_a_connector_s_own_facts_are_seen_with_a_table(name, whole):
    found = rules().find_whole(Relation(name, "web", "lake"))
    assert found == (whole and Relation(whole, "web", "lake"))


@pytest.mark.parametrize("text", ["SELECT current_schema", "SELECT 1 WHERE 'a' IN ('b', current_schema)"])
def test_where_names_are_looked_up_is_a_call(text: str):
    assert [call.name for call in judged(text, LAKE).calls] == ["current_schema"]
    assert not judged('SELECT "current_schema" FROM nation', LAKE).calls
