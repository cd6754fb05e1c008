import itertools
import re
import subprocess
import sys
from dataclasses import replace

import pytest
import sqlglot
from dragoman import InvalidSql, Lexicon, Relation, Statement
from dragoman.sql.parsed import read

SQLITE = Lexicon(identifier_quotes='"[`', unclosed_comment_ends=True, dollar_names=True)


def statement(text: str, sqlglot: str = "sqlite", lexicon: Lexicon = SQLITE) -> Statement:
    return Statement.parse(text, sqlglot=sqlglot, lexicon=lexicon)


RELATIONS = [
    ("SELECT 1", []),
    ("SELECT * FROM a, b.c JOIN d ON 1 = 1", ["a", "b.c", "d"]),
    ("SELECT (SELECT 1 FROM a) FROM b WHERE c IN (SELECT d FROM e)", ["a", "b", "e"]),
    ('SELECT * FROM "a b", [c d], `e f`', ["a b", "c d", "e f"]),
    ("SELECT * FROM a AS b, b AS a", ["a", "b"]),
    ("SELECT * FROM a UNION SELECT * FROM b", ["a", "b"]),
    ("SELECT * FROM json_each('[]')", []),
    ("SELECT * FROM 'a'", ["a"]),
    ("SELECT 1 IN a, 2 IN b.c, 3 IN 'd', 4 IN (5)", ["a", "b.c", "d"]),
    ("WITH a AS (SELECT 1) SELECT * FROM a, b", ["b"]),
    ("WITH a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
    ("WITH RECURSIVE a AS (SELECT * FROM a) SELECT * FROM a", ["a"]),
    ("WITH RECURSIVE a AS (SELECT 1 UNION ALL SELECT * FROM a) SELECT * FROM a", []),
    ("WITH RECURSIVE a AS (SELECT * FROM a UNION ALL SELECT 1) SELECT * FROM a", ["a"]),
    ("WITH RECURSIVE a AS (SELECT 1 EXCEPT SELECT 2 UNION SELECT * FROM a) SELECT * FROM a", ["a"]),
    ("WITH RECURSIVE a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", ["b"]),
    ("WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b)", ["a"]),
    ("WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT 1) SELECT * FROM a, b)", []),
    ("WITH a AS (SELECT 1), b AS (SELECT * FROM a) SELECT * FROM b", []),
    ("WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a", ["b"]),
    ("WITH a AS (SELECT 1) SELECT * FROM main.a", ["main.a"]),
    ("SELECT * FROM (WITH a AS (SELECT 1) SELECT * FROM a), a", ["a"]),
    ("SELECT * FROM x WHERE y IN (WITH a AS (SELECT 1) SELECT * FROM a)", ["x"]),
    ("WITH A AS (SELECT 1) SELECT * FROM a", []),
    ('WITH "A" AS (SELECT 1) SELECT * FROM a', ["a"]),
]


@pytest.mark.parametrize(("text", "names"), RELATIONS)
def test_relations_are_those_that_are_read(text: str, names: list[str]):
    assert [str(relation) for relation in statement(text).relations()] == names


def test_a_member_of_an_inner_with_reads_an_outer_one_where_the_lexicon_says_so():
    text = "WITH a AS (SELECT 1) SELECT * FROM (WITH b AS (SELECT * FROM a) SELECT * FROM b)"
    assert statement(text, "duckdb", Lexicon(outer_members=True)).relations() == ()


def test_relations_keep_catalog_and_schema_apart():
    assert statement('SELECT * FROM a."b.c".d', "trino", Lexicon()).relations() == (Relation("d", "b.c", "a"),)


VERSIONS = [
    ("mysql", "SELECT * FROM a FOR SYSTEM_TIME ALL, b"),
    ("bigquery", "SELECT * FROM b JOIN a FOR SYSTEM_TIME AS OF x ON true"),
    ("snowflake", "SELECT * FROM b, a AT(OFFSET => -60)"),
    ("snowflake", "SELECT * FROM b, a CHANGES(INFORMATION => DEFAULT) AT(OFFSET => -60)"),
    ("oracle", "SELECT * FROM b WHERE x IN (SELECT y FROM a AS OF SCN 1)"),
    ("databricks", "WITH c AS (SELECT * FROM a VERSION AS OF 1) SELECT * FROM c, b"),
]


@pytest.mark.parametrize(("dialect", "text"), VERSIONS)
def test_older_versions_of_relations_are_told_apart(dialect: str, text: str):
    parsed = read(statement(text, dialect, Lexicon()), reserved=frozenset(), default_schema=None)
    assert [each.relation.name for each in parsed.versions] == ["a"]
    assert sorted(each.relation.name for each in parsed.relations) == ["a", "b"]


MENTIONS = [
    "SELECT * FROM {a} AS x, {a} AS y",
    "SELECT * FROM {a} WHERE id IN (SELECT id FROM {a} WHERE EXISTS (SELECT 1 FROM {a}))",
    "WITH b AS (SELECT * FROM {a}) SELECT * FROM b, {a} UNION SELECT * FROM {a}",
    "SELECT 1 IN {a} FROM {a}",
]


@pytest.mark.parametrize("name", ["a", "main.a"])
@pytest.mark.parametrize("text", MENTIONS)
def test_each_place_of_a_relation_is_told(text: str, name: str):
    """Whoever confines a statement replaces each of them, and the judge checks that none is left."""
    query = text.format(a=name)
    parsed = read(statement(query), reserved=frozenset(), default_schema=None)
    assert {each.offset for each in parsed.relations} == {
        found.end() - 1 for found in re.finditer(rf"\b{name}\b", query)
    }


LISTED = [
    ("SELECT 'x' IN (leak)", ["leak"]),
    ("SELECT 'x' NOT IN (((leak)))", ["leak"]),
    ("SELECT 'x' GLOBAL IN (system.contributors)", ["system.contributors"]),
    ("SELECT arrayFilter(x -> x IN (own.secret), ['a'])", ["own.secret"]),
    ("SELECT 1 FROM t PREWHERE a IN (p) WHERE b IN (w) HAVING c IN (h)", ["t", "p", "w", "h"]),
    ("WITH n AS (SELECT 1) SELECT 1 IN (n)", []),
    ("SELECT 1 IN (a, b), 2 IN (3), 4 IN (a + b)", []),
]


@pytest.mark.parametrize(("text", "names"), LISTED)
def test_a_name_alone_in_a_list_is_a_relation_where_the_dialect_reads_it_so(text: str, names: list[str]):
    lexicon = Lexicon(tables_in_lists=True)
    assert [str(relation) for relation in statement(text, "clickhouse", lexicon).relations()] == names


CALLED_TABLES = [
    ("SELECT * FROM notes('a')", ["notes"]),
    ("SELECT * FROM b, main.notes('a') AS n, json_each('a')", ["b", "main.notes"]),
    ('SELECT * FROM a WHERE abs(b) IN (SELECT 1 FROM "My Notes"(a.c))', ["a", "My Notes"]),
]


@pytest.mark.parametrize(("text", "names"), CALLED_TABLES)
def test_a_table_that_is_called_is_a_relation_where_the_dialect_has_such(text: str, names: list[str]):
    one = statement(text, lexicon=replace(SQLITE, table_functions=frozenset({"json_each"})))
    assert sorted(map(str, one.relations()), key=str.lower) == names
    assert {call.dotted for call in one.calls if call.offset in one.table_calls} == {names[-1].lower()}
    assert not statement(text).table_calls


@pytest.mark.parametrize("text", ["SELECT", "SELECT FROM a", "SELECT * FROM (SELECT FROM a)"])
def test_a_select_of_nothing_is_refused(text: str):
    with pytest.raises(InvalidSql):
        _ = statement(text).facts


@pytest.mark.parametrize("value", ["1", "'a'", "f(a)", "(SELECT 1)", "((SELECT 1))", "(SELECT 1) + 1", "[1]", "x -> x"])
def test_a_value_that_with_names_is_refused(value: str):
    """Such a name is no table's, so that FROM reads a table beside it."""
    with pytest.raises(InvalidSql, match="WITH names a value"):
        _ = statement(f"WITH {value} AS a SELECT * FROM a", "clickhouse", Lexicon()).facts


FUNCTIONS = [
    ("SELECT abs(1), Abs(2), max(count(*))", ["abs", "max", "count"]),
    ("SELECT strftime('%Y', a), length(b), date(c)", ["strftime", "length", "date"]),
    ('SELECT "f"(1), [g](2), `h`(3)', ["f", "g", "h"]),
    ("SELECT a.f(1), a.b.g(2)", ["a.f", "a.b.g"]),
    ("SELECT * FROM f(1) AS t, main.g(2)", ["f", "main.g"]),
    ("WITH f(a) AS (SELECT 1) SELECT f(2) FROM f", ["f"]),
    ("WITH f(a) AS (SELECT 1) SELECT * FROM f", []),
    ("SELECT 1 WHERE a IN (1) AND EXISTS (SELECT 1) OR NOT (b) AND c BETWEEN (1) AND (2)", []),
    ("SELECT CAST(a AS DECIMAL(10, 2)), CAST(b AS DOUBLE PRECISION(3))", []),
    ("WITH a AS MATERIALIZED (SELECT decimal(1), f(2)) SELECT char(3) FROM a", ["decimal", "f", "char"]),
    ("SELECT CASE WHEN (1) THEN (2) ELSE (3) END, sum(a) OVER (ORDER BY b) FROM t", ["sum"]),
    ("VALUES (f(1))", ["f"]),
    ("SELECT a LIKE b ESCAPE f(1)", ["f"]),
    ("SELECT current_timestamp, 'f(1)', \"g(2)\"", []),
]


@pytest.mark.parametrize(("text", "names"), FUNCTIONS)
def test_functions_are_those_that_are_called_as_they_are_written(text: str, names: list[str]):
    assert [name for name in statement(text).functions() if name != "current_timestamp"] == names


NESTED_TYPES = [
    ("SELECT CAST(a AS Nullable(Decimal(9, 4)))", []),
    ("SELECT CAST(a AS Array(DateTime64(3, 'UTC'))), b::Nullable(FixedString(3))", []),
    ("SELECT CAST(a AS Nullable(f(4))), decimal(1)", ["f", "decimal"]),
]


@pytest.mark.parametrize(("text", "names"), NESTED_TYPES)
def test_a_type_inside_a_type_is_no_call(text: str, names: list[str]):
    one = statement(text, "clickhouse", Lexicon(colon_casts=True))
    assert [call.name for call in one.written_calls] == names


def test_what_does_not_parse_says_where():
    with pytest.raises(InvalidSql) as refusal:
        _ = statement("SELECT 1\nFROM a b c d").tree
    assert refusal.value.offset == 18


def test_deep_chains_are_refused_and_not_fatal():
    with pytest.raises(InvalidSql, match="deep"):
        _ = statement("SELECT " + "NOT " * 9000 + "1").tree


def test_the_tree_is_read_once():
    one = statement("SELECT ?2, ?1, ?")
    assert one.tree is one.tree


def test_a_part_of_a_statement_keeps_its_offsets():
    inner = statement("EXPLAIN SELECT a FROM b").after(8)
    assert inner.text == " " * 8 + "SELECT a FROM b"
    assert inner.tokens[0].start == 8


def test_sqlglot_is_imported_only_when_a_tree_is_wanted():
    code = (
        "import sys; from dragoman import Lexicon, Statement;"
        "Statement.parse('select 1 -- one', sqlglot='sqlite', lexicon=Lexicon()).tokens;"
        "assert 'sqlglot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("step", ["[1]", ".f(1)", ".a", "(1)"])
def test_a_name_with_too_many_steps_after_it_is_refused_before_a_parser_crawls_over_it(step: str):
    with pytest.raises(InvalidSql, match="in a row"):
        _ = statement("select a" + step * 10_000, "trino", Lexicon()).tree


@pytest.mark.parametrize(
    "text", ["select a.b.c[1][2].d", "select " + ",".join(["a[1]"] * 1000), "select f(" + "(1)," * 1000 + "2)"]
)
def test_steps_of_different_names_do_not_add_up(text: str):
    assert statement(text, "trino", Lexicon()).relations() == ()


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM {}",
        "SELECT 1 AS x FROM a, {} AS b",
        "SELECT * FROM a CROSS JOIN LATERAL {}",
        "WITH b AS (SELECT * FROM {}) SELECT * FROM b",
        "SELECT (SELECT max(x) FROM {})",
    ],
)
@pytest.mark.parametrize(
    "call",
    [
        "upper(a)",
        "max(a)",
        "mod(1, 2)",
        "first(a)",
        "any_value(a)",
        "told(a, b)",
        "s.told(a)",
        "json_table(a, '$' COLUMNS (b INT PATH '$'))",
    ],
)
def test_a_call_in_the_place_of_a_relation_is_one_of_a_table_function(sql, call):
    name = call.partition("(")[0].rpartition(".")[2]
    calls = statement(sql.format(call), sqlglot="duckdb").calls
    assert (name, "table function") in {(each.name, each.kind) for each in calls}


