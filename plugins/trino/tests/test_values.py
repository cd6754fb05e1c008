"""Every type of the server, exactly: its short name and the value as JSON."""

import base64
import json

import pytest
from dragoman.testing.asking import ask
from dragoman.testing.files import TEXT, types_in_files
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.protocol import Page

MAP_OF_TEXTS = "map_from_entries(ARRAY[ROW(ARRAY['a, b'], 1), ROW(ARRAY['a', 'b'], 2)])"
VALUES = [
    ("true", "boolean", True),
    ("TINYINT '-128'", "tinyint", -128),
    ("SMALLINT '32767'", "smallint", 32767),
    ("INTEGER '-2147483648'", "integer", -2147483648),
    ("9007199254740991", "bigint", 9007199254740991),
    ("9007199254740992", "bigint", "9007199254740992"),
    ("BIGINT '-9223372036854775808'", "bigint", "-9223372036854775808"),
    ("REAL '0.1'", "real", 0.1),
    ("DOUBLE '1.7976931348623157E308'", "double", 1.7976931348623157e308),
    ("DOUBLE '4.9E-324'", "double", 5e-324),
    ("DOUBLE '-0.0'", "double", -0.0),
    ("nan()", "double", "NaN"),
    ("infinity()", "double", "Infinity"),
    ("CAST(-infinity() AS real)", "real", "-Infinity"),
    ("DECIMAL '12345678901234567890123456789012345.678'", "decimal(38,3)", "12345678901234567890123456789012345.678"),
    ("DECIMAL '123.40'", "decimal(5,2)", "123.40"),
    ("CAST(-0.5 AS decimal(3, 0))", "decimal(3,0)", "-1"),
    ("'Zoë 🦉 ''x'''", "varchar", "Zoë 🦉 'x'"),
    ("''", "varchar", ""),
    ("U&'a\\0000b'", "varchar", "a\0b"),
    ("CAST('ab' AS char(5))", "char", "ab   "),
    ("CAST('abc' AS varchar(2))", "varchar", "ab"),
    ("X'00ff10'", "varbinary", "AP8Q"),
    ("CAST(rpad('', 100, 'x') AS varbinary)", "varbinary", base64.b64encode(b"x" * 100).decode()),
    ("X''", "varbinary", ""),
    ('JSON \'{"b": [1, 2.50, null, "x"], "a": {}}\'', "json", {"b": [1, 2.5, None, "x"], "a": {}}),
    ("JSON 'null'", "json", None),
    ("JSON '\"text\"'", "json", "text"),
    ("JSON '12345678901234567890'", "json", "12345678901234567890"),
    ("DATE '2024-02-29'", "date", "2024-02-29"),
    ("DATE '-0044-03-15'", "date", "-0044-03-15"),
    ("DATE '10000-01-01'", "date", "+10000-01-01"),
    ("TIME '23:59:59.999999999999'", "time(12)", "23:59:59.999999999999"),
    ("TIME '10:11:12'", "time(0)", "10:11:12"),
    ("TIME '10:11:12.123'", "time", "10:11:12.123"),
    ("TIME '10:11:12.123456789012 +05:30'", "time(12) with time zone", "10:11:12.123456789012+05:30"),
    ("TIMESTAMP '2024-01-02 03:04:05.123456789012'", "timestamp(12)", "2024-01-02 03:04:05.123456789012"),
    ("TIMESTAMP '2024-01-02 03:04:05.123'", "timestamp", "2024-01-02 03:04:05.123"),
    ("TIMESTAMP '-0044-03-15 01:02:03'", "timestamp(0)", "-0044-03-15 01:02:03"),
    ("TIMESTAMP '20001-01-01 00:00:00'", "timestamp(0)", "+20001-01-01 00:00:00"),
    (
        "TIMESTAMP '2024-01-02 03:04:05.123456789012 America/New_York'",
        "timestamp(12) with time zone",
        "2024-01-02 03:04:05.123456789012 America/New_York",
    ),
    ("TIMESTAMP '2024-01-02 03:04:05.678 +05:30'", "timestamp with time zone", "2024-01-02 03:04:05.678 +05:30"),
    ("INTERVAL '1-2' YEAR TO MONTH", "interval year to month", "1-2"),
    ("INTERVAL -'14' MONTH", "interval year to month", "-1-2"),
    ("INTERVAL '2 03:04:05.678' DAY TO SECOND", "interval day to second", "2 03:04:05.678"),
    ("INTERVAL -'1' SECOND", "interval day to second", "-0 00:00:01.000"),
    ("ARRAY[1, NULL, 3]", "array(integer)", [1, None, 3]),
    ("ARRAY[]", "array(unknown)", []),
    ("ARRAY[ARRAY[DECIMAL '1.10'], NULL, ARRAY[]]", "array(array(decimal(3,2)))", [["1.10"], None, []]),
    ("ARRAY[9007199254740993, 1]", "array(bigint)", ["9007199254740993", 1]),
    ("ARRAY[nan(), 1E0]", "array(double)", ["NaN", 1.0]),
    ("ARRAY[X'ff', NULL]", "array(varbinary)", ["/w==", None]),
    ("ARRAY[JSON '{\"a\": 1}']", "array(json)", [{"a": 1}]),
    ("MAP(ARRAY['b', 'a'], ARRAY[1, NULL])", "map(varchar, integer)", {"b": 1, "a": None}),
    ("MAP(ARRAY[1, 2], ARRAY[DATE '2024-01-01', NULL])", "map(integer, date)", {"1": "2024-01-01", "2": None}),
    ("MAP(ARRAY[DECIMAL '1.50'], ARRAY[true])", "map(decimal(3,2), boolean)", {"1.50": True}),
    ("MAP(ARRAY[DATE '2024-01-01'], ARRAY[1])", "map(date, integer)", {"2024-01-01": 1}),
    ("MAP(ARRAY[true], ARRAY[1])", "map(boolean, integer)", {"true": 1}),
    ("MAP(ARRAY[ROW(1, 'x')], ARRAY[1])", "map(row(integer, varchar), integer)", {"[1, x]": 1}),
    (MAP_OF_TEXTS, "map(array(varchar), integer)", [["[a, b]", 1], ["[a, b]", 2]]),
    (
        "MAP(ARRAY['k'], ARRAY[MAP(ARRAY[1], ARRAY[ARRAY[9007199254740993]])])",
        "map(varchar, map(integer, array(bigint)))",
        {"k": {"1": ["9007199254740993"]}},
    ),
    ("ROW(1, 'x')", "row(integer, varchar)", [1, "x"]),
    (
        'CAST(ROW(1, NULL, ROW(2)) AS row(a bigint, "B c" varchar(9), d row(e double)))',
        'row(a bigint, "B c" varchar, d row(e double))',
        {"a": 1, "B c": None, "d": {"e": 2.0}},
    ),
    ("CAST(ROW(1, 2) AS row(a bigint, a bigint))", "row(a bigint, a bigint)", [1, 2]),
    ("CAST(ROW(1, 2) AS row(a bigint, bigint))", "row(a bigint, bigint)", [1, 2]),
    ("ARRAY[CAST(ROW(DECIMAL '1.0') AS row(x decimal(3, 1)))]", "array(row(x decimal(3,1)))", [{"x": "1.0"}]),
    ("UUID '12151FD2-7586-11E9-8F9E-2A86E4085A59'", "uuid", "12151fd2-7586-11e9-8f9e-2a86e4085a59"),
    ("IPADDRESS '2001:db8::1'", "ipaddress", "2001:db8::1"),
    ("NULL", "unknown", None),
    ("ST_Point(1.5, 2)", "Geometry", "POINT (1.5 2)"),
    ("to_spherical_geography(ST_Point(1, 2))", "SphericalGeography", "POINT (1 2)"),
    ("bing_tile('0')", "BingTile", {"x": 0, "y": 0, "zoom": 1}),
    ("rgb(1, 2, 3)", "color", "#010203"),
]


