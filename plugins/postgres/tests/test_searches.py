"""Text search queries are made of short texts only: what the gate takes for short is, whatever it is built of."""

from contextlib import suppress

import asyncpg
import pytest
from dragoman import DragomanError, Gateway, ParameterError, UnsafeSql
from dragoman.validators import check_text
from dragoman_postgres.plugin import PostgresPlugin
from dragoman_postgres.reading import parse
from dragoman_postgres.searches import LONGEST_PARAMETER, LONGEST_SEARCH, measure
from dragoman_postgres.testing import Server
from hypothesis import given
from hypothesis import strategies as st

DIALECT = PostgresPlugin.dialect
PASS = """
SELECT to_tsquery('a & b'), plainto_tsquery('english', $1), phraseto_tsquery($1), websearch_to_tsquery($1::text)
SELECT 'a & b'::tsquery, $1::tsquery, NULL::tsquery, '{a,b}'::tsquery[], CAST('a' AS tsquery), tsquery('a')
SELECT to_tsquery('english', plainto_tsquery('english', $1)::text || ':*')
SELECT to_tsquery('simple', regexp_replace($1, '\\s+', ' & ', 'g')), to_tsquery(replace($1::text, ' ', ' | '))
SELECT plainto_tsquery('simple', unaccent(lower($1))), to_tsquery(quote_literal($1) || ':*')
SELECT to_tsquery(coalesce($1, 'x')), to_tsquery(concat($1, ':*')), to_tsquery(trim(both ' ' from $1))
SELECT to_tsquery('simple', ''' ' || 'word' || ' ''' || ':*')
SELECT to_tsquery(left(body, 1000)), substring(body from 1 for 100)::tsquery FROM docs
SELECT ts_rewrite('a & b'::tsquery, 'a', 'c'), pg_input_is_valid('a', 'tsquery')
SELECT normalize('é'), normalize($1::text, NFD), normalize(left(lower(body), 1000), NFKC) FROM docs
SELECT 'é' IS NORMALIZED, $1::text IS NFD NORMALIZED, left(body, 1000) IS NOT NFKC NORMALIZED FROM docs
SELECT is_normalized('é'), is_normalized(left(lower(body), 1000), 'NFKD') FROM docs
SELECT * FROM docs, to_tsquery('x') AS q WHERE v @@ q ORDER BY ts_rank(v, q)
SELECT * FROM docs AS d CROSS JOIN websearch_to_tsquery('english', $1) AS query WHERE d.v @@ query
SELECT * FROM docs, plainto_tsquery('x') WHERE v @@ plainto_tsquery
WITH q AS (SELECT to_tsquery('x') AS query) SELECT * FROM docs, q WHERE docs.v @@ q.query
SELECT * FROM docs WHERE v @@ (to_tsquery('a') && !! to_tsquery('b')) OR plainto_tsquery('x') @@ v
SELECT * FROM docs WHERE setweight(to_tsvector(title), 'A') || to_tsvector(body) @@ some_query
SELECT * FROM docs WHERE sections @@ '1&2'::query_int OR sections @@ picked::query_int
SELECT * FROM docs WHERE data @@ '$.a > 1' OR body @@ 'word' OR v @@ $1 OR v::tsvector @@ query
""".strip().splitlines()
REFUSED = """
SELECT to_tsquery(body) FROM docs
SELECT plainto_tsquery('english', repeat('a ', 100000))
SELECT websearch_to_tsquery(string_agg(body, ' ')) FROM docs
SELECT phraseto_tsquery((SELECT x)) FROM (SELECT repeat('a ', 9) AS x) AS s
SELECT pg_catalog.to_tsquery(x) FROM (SELECT repeat('a ', 9) AS x) AS s
SELECT body::tsquery FROM docs
SELECT CAST(body AS pg_catalog.tsquery) FROM docs
SELECT ARRAY[body]::tsquery[] FROM docs
SELECT ARRAY[body]::_tsquery FROM docs
SELECT tsquery(body) FROM docs
SELECT (body).tsquery FROM docs
SELECT d.tsquery FROM (SELECT body FROM docs) AS d
SELECT (body).plainto_tsquery FROM docs
SELECT d.plainto_tsquery FROM docs AS d
SELECT * FROM json_to_record('{}') AS r (q tsquery)
SELECT json_value('{}', '$.a' RETURNING tsquery)
SELECT * FROM xmltable('/a' PASSING x COLUMNS q tsquery)
SELECT * FROM json_table('[]', '$[*]' COLUMNS (q tsquery))
SELECT pg_input_is_valid(body, 'tsquery') FROM docs
SELECT pg_input_error_info(body, ' TSQuery ') FROM docs
SELECT to_tsquery('a'::char(1000000)::text), to_tsquery('1e100000'::numeric::text)
SELECT to_tsquery(replace($1, '', repeat('a ', 9)))
SELECT to_tsquery(left(body, -1)), to_tsquery(left(body, 1000000)) FROM docs
SELECT to_tsquery(query => body) FROM docs
SELECT to_tsquery(VARIADIC body) FROM docs
SELECT ts_rewrite(q, 'a', 'b') FROM docs
SELECT normalize(body) FROM docs
SELECT normalize(repeat(chr(803) || chr(775), 100000), NFD)
SELECT pg_catalog.normalize(body, 'NFC') FROM docs
SELECT (body).normalize FROM docs
SELECT d.normalize FROM docs AS d
SELECT normalize(left(body, 20000)) FROM docs
SELECT body IS NORMALIZED FROM docs
SELECT repeat(chr(803) || chr(775), 100000) IS NFD NORMALIZED
SELECT body IS NOT NFKC NORMALIZED FROM docs
SELECT is_normalized(body) FROM docs
SELECT pg_catalog.is_normalized(body, 'NFD') FROM docs
SELECT (body).is_normalized FROM docs
SELECT d.is_normalized FROM docs AS d
SELECT body @@ body FROM docs
SELECT v @@ docs.q FROM docs, to_tsquery('x') AS q
SELECT v @@ q FROM docs, repeat('a ', 9) AS q
SELECT x @@ x FROM (SELECT repeat('a ', 9)) AS s (x), (SELECT to_tsquery('a') AS x) AS t
SELECT x @@ x FROM (SELECT repeat('a ', 9) AS x) AS s, to_tsquery('a') AS x
WITH q (x) AS (SELECT repeat('a ', 9)) SELECT x @@ x FROM q
SELECT p @@ p FROM (SELECT r AS p FROM (SELECT to_tsquery('x') AS r) AS a) AS b, (SELECT repeat('a', 9) AS r) AS c
SELECT q @@ q FROM json_to_record('{}') AS r (q text)
SELECT q @@ q FROM json_table('[]', '$[*]' COLUMNS (q text)), to_tsquery('a') AS q
SELECT q @@ q FROM xmltable('/a' PASSING x COLUMNS q text), to_tsquery('a') AS q
SELECT body @@ ANY (ARRAY[body]) FROM docs
SELECT body @@ ANY (SELECT body FROM docs) FROM docs
SELECT body OPERATOR(pg_catalog.@@) body FROM docs
SELECT to_tsvector('a') || body @@ body FROM docs
SELECT ts_match_tt(body, body) FROM docs
""".strip().splitlines()