@pytest.mark.parametrize("sql", ["SELECT * FROM {}", "SELECT 1 FROM a, {}", "SELECT * FROM a CROSS JOIN LATERAL {}"])
@pytest.mark.parametrize("call", ["rows(a)", "cube(1, 2)", "pivot(1)", "unpivot(a)"])
@pytest.mark.parametrize("dialect", ["duckdb", "mysql", "oracle"])
def test_a_word_of_the_grammar_in_the_place_of_a_relation_is_called(sql, call, dialect):
    calls = statement(sql.format(call), sqlglot=dialect).calls
    assert (call.partition("(")[0], "table function") in {(each.name, each.kind) for each in calls}


def test_a_call_behind_a_dot_without_a_name_before_it_is_still_found():
    assert statement("SELECT 1 w LATERAL.notes('x') AS n").functions() == ("lateral.notes",)


@pytest.mark.parametrize("clause", ["SETTINGS readonly = 0", "FORMAT CSV"])
@pytest.mark.parametrize(
    "query", ["SELECT a FROM b", "SELECT a FROM b UNION ALL SELECT 1", "SELECT * FROM (SELECT 1 AS a)"]
)
def test_a_clause_that_sets_something_is_no_part_of_a_query(query: str, clause: str):
    found = statement(f"{query} {clause}", "clickhouse", Lexicon()).effect
    assert found
    assert found.what == f"{clause.split()[0]} of its own"


