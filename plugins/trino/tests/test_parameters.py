"""Parameters become typed literals that the statement never holds; what does not fit is told by its number."""

import pytest
from dragoman import InvalidSql, ParameterError
from dragoman.testing.asking import ask, failure_of, value_of
from dragoman_trino.parameters import literal

# An expression over one parameter, the value given, and what comes back.
GIVEN = [
    ("coalesce(?, 1)", 5, 5),
    ("coalesce(?, TINYINT '1')", 7.0, 7),
    ("coalesce(?, BIGINT '1')", "9007199254740993", "9007199254740993"),
    ("coalesce(?, BIGINT '1')", -(2**63), str(-(2**63))),
    ("coalesce(?, DECIMAL '1.00')", "12345678901234567890.50", "12345678901234567890.50"),
    ("coalesce(?, DECIMAL '1.00')", 12.5, "12.50"),
    ("coalesce(?, DECIMAL '1')", "1e3", "1000"),
    ("coalesce(?, 1e0)", 0.1, 0.1),
    ("coalesce(?, 1e0)", "NaN", "NaN"),
    ("coalesce(?, REAL '1')", "-Infinity", "-Infinity"),
    ("coalesce(?, false)", True, True),
    ("coalesce(?, true)", "false", False),
    ("coalesce(?, '')", """it's "odd" ? -- ; \\ {""", """it's "odd" ? -- ; \\ {"""),
    ("coalesce(?, '')", "two\nlines\tand\0more \\0041 Zoë 🦉'", "two\nlines\tand\0more \\0041 Zoë 🦉'"),
    ("coalesce(?, '')", 42, "42"),
    ("coalesce(?, 'x')", None, "x"),
    ("coalesce(?, CAST('' AS char(3)))", "ab", "ab "),
    ("coalesce(?, X'')", "AP8Q", "AP8Q"),
    ("coalesce(?, X'')", "\\x00ff10", "AP8Q"),
    ("coalesce(?, JSON 'null')", {"a": [1, None, "x"]}, {"a": [1, None, "x"]}),
    ("coalesce(?, JSON 'null')", [1, "2"], [1, "2"]),
    ("coalesce(?, JSON '1')", "plain", "plain"),
    ("coalesce(?, JSON '1')", '{"b": 1}', {"b": 1}),
    ("coalesce(?, DATE '2000-01-01')", "2024-02-29", "2024-02-29"),
    ("coalesce(?, TIME '00:00:00.000000')", "13:14:15.123456", "13:14:15.123456"),
    ("coalesce(?, TIMESTAMP '2000-01-01 00:00:00.000')", "2024-02-29T13:14:15.123", "2024-02-29 13:14:15.123"),
    (
        "coalesce(?, TIMESTAMP '2000-01-01 00:00:00.000 UTC')",
        "2024-02-29T13:14:15.123Z",
        "2024-02-29 13:14:15.123 UTC",
    ),
    ("coalesce(?, INTERVAL '1' DAY)", "2 03:04:05.678", "2 03:04:05.678"),
    ("coalesce(?, INTERVAL '1' DAY)", "-0 00:00:01.000", "-0 00:00:01.000"),
    ("coalesce(?, INTERVAL '1' MONTH)", "-1-2", "-1-2"),
    (
        "coalesce(?, uuid())",
        "12151FD2-7586-11E9-8F9E-2A86E4085A59",
        "12151fd2-7586-11e9-8f9e-2a86e4085a59",
    ),
    ("coalesce(?, IPADDRESS '::1')", "10.1.2.3", "10.1.2.3"),
    ("coalesce(?, ARRAY[1])", [1, None, "3"], [1, None, 3]),
    ("coalesce(?, ARRAY[DATE '2000-01-01'])", ["2024-01-01", None], ["2024-01-01", None]),
    ("coalesce(?, ARRAY[ARRAY['x']])", [["a,b", None], []], [["a,b", None], []]),
    ("coalesce(?, MAP(ARRAY['a'], ARRAY[1]))", {"b": 2}, {"b": 2}),
    ("coalesce(?, CAST(ROW(1, 'x') AS row(a integer, b varchar)))", {"b": "y", "a": 2}, {"a": 2, "b": "y"}),
    ("?", "untyped", "untyped"),
    ("?", 12.5, 12.5),
    ("?", [1, 2], [1, 2]),
    ("?", 2**70, str(2**70)),
    ("CAST(? AS date)", "2024-01-01", "2024-01-01"),
    ("(SELECT max(name) FROM nation WHERE name LIKE ? || '%')", "F", "FRANCE"),
]
DESCRIBED = "SELECT query_id FROM system.runtime.queries WHERE query LIKE 'DESCRIBE INPUT%'"
REFUSED = [
    ("coalesce(?, 1)", "abc", "integer"),
    ("coalesce(?, 1)", 2**40, "INTEGER"),
    ("coalesce(?, 1)", True, "integer"),
    ("coalesce(?, 1)", 1.5, "integer"),
    ("coalesce(?, DECIMAL '1')", "x", "decimal"),
    ("coalesce(?, true)", 1, "boolean"),
    ("coalesce(?, '')", {"a": 1}, "varchar"),
    ("coalesce(?, X'')", "not base64", "varbinary"),
    ("coalesce(?, DATE '2000-01-01')", "31.12.2024", "DATE"),
    ("coalesce(?, DATE '2000-01-01')", 5, "date"),
    ("coalesce(?, uuid())", "x", "UUID"),
    ("coalesce(?, ARRAY[1])", "1", "array"),
    ("coalesce(?, '')", "\ud800", "varchar"),
]


