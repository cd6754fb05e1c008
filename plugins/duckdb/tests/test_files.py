"""Every type of DuckDB's goes out to Parquet and Arrow files and comes back equal, or as its text, which is told."""

import duckdb
import pytest
from dragoman import Database, Gateway
from dragoman.testing.files import TEXT, types_in_files

VALUES = {
    "boolean": ("true", "bool"),
    "tinyint": ("(-128)::TINYINT", "int64"),
    "smallint": ("(-32768)::SMALLINT", "int64"),
    "integer": ("2147483647::INTEGER", "int64"),
    "bigint": ("9223372036854775807::BIGINT", "int64"),
    "utinyint": ("255::UTINYINT", "int64"),
    "usmallint": ("65535::USMALLINT", "int64"),
    "uinteger": ("4294967295::UINTEGER", "int64"),
    "ubigint": ("9223372036854775807::UBIGINT", "int64"),
    "ubigint beyond a bigint": ("18446744073709551615::UBIGINT", TEXT),
    "hugeint": ("170141183460469231731687303715884105727::HUGEINT", TEXT),
    "uhugeint": ("340282366920938463463374607431768211455::UHUGEINT", TEXT),
    "bignum": ("123456789012345678901234567890123456789012345::BIGNUM", TEXT),
    "float": ("0.1::FLOAT", "double"),
    "double": ("0.1::DOUBLE", "double"),
    "double nan": ("'NaN'::DOUBLE", "double"),
    "decimal": ("12.50::DECIMAL(10,2)", "decimal128(10, 2)"),
    "decimal of most digits": ("repeat('9', 28)::DECIMAL(38,10)", "decimal128(38, 10)"),
    "varchar": ("'größe 🙂'", TEXT),
    "char": ("'x'::CHAR", TEXT),
    "blob": ("'\\x00\\xFF'::BLOB", "binary"),
    "bit": ("'10101'::BIT", TEXT),
    "uuid": ("'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID", "extension<arrow.uuid>"),
    "date": ("DATE '2024-02-29'", "date32[day]"),
    "date infinity": ("DATE 'infinity'", TEXT),
    "date before christ": ("DATE '0044-03-15 (BC)'", TEXT),
    "time": ("TIME '13:14:15.123456'", "time64[us]"),
    "time at the day's end": ("TIME '24:00:00'", TEXT),
    "time_ns": ("'13:14:15.123456789'::TIME_NS", TEXT),
    "time with time zone": ("TIMETZ '12:00:00+05:30'", TEXT),
    "timestamp": ("TIMESTAMP '2024-02-29 13:14:15.123456'", "timestamp[us]"),
    "timestamp infinity": ("TIMESTAMP 'infinity'", TEXT),
    "timestamp_s": ("TIMESTAMP_S '2024-02-29 13:14:15'", "timestamp[us]"),
    "timestamp_ms": ("TIMESTAMP_MS '2024-02-29 13:14:15.123'", "timestamp[us]"),
    "timestamp_ns": ("TIMESTAMP_NS '2024-02-29 13:14:15.123456789'", TEXT),
    "timestamp with time zone": ("TIMESTAMPTZ '2024-02-29 13:14:15+02:00'", "timestamp[us, tz=UTC]"),
    "interval": ("INTERVAL '1 month 3 days 4.5 seconds'", TEXT),
    "enum": ("CAST('Glad' AS ENUM('Glad', 'sad'))", TEXT),
    "json": ("""'{"a": [1, 2.50]}'::JSON""", TEXT),
    "list": ("[1, NULL, 3]::INTEGER[]", "list<item: int64>"),
    "list of texts": ("['a', NULL, '']", "list<item: string>"),
    "list of decimals": ("[1.25::DECIMAL(10,2)]", "list<item: decimal128(10, 2)>"),
    "list of lists": ("[[1], []]", "list<item: list<item: int64>>"),
    "array": ("[1, 2]::INTEGER[2]", "list<item: int64>"),
    "struct": ("struct_pack(a := 1, b := DATE '2024-02-29')", TEXT),
    "map": ("MAP(['a'], [12.50])", TEXT),
    "union": ("union_value(n := 1)", TEXT),
    "variant": ("struct_pack(a := 1)::VARIANT", TEXT),
    "geometry": ("'POINT(1 2)'::GEOMETRY", TEXT),
    "timestamptz_ns": ("'2024-02-29 13:14:15.123456789+02:00'::TIMESTAMPTZ_NS", TEXT),
    "tuple": ("row(1, 'x')", TEXT),
    "null": ("NULL", TEXT),
}
"""Each with the type that it has in files."""
UNSTORED = {"any", "invalid", "table", "pointer", "unknown", "validity", "type", "unbound", "template", "sqlnull"}
"""What DuckDB lists and no column has."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
async def test_every_type_goes_out_to_files_and_comes_back_equal(tmp_path):
    duckdb.connect(tmp_path / "empty.duckdb").close()
    database = Database(name="d", dialect="duckdb", database="empty.duckdb", folder=tmp_path)
    async with Gateway.open([database]) as gateway:
        result = await gateway.query(
            None, "SELECT " + ", ".join(f'{sql} AS "{case}"' for case, (sql, _) in VALUES.items())
        )
    types = types_in_files(tmp_path, result.columns, [*result.rows, [None] * len(VALUES)])
    assert dict(zip(VALUES, types, strict=True)) == {case: kind for case, (_, kind) in VALUES.items()}


def test_no_type_of_duckdb_s_is_forgotten():
    with duckdb.connect() as connection:
        found = connection.execute("SELECT DISTINCT lower(logical_type) FROM duckdb_types()").fetchall()
    assert {name for (name,) in found} - UNSTORED - set(VALUES) == set()