FEW_FRAGMENTS = """
SELECT ts_headline(body, to_tsquery('a')), ts_headline('english', body, plainto_tsquery($1)) FROM docs
SELECT ts_headline('english', body, q), ts_headline(body, q, 'MaxWords=35, MinWords=15') FROM docs, to_tsquery('a') AS q
SELECT ts_headline('english'::regconfig, body, phraseto_tsquery('a') || to_tsquery('b'), 'MaxFragments=10') FROM docs
SELECT ts_headline(body, 'a'::tsquery, 'StartSel=<b>, "MaxFragments" = "3", HighlightAll=true') FROM docs
SELECT ts_headline(data, to_tsquery('a'), 'StartSel="x, y", maxfragments=''99'',MinWords=1') FROM docs
SELECT ts_headline('english', body, docs.q, '') FROM docs
SELECT ts_headline('english', 'a', 'a')
WITH q AS (SELECT to_tsquery('x') AS query) SELECT ts_headline('english', body, query) FROM docs, q
""".strip().splitlines()
MANY_FRAGMENTS = """
SELECT ts_headline(body, to_tsquery('a'), 'MaxFragments=100') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), 'MaxFragments=1000000,MaxWords=2,MinWords=1') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), 'maxFRAGMENTS = "1000000"') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), 'MaxFragments=1, MaxFragments=1000000') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), E'"MaxFragments"\\n=\\n1000000') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), 'MaxFragments=10''00000') FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), $1) FROM docs
SELECT ts_headline('english', body, to_tsquery('a'), 'Max' || 'Fragments=1000000') FROM docs
SELECT ts_headline(body, to_tsquery('a'), $1) FROM docs
SELECT ts_headline(body, to_tsquery('a'), options) FROM docs
SELECT ts_headline(body, to_tsquery('a'), q) FROM docs, repeat('a', 9) AS q
SELECT ts_headline('a text', to_tsquery('a'), (SELECT 'MaxFragments=1000000'))
SELECT pg_catalog.ts_headline(body, to_tsquery('a'), 'MaxFragments=1000000'::text) FROM docs
""".strip().splitlines()