IN_FILES = {
    "true": "bool",
    "TINYINT '-128'": "int64",
    "SMALLINT '32767'": "int64",
    "INTEGER '-2147483648'": "int64",
    "9007199254740991": "int64",
    "9007199254740992": "int64",
    "BIGINT '-9223372036854775808'": "int64",
    "REAL '0.1'": "double",
    "DOUBLE '1.7976931348623157E308'": "double",
    "DOUBLE '4.9E-324'": "double",
    "DOUBLE '-0.0'": "double",
    "nan()": "double",
    "infinity()": "double",
    "CAST(-infinity() AS real)": "double",
    "DECIMAL '12345678901234567890123456789012345.678'": "decimal128(38, 3)",
    "DECIMAL '123.40'": "decimal128(5, 2)",
    "CAST(-0.5 AS decimal(3, 0))": "decimal128(3, 0)",
    "DATE '2024-02-29'": "date32[day]",
    "TIME '10:11:12'": "time64[us]",
    "TIME '10:11:12.123'": "time64[us]",
    "TIMESTAMP '2024-01-02 03:04:05.123'": "timestamp[us]",
    "TIMESTAMP '2024-01-02 03:04:05.678 +05:30'": "timestamp[us, tz=UTC]",
    "X'00ff10'": "binary",
    "CAST(rpad('', 100, 'x') AS varbinary)": "binary",
    "X''": "binary",
    "ARRAY[X'ff', NULL]": "list<item: binary>",
    "ARRAY[1, NULL, 3]": "list<item: int64>",
    "ARRAY[ARRAY[DECIMAL '1.10'], NULL, ARRAY[]]": "list<item: list<item: decimal128(3, 2)>>",
    "ARRAY[9007199254740993, 1]": "list<item: int64>",
    "ARRAY[nan(), 1E0]": "list<item: double>",
    "UUID '12151FD2-7586-11E9-8F9E-2A86E4085A59'": "extension<arrow.uuid>",
}
"""Those that have a type in Parquet and Arrow files; the others are their exact text there."""
SKETCHES = [
    ("approx_set(1)", "HyperLogLog"),
    ("CAST(approx_set(1) AS p4hyperloglog)", "P4HyperLogLog"),
    ("qdigest_agg(1)", "qdigest(bigint)"),
    ("tdigest_agg(1)", "tdigest"),
    ("make_set_digest(1)", "SetDigest"),
]


