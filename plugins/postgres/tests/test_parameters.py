"""Parameters are bound by the types the server reports; what does not fit is told in terms of the type."""

from random import Random

import pytest
from dragoman import Gateway, ParameterError, QueryError
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman.tools import Toolbox

GIVEN = [
    ("$1::smallint", -5, -5),
    ('$1::"char"', "r", "r"),
    ('$1::"char" = \'\'::"char"', "", True),
    ("(SELECT count(*) FROM pg_class WHERE relname = 'pg_class' AND relkind = $1)", "r", 1),
    ("(SELECT relkind = ANY ($1) FROM pg_class WHERE relname = 'pg_class')", ["r", "v"], True),
    ("$1::int4range", "[1,5]", "[1,6)"),
    ("$1::int4range", None, None),
    ("$1::tstzrange", "[2020-01-01 00:00+00,)", '["2020-01-01 00:00:00+00",)'),
    ("$1::numrange = numrange(1.5, 2)", "[1.50,2.0)", True),
    ("$1::int4range[]", ["[1,2)", "empty", None], ["[1,2)", "empty", None]),
    ("int4range(1, 5) @> $1", "[2,3)", True),
    ("$1::integer", 7.0, 7),
    ("$1::bigint", "9007199254740993", "9007199254740993"),
    ("$1::bigint", 9007199254740993, "9007199254740993"),
    ("$1::oid", 4294967295, 4294967295),
    ("$1::numeric", "12345678901234567890.50", "12345678901234567890.50"),
    ("$1::numeric", 12.5, "12.5"),
    ("$1::numeric", 10**30, "1" + "0" * 30),
    ("$1::numeric", "NaN", "NaN"),
    ("$1::real", 0.1, 0.1),
    ("$1::float8", 3, 3.0),
    ("$1::float8", "Infinity", "Infinity"),
    ("$1::boolean", True, True),
    ("$1::boolean", "false", False),
    ("$1::text", 'it\'s "odd" $1 -- ;', 'it\'s "odd" $1 -- ;'),
    ("$1::text", 42, "42"),
    ("$1::varchar", None, None),
    ("$1::char(3)", "ab", "ab "),
    ("$1", "untyped", "untyped"),
    ("$1::date", "infinity", "infinity"),
    ("$1::date", "0044-03-15 BC", "0044-03-15 BC"),
    ("$1::timestamptz", "2024-02-29 13:14:15.123456+02", "2024-02-29 11:14:15.123456+00"),
    ("$1::interval", "1 mon 2 days", "P1M2D"),
    ("$1::time", "24:00", "24:00:00"),
    ("$1::uuid", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"),
    ("$1::inet", "10.1.2.3/8", "10.1.2.3/8"),
    ("$1::bit(3)", "101", "101"),
    ("$1::bytea", "\\x00ff10", "AP8Q"),
    ("$1::jsonb", {"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
    ("$1::jsonb", [1, 2], [1, 2]),
    ("$1::bytea", "AP8Q", "AP8Q"),
    ("$1::bytea[]", ["AP8Q", "\\x00"], ["AP8Q", "AA=="]),
    ("$1::jsonb", '{"a": 1.10}', {"a": 1.1}),
    ("$1::jsonb", True, True),
    ("$1::json", 5, 5),
    ("$1::point", "(1,2)", "(1,2)"),
    ("$1::money", "12.34", "$12.34"),
    ("$1::int[]", [1, None, "3"], [1, None, 3]),
    ("$1::int[]", [[1, 2], [3, 4]], [[1, 2], [3, 4]]),
    ("$1::int[]", "{1,NULL,3}", [1, None, 3]),
    ("$1::text[]", ["a,b", 'c"d', None, ""], ["a,b", 'c"d', None, ""]),
    ("$1::numeric[]", ["1.50", 2], ["1.50", "2"]),
    ("$1::date[]", ["2024-01-01", None], ["2024-01-01", None]),
    ("$1::jsonb[]", [{"a": 1}, '"x"'], [{"a": 1}, "x"]),
    ("$1::feeling", "sad", "sad"),
    ("$1::feeling[]", ["sad"], ["sad"]),
    ("$1::even", 4, 4),
    ("$1::text::int4range", "[1,5)", "[1,5)"),
    ("(SELECT count(*) FROM pg_type WHERE oid = ANY($1))", [16, 23], 2),
    ("(SELECT max(n) FROM generate_series(1, 9) AS n LIMIT $1)", 1, 9),
]
REFUSED = [
    ("$1::integer", "abc", "integer"),
    ("$1::integer", 1.5, "integer"),
    ("$1::integer", True, "integer"),
    ("$1::integer", 2**40, "2147483647"),
    ("$1::smallint", 40000, "32767"),
    ("$1::float8", [1], "number"),
    ("$1::boolean", 1, "true or false"),
    ("$1::text", {"a": 1}, "text"),
    ("$1::text", "a\0b", "NUL"),
    ("$1::int[]", 5, "array"),
    ("$1::int[]", "{1", "array"),
    ("$1::int[]", [1, "x"], "integer"),
    ("$1::int4range", "[1", "malformed range"),
    ("$1::int4range", 5, "malformed range"),
    ("$1::int4range", [1, 2], "a text"),
    ("$1::mine", "[1,2)", "mine"),
    ("$1::oidvector", "1 2", "oidvector"),
    ("$1::int2vector[]", ["1 2"], "int2vector"),
    ('$1::"char"', "rs", "ASCII"),
    ('$1::"char"', "é", "ASCII"),
    ("$1::date", "nonsense", "date"),
    ("$1::numeric", "1.2.3", "numeric"),
    ("$1::uuid", "xyz", "uuid"),
    ("$1::jsonb", "{broken", "json"),
    ("$1::feeling", "furious", "feeling"),
    ("$1::bytea", "no base64", "base64"),
    ("$1::int[]", [[1], [2, 3]], "array"),
]


@pytest.fixture(scope="module", autouse=True)
async def types(admin):
    await admin.execute(
        "CREATE TYPE mine AS RANGE (SUBTYPE = integer);"
        "CREATE TYPE feeling AS ENUM ('sad', 'glad'); CREATE DOMAIN even AS integer CHECK (VALUE % 2 = 0)"
    )


@pytest.mark.parametrize(("written", "given", "wanted"), GIVEN, ids=str)
async def test_a_parameter_arrives_exactly(executor, written, given, wanted):
    for _ in range(2):
        assert await value_of(executor, f"SELECT {written} AS v", given) == wanted


@pytest.mark.parametrize(("written", "given", "word"), REFUSED, ids=str)
async def test_a_parameter_that_does_not_fit_is_told_so(executor, admin, written, given, word):
    error = await failure_of(executor, f"SELECT {written} AS v", given)
    # PostgreSQL 13 does not say where a value stood that it could not read.
    kind = ParameterError if admin.get_server_version() >= (14,) else ParameterError | QueryError
    assert isinstance(error, kind), error
    assert word in error.message
    assert error.suggestion
    assert await value_of(executor, "SELECT 1") == 1


async def test_the_text_of_an_array_is_read_as_the_server_reads_it_or_refused(executor, admin):
    random = Random("arrays")
    pieces = ["a", "bc", "1", "NULL", "null", " ", "\t", "\u00a0", "\x1f", '"', '""', "\\", ",", "{", "}", "[", "="]
    texts = ["", "a", "ab", "12", '"a"', "(a)", "{a}b", "{a},", ",{a}", "{}{}", "{ a , b }", "{a,}", "{}", "{ }"]
    texts += ["{" + "".join(random.choices(pieces, k=random.randint(0, 6))) + "}" for _ in range(400)]
    texts += ["".join(random.choices(pieces, k=random.randint(0, 6))) for _ in range(200)]
    taken = 0
    for text in texts:
        try:
            found = await value_of(executor, "SELECT $1::text[]::text", text)
        except ParameterError:
            continue
        taken += 1
        # What the server refuses, we do not make up.
        assert found == await admin.fetchval("SELECT $1::text::text[]::text", text), text
    assert taken > 50


async def test_parameters_of_many_types_stand_together(executor):
    sql = "SELECT $2::date, $1::numeric, $4::int4range IS NULL, $3::text[]"
    assert (await ask(executor, sql, "1.0", "2024-01-01", ["x"], None))[1] == [["2024-01-01", "1.0", True, ["x"]]]


async def test_ranges_are_read_after_their_element_s_type_was_a_parameter(executor):
    assert (await ask(executor, "SELECT numrange(1, 2), $1::numeric", "3"))[1] == [["[1,2)", "3"]]
    assert await value_of(executor, "SELECT ROW(numrange(1, 2), 3.0)") == ["[1,2)", "3.0"]


async def test_a_parameter_nothing_tells_the_type_of_is_a_clear_error(executor):
    error = await failure_of(executor, "SELECT $1 IS NULL, $2::int", None, 1)
    assert isinstance(error, ParameterError)
    assert "$1" in error.message


async def test_a_row_is_found_by_a_range_and_by_what_refers_to_it(server, database_name, admin):
    await admin.execute(
        "CREATE TABLE stays (room int, during daterange, guest text, PRIMARY KEY (room, during));"
        "CREATE TABLE weeks (week int4range PRIMARY KEY, name text);"
        "CREATE TABLE plans (id int PRIMARY KEY, week int4range REFERENCES weeks);"
        "INSERT INTO stays VALUES (1, '[2026-01-01,2026-01-05)', 'Ada'), (1, '[2026-01-05,2026-01-09)', 'Bob');"
        "INSERT INTO weeks VALUES ('[1,2)', 'first'); INSERT INTO plans VALUES (1, '[1,2)')"
    )
    async with Gateway.open([server.configure(database_name, name="db")]) as gateway:
        toolbox = Toolbox(gateway, profile="full")
        for arguments, wanted in (
            ({"table_name": "stays", "key": {"room": 1, "during": "[2026-01-05,2026-01-08]"}}, "Bob"),
            ({"table_name": "weeks", "key": "[1,2)"}, "first"),
            ({"table_name": "plans", "key": 1}, "first"),
        ):
            assert wanted in (await toolbox.call("get_row", arguments)).text