@pytest.mark.parametrize("name", ["text", "original", "sqlglot", "lexicon", "judged_relations", "tree", "calls"])
def test_nothing_of_a_statement_can_be_changed(name: str):
    told = statement("select 1")
    with pytest.raises(AttributeError, match="does not change"):
        setattr(told, name, ())
    with pytest.raises(AttributeError, match="does not change"):
        delattr(told, name)
    assert told.text == "select 1"


# sqlglot copies one argument and leaves out another, so that the tree has as many queries as the text.
COPYING = {"DIV0", "DIV0NULL", "NULLIFZERO", "SORT_ARRAY", "ZEROIFNULL"}


@pytest.mark.parametrize("dialect", ["duckdb", "mysql", "sqlite", "postgres", "trino", "snowflake", "tsql", "bigquery"])
def test_every_query_in_an_argument_of_a_function_is_read_or_refused(dialect: str):
    parser = sqlglot.Dialect.get_or_raise(dialect).parser_class
    names = {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS, *parser.NO_PAREN_FUNCTION_PARSERS}
    missing: list[str] = []
    for name, count in itertools.product(sorted(names - COPYING), range(1, 5)):
        places = {f"t{number}" for number in range(count)}
        text = f"SELECT {name}({', '.join(f'(SELECT a FROM {place})' for place in sorted(places))})"
        try:
            parsed = read(statement(text, dialect, Lexicon()), reserved=frozenset(), default_schema=None)
        except InvalidSql:
            continue
        if parsed.refusal is None and not {each.name for each in parsed.names} >= places:
            missing.append(text)
    assert missing == []