@pytest.mark.parametrize(("sql", "type_name", "value"), VALUES, ids=[sql for sql, _, _ in VALUES])
async def test_a_value_is_exact(executor, sql, type_name, value):
    columns, rows = await ask(executor, f"SELECT {sql} AS v")
    assert (columns[0].type, rows) == (type_name, [[value]])
    assert [type(rows[0][0])] == [type(value)]


async def test_every_type_goes_out_to_files_and_comes_back_equal(executor, tmp_path):
    written = [f"{sql} AS v{number}" for number, (sql, _, _) in enumerate(VALUES)]
    columns, rows = await ask(executor, f"SELECT {', '.join(written)}")
    types = types_in_files(tmp_path, columns, [*rows, [None] * len(VALUES)])
    assert {sql: kind for (sql, _, _), kind in zip(VALUES, types, strict=True) if kind != TEXT} == IN_FILES


@pytest.mark.parametrize(("sql", "type_name"), SKETCHES)
async def test_a_sketch_is_the_servers_own_base64(executor, sql, type_name):
    columns, rows = await ask(executor, f"SELECT {sql} AS v")
    assert columns[0].type == type_name
    assert base64.b64decode(rows[0][0], validate=True)


async def test_a_null_of_every_type_is_null_and_its_column_stays(executor):
    types = [type_name for _, type_name, _ in VALUES if type_name not in ("unknown", "array(unknown)")]
    types = sorted({name for name in types if "row(" not in name})
    columns, rows = await ask(executor, "SELECT " + ", ".join(f"CAST(NULL AS {name})" for name in types))
    assert [column.type for column in columns] == types
    assert rows == [[None] * len(types)]


async def test_an_empty_result_has_its_columns_and_names_may_repeat(executor):
    columns, rows = await ask(executor, "SELECT 1 AS a, DECIMAL '1.0' AS a, 'x' WHERE false")
    assert [(column.name, column.type) for column in columns] == [
        ("a", "integer"),
        ("a", "decimal(2,1)"),
        ("_col2", "varchar"),
    ]
    assert rows == []


async def test_times_of_the_server_are_in_the_configured_zone(trino_server):
    executor = TrinoExecutor(trino_server.configure(options={"timezone": "Asia/Tokyo"}))
    _, rows = await ask(executor, "SELECT current_timezone(), TIMESTAMP '2024-01-01 00:00:00 UTC', from_unixtime(0)")
    assert rows == [["Asia/Tokyo", "2024-01-01 00:00:00 UTC", "1970-01-01 09:00:00.000 Asia/Tokyo"]]
    await executor.aclose()


@pytest.mark.parametrize("chunk", [1, 7, 100])
def test_rows_of_a_cut_answer_are_those_that_are_whole(chunk):
    rows = [[1, "a],[", None], [2, 'q"\\', {"k": [1, 2]}], [3, "é🦉", [[]]]]
    body = json.dumps(rows, ensure_ascii=False, separators=(",", ":")).encode()[1:-1]
    for end in range(0, len(body) + 1, chunk):
        found = Page(None, body[:end], cut=True).rows()
        assert found == rows[: len(found)]
        assert len(found) >= body[:end].decode(errors="ignore").count("],[") - 2
    assert Page(None, body, cut=True).rows() == rows