@pytest.mark.parametrize("query", FEW_FRAGMENTS)
def test_a_headline_of_few_fragments_passes(query: str):
    check_text(DIALECT, query)


@pytest.mark.parametrize("query", MANY_FRAGMENTS)
def test_a_headline_of_fragments_without_limit_is_refused(query: str):
    with pytest.raises(UnsafeSql):
        check_text(DIALECT, query)


@pytest.mark.parametrize("query", PASS)
def test_a_query_of_a_short_text_passes(query: str):
    check_text(DIALECT, query)


@pytest.mark.parametrize("query", REFUSED)
def test_a_query_of_a_text_that_may_be_long_is_refused(query: str):
    with pytest.raises(UnsafeSql):
        check_text(DIALECT, query)


# Expressions as a caller may build them, with what makes texts longer.
LEAVES = [
    "'a'",
    "'it''s'",
    "'ab cd & ef'",
    "$1",
    "left(repeat('xy ', 9000), 700)",
    "substr(repeat('ß', 5000), 2, 90)",
    "7",
]
SHAPES = [
    "({0} || {1})",
    "concat({0}, {1})",
    "coalesce({0}, {1})",
    "({0})::text",
    "replace({0}::text, ' ', ' & ')",
    "replace({0}::text, 'x', '')",
    "regexp_replace({0}::text, '', '-+-', 'g')",
    "regexp_replace({0}::text, 'x*', '[\\&\\&]', 'g')",
    "translate({0}::text, 'a', 'b')",
    "upper({0}::text)",
    "initcap({0}::text)",
    "quote_literal({0}::text)",
    "btrim({0}::text)",
    "plainto_tsquery('simple', {0}::text)::text",
    "phraseto_tsquery('simple', {0}::text)::text",
    "websearch_to_tsquery('simple', {0}::text)::text",
]
EXPRESSIONS = st.recursive(
    st.sampled_from(LEAVES),
    lambda inner: st.builds(str.format, st.sampled_from(SHAPES), inner, inner),
    max_leaves=6,
)
PARAMETERS = st.sampled_from(
    [letters * (LONGEST_PARAMETER // len(letters)) for letters in ("a ", "'", "\\", "x", "ß", "é-")]
)

CANNOT_BE_EVALUATED = (asyncpg.DataError, asyncpg.DatatypeMismatchError, asyncpg.UndefinedFunctionError)


async def test_what_is_measured_is_never_longer(admin: asyncpg.Connection, anyio_backend: str):
    seen: list[tuple[str, str, int]] = []

    @given(EXPRESSIONS, PARAMETERS)
    def collect(expression: str, parameter: str) -> None:
        tree = parse(f"SELECT {expression}")
        longest = measure(tree[0]["stmt"]["SelectStmt"]["targetList"][0]["ResTarget"]["val"])
        if longest is not None and longest <= LONGEST_SEARCH:
            seen.append((expression, parameter, longest))

    collect()
    answered = 0
    for expression, parameter, longest in seen:
        given_ = [parameter] if "$1" in expression else []
        text = expression.replace("$1", "$1::text")
        with suppress(*CANNOT_BE_EVALUATED):
            assert await admin.fetchval(f"SELECT length(({text})::text)", *given_) <= longest, expression
            answered += 1
    assert answered > 40


async def test_parameters_of_a_search_are_short(server: Server, database_name: str):
    long, longer = "a " * (LONGEST_PARAMETER // 2), "a " * LONGEST_PARAMETER
    async with Gateway.open([server.configure(database_name)]) as gateway:
        for query in (
            "SELECT numnode(plainto_tsquery('simple', $1))",
            "SELECT numnode(plainto_tsquery('simple', $1::jsonb::text)), $1::text",
            "SELECT to_tsvector('simple', 'a') @@ $1",
            "SELECT repeat('a', 9) @@ $1",
            "SELECT numnode($1)",
            "SELECT ts_rank(to_tsvector('simple', 'a'), $1)",
        ):
            with pytest.raises(DragomanError) as refused:
                await gateway.query(None, query, params=[longer])
            assert isinstance(refused.value, ParameterError | UnsafeSql), query
        assert (await gateway.query(None, "SELECT numnode(plainto_tsquery('simple', $1))", params=[long])).rows
        assert (await gateway.query(None, "SELECT length($1)", params=[longer])).rows == [[len(longer)]]
        answer = await gateway.query(None, "SELECT to_tsvector('simple', $1) @@ to_tsquery('simple', $1)", params=["a"])
        assert answer.rows == [[True]]