@pytest.mark.parametrize(("sql", "given", "got"), GIVEN)
async def test_a_value_arrives_as_the_type_the_statement_needs(executor, sql, given, got):
    assert await value_of(executor, f"SELECT {sql}", given) == got


@pytest.mark.parametrize(("sql", "given", "named"), REFUSED)
async def test_a_value_that_does_not_fit_is_told_by_its_number_and_type(executor, sql, given, named):
    error = await failure_of(executor, f"SELECT ?,\n{sql}", 1, given)
    assert isinstance(error, ParameterError)
    assert "Parameter 2" in error.message
    assert named in error.message


async def test_a_wrong_number_of_values_is_told(executor):
    for values in ((), (1,), (1, 2, 3)):
        assert isinstance(await failure_of(executor, "SELECT ?, ? + 1", *values), ParameterError)


async def test_limits_and_lists_take_parameters(executor):
    _, rows = await ask(executor, "SELECT name FROM nation WHERE regionkey IN (?, ?) ORDER BY 1 LIMIT ?", 1, 3, 2)
    assert rows == [["ARGENTINA"], ["BRAZIL"]]


async def test_a_statement_whose_types_cannot_be_told_ahead_still_runs(executor):
    assert await value_of(executor, "SELECT json_extract_scalar(?, '$.a')", '{"a": 5}') == "5"


async def test_texts_take_one_statement_and_values_of_other_types_two(executor, trino_server):
    async def described(mark, *values):
        before = await trino_server.run(DESCRIBED)  # the server forgets old ones, so that their number means nothing
        columns = "".join(f", ? AS {mark}{place}" for place in range(len(values)))
        await ask(executor, f"SELECT 1{columns} FROM nation WHERE name = 'FRANCE'", *values)
        return len([each for each in await trino_server.run(DESCRIBED) if each not in before])

    assert await described("texts", "a", None, "b") == 0
    assert await described("mixed", "a", 1) == 1


async def test_texts_of_other_types_are_read_as_those(executor):
    sql = "SELECT min(orderkey) FROM orders WHERE orderdate = {} AND orderkey > {}"
    wanted = await value_of(executor, sql.format("DATE '1996-01-02'", "0"))
    assert wanted
    for _ in range(2):
        assert await value_of(executor, sql.format("?", "?"), "1996-01-02", "0") == wanted
    _, rows = await ask(executor, "SELECT name FROM nation ORDER BY name OFFSET ? LIMIT ?", "1", "1")
    assert rows == [["ARGENTINA"]]


async def test_an_error_of_the_statement_keeps_its_place_beside_parameters(executor):
    error = await failure_of(executor, "SELECT ?,\n  nope FROM nation", "two\nlines")
    assert error.identifier == "nope"
    assert error.offset == len("SELECT ?,\n  ")
    assert isinstance(await failure_of(executor, "SELECT ? FROM FROM", 1), InvalidSql)


async def test_long_statements_take_parameters_too(executor):
    assert await value_of(executor, f"SELECT ? /* {'x' * 60_000} */", 1) == 1


def test_a_literal_never_ends_early():
    for hostile in ("'", "''", "\\'", "a' OR 'b", "\n'", "\\", "\\\n'"):
        written = literal(hostile, "varchar")
        inner = written.removeprefix("U&")[1:-1]
        assert "'" not in inner.replace("''", "")
        assert "\n" not in written
