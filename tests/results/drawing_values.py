"""Random values of every type, as SQL, under random names: what tests of files and kept results ask for."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

TEXTS = (
    "",
    " ",
    "a",
    "NULL",
    "null",
    "\\N",
    "it's",
    'say "hi"',
    '"',
    ",",
    ";",
    "a\r\nb",
    "\r",
    "\n",
    "tab\there",
    "=1+1",
    "+1",
    "-1+1",
    "-1",
    "@x",
    " =1",
    "\ufeff=1",
    "\ufeff",
    "'",
    "'=1",
    "Zo\u00eb",
    "\U0001f600",
    "e\u0301",
    "\u2028",
    "\x01",
    "\x1f",
    "\x7f",
    "\x85",
    "\ufffe",
    "\uffff",
    "_x0041_",
    "_x005F_",
    "</t>",
    "&amp;",
    "<![CDATA[",
    "007",
    "1e5",
    "TRUE",
    "NaN",
    "2024-02-29",
    "0.10",
    "{}",
    "[1]",
    "http://x",
    "\ud7ff\ue000",
    "x" * 40_000,
)
"""Texts that files, sheets and readers have trouble with."""
NAMES = (
    "a",
    "A",
    "a",
    "a_2",
    "b c",
    'q"q',
    "x,y",
    "l\nb",
    "=1+1",
    "\U0001f600",
    "Zo\u00eb",
    "select",
    "1",
    "'",
    "_x0041_",
)
"""Names of columns, some of them equal."""
INTEGERS = (
    0,
    1,
    -1,
    7,
    2**31 - 1,
    -(2**31),
    2**53 - 1,
    2**53,
    -(2**53),
    2**63 - 1,
    -(2**63),
    999_999_999_999_999,
    10**15,
)
FLOATS = ("0", "0.0", "0.1", "1.5", "1e308", "5e-324", "2.2250738585072014e-308", "1e21", "123456789012345680", "1e15")
DIGITS = (1, 2, 5, 15, 16, 19, 20, 38, 39)
Draw = Callable[[random.Random], str]
"""Draws one value as an SQL expression."""


def one_of(*expressions: str) -> Draw:
    """Return what draws one of these."""
    return lambda rng: rng.choice(expressions)


def quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def draw_text(rng: random.Random) -> str:
    """Return a text of TEXTS, of two of them, or of any characters, unquoted."""
    chance = rng.random()
    if chance < 0.6:
        return rng.choice(TEXTS)
    if chance < 0.8:
        return rng.choice(TEXTS[:-1]) + rng.choice(TEXTS[:-1])
    codes = (
        rng.choice((rng.randrange(1, 128), rng.randrange(0xA0, 0xD800), rng.randrange(0x10000, 0x110000)))
        for _ in range(5)
    )
    return "".join(map(chr, codes))


def draw_integer(rng: random.Random) -> int:
    return rng.choice(INTEGERS) if rng.random() < 0.6 else rng.randrange(-(10**6), 10**6)


def draw_decimal(rng: random.Random) -> str:
    """Return the digits of a decimal of any length."""
    whole, part = rng.choice(DIGITS), rng.choice((0, 1, 2, 9, 20))
    digits = "".join(rng.choice("0123456789") for _ in range(whole + part))
    text = f"{digits[:whole]}.{digits[whole:]}" if part else digits
    return rng.choice(("", "-")) + text


def draw_bytes(rng: random.Random) -> str:
    return rng.choice(("", "00", "ff", "00ff10", "c3a9", rng.randbytes(5).hex()))


def draw_float(rng: random.Random) -> str:
    """Return a finite float as SQL writes it."""
    if rng.random() < 0.5:
        return rng.choice(("", "-")) + rng.choice(FLOATS)
    return repr(rng.uniform(-1, 1) * 10.0 ** rng.randrange(-20, 25))


def draw_day(rng: random.Random) -> str:
    year = rng.choice((1, 99, 1582, 1899, 1900, 1969, 1970, 2000, 2024, 9999))
    return f"{year:04}-{rng.randrange(1, 13):02}-{rng.randrange(1, 29):02}"


def draw_time(rng: random.Random) -> str:
    part = rng.choice(("", ".5", ".000001", ".999999", ".123"))
    return f"{rng.randrange(24):02}:{rng.randrange(60):02}:{rng.randrange(60):02}{part}"


def draw_instant(rng: random.Random) -> str:
    return f"{draw_day(rng)} {draw_time(rng)}"


def draw_zone(rng: random.Random) -> str:
    return rng.choice(("+00", "+02", "-08:00", "+05:30"))


def as_type(form: str, draw: Callable[[random.Random], Any]) -> Draw:
    """Return what draws a value into an expression; its text is quoted where the form says `{quoted}`."""

    def expression(rng: random.Random) -> str:
        value = str(draw(rng))
        return form.format(quoted=quote(value), plain=value)

    return expression


def any_of(*draws: Draw) -> Draw:
    """Return what draws by one of these."""
    return lambda rng: rng.choice(draws)(rng)


def array_of(form: str, draw: Draw, null: str = "NULL") -> Draw:
    """Return what draws an array of up to four elements, NULL among them."""

    def expression(rng: random.Random) -> str:
        elements = [draw(rng) if rng.random() < 0.8 else null for _ in range(rng.randrange(5))]
        return form.format(", ".join(elements))

    return expression


_JSON = (
    '{"a": 1}',
    "[]",
    "{}",
    "null",
    '"x"',
    '"=1+1"',
    "1.10",
    "12345678901234567890",
    '{"a": 1, "a": 2}',
    '[1, "\\ud83d\\ude00", null, true, 1e400]',
    '{"k": {"=1": [0.1, "a\\nb"]}}',
    "-0.0",
)
_PG_FLOAT = any_of(
    as_type("'{plain}'::float8", draw_float),
    one_of(*(f"'{each}'::float8" for each in ("NaN", "Infinity", "-Infinity"))),
)
_PG_TEXT = as_type("{quoted}::text", draw_text)
_PG_DATE = any_of(
    as_type("'{plain}'::date", draw_day),
    one_of(*(f"'{each}'::date" for each in ("infinity", "-infinity", "0044-03-15 BC", "5874897-12-31", "10000-01-01"))),
)
_PG_STAMP = any_of(
    as_type("'{plain}'::timestamp", draw_instant),
    one_of(
        *(
            f"'{each}'::timestamp"
            for each in ("infinity", "0044-03-15 12:00:00 BC", "294276-12-31 23:59:59.999999", "10000-01-01")
        )
    ),
)
_PG_INSTANT = any_of(
    lambda rng: f"'{draw_instant(rng)}{draw_zone(rng)}'::timestamptz",
    one_of(
        *(
            f"'{each}'::timestamptz"
            for each in ("-infinity", "0001-01-01 00:00:00+02", "9999-12-31 23:59:59-01", "0001-01-01 00:00:00+00")
        )
    ),
)
_PG_INTEGER = as_type("({plain})::bigint", draw_integer)
POSTGRES: Mapping[str, Draw] = {
    "smallint": as_type("({plain})::smallint", lambda rng: rng.choice((0, 1, -1, 32767, -32768))),
    "integer": as_type("({plain})::integer", lambda rng: rng.choice((0, 7, 2**31 - 1, -(2**31)))),
    "bigint": _PG_INTEGER,
    "numeric": any_of(
        as_type("{quoted}::numeric", draw_decimal),
        one_of(
            "'NaN'::numeric",
            "'Infinity'::numeric",
            "'-Infinity'::numeric",
            "1e1000::numeric",
            "1e-500::numeric",
            "'-0'::numeric",
        ),
    ),
    "numeric(12,2)": any_of(
        as_type("({plain} % 10000000000)::numeric(12,2)", lambda rng: draw_decimal(rng).lstrip("-")),
        one_of("'NaN'::numeric(12,2)", "(-0.01)::numeric(12,2)"),
    ),
    "numeric(60,30)": as_type("({quoted}::numeric % 1e29)::numeric(60,30)", draw_decimal),
    "numeric(3,-2)": one_of("12345::numeric(3,-2)", "0::numeric(3,-2)"),
    "real": any_of(
        one_of(
            "0.1::real",
            "'NaN'::real",
            "'-Infinity'::real",
            "'-0'::real",
            "16777217::real",
            "3.4e38::real",
            "1e-45::real",
            "1e15::real",
        )
    ),
    "double": _PG_FLOAT,
    "money": one_of("'12.34'::money", "'-92233720368547758.08'::money"),
    "boolean": one_of("true", "false"),
    "text": _PG_TEXT,
    "varchar(50000)": as_type("{quoted}::varchar(50000)", draw_text),
    "char(5)": one_of("'ab'::char(5)", "''::char(5)", "'=1'::char(5)"),
    "bytea": as_type("'\\x{plain}'::bytea", draw_bytes),
    "date": _PG_DATE,
    "time": any_of(as_type("'{plain}'::time", draw_time), one_of("'24:00:00'::time")),
    "timetz": lambda rng: f"'{draw_time(rng)}{draw_zone(rng)}'::timetz",
    "timestamp": _PG_STAMP,
    "timestamp(0)": as_type("'{plain}'::timestamp(0)", draw_instant),
    "timestamptz": _PG_INSTANT,
    "interval": one_of(
        *(f"'{each}'::interval" for each in ("0", "1 mon 2 days -03:04:05.678", "-178000000 years", "1 us", "24:00:00"))
    ),
    "json": as_type("{quoted}::json", lambda rng: rng.choice(_JSON)),
    "jsonb": as_type("{quoted}::jsonb", lambda rng: rng.choice([each for each in _JSON if "1e400" not in each])),
    "uuid": one_of("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::uuid", "'00000000-0000-0000-0000-000000000000'::uuid"),
    "inet": one_of("'10.1.2.3'::inet", "'10.1.2.3/8'::inet", "'::1'::inet"),
    "bit(3)": one_of("B'101'::bit(3)", "B'000'::bit(3)"),
    "range": one_of("int4range(1, 5)", "'empty'::int4range", "int4range(NULL, NULL)"),
    "mood": one_of("'sad'::mood", "'=1+1'::mood", "'quite \"ok\"'::mood"),
    "positive": one_of("7::positive", "1::positive"),
    "pair": as_type("ROW(1, {quoted})::pair", draw_text),
    "integer[]": any_of(
        array_of("ARRAY[{}]::integer[]", one_of("1", "-7", "2147483647")),
        one_of("'[0:1]={{1,2}}'::integer[]".replace("{{", "{").replace("}}", "}"), "ARRAY[[1, 2], [3, NULL]]"),
    ),
    "bigint[]": array_of("ARRAY[{}]::bigint[]", _PG_INTEGER),
    "text[]": array_of("ARRAY[{}]::text[]", _PG_TEXT),
    "float8[]": array_of("ARRAY[{}]::float8[]", _PG_FLOAT),
    "date[]": array_of("ARRAY[{}]::date[]", _PG_DATE),
    "timestamptz[]": array_of("ARRAY[{}]::timestamptz[]", _PG_INSTANT),
    "bytea[]": array_of("ARRAY[{}]::bytea[]", as_type("'\\x{plain}'::bytea", draw_bytes)),
    "numeric(6,3)[]": array_of("ARRAY[{}]::numeric(6,3)[]", one_of("1.5", "-999.999", "'NaN'")),
    "jsonb[]": array_of("ARRAY[{}]::jsonb[]", as_type("{quoted}::jsonb", lambda rng: rng.choice(_JSON[:6]))),
    "pair[]": array_of("ARRAY[{}]::pair[]", as_type("ROW(1, {quoted})::pair", draw_text)),
    "mood[]": array_of("ARRAY[{}]::mood[]", one_of("'sad'", "'happy'")),
}
"""What draws a value of each type of Postgres."""
POSTGRES_SETUP = """
CREATE TYPE mood AS ENUM ('sad', '=1+1', 'quite "ok"', 'happy');
CREATE TYPE pair AS (a integer, b text);
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
"""

_DUCK_TEXT = as_type("{quoted}::VARCHAR", draw_text)
_DUCK_DOUBLE = any_of(
    as_type("'{plain}'::DOUBLE", draw_float), one_of("'nan'::DOUBLE", "'inf'::DOUBLE", "'-inf'::DOUBLE")
)
DUCKDB: Mapping[str, Draw] = {
    "TINYINT": one_of("(-128)::TINYINT", "127::TINYINT"),
    "UTINYINT": one_of("255::UTINYINT", "0::UTINYINT"),
    "INTEGER": one_of("0::INTEGER", "(-2147483648)::INTEGER"),
    "UINTEGER": one_of("4294967295::UINTEGER"),
    "BIGINT": as_type("({plain})::BIGINT", draw_integer),
    "UBIGINT": one_of("18446744073709551615::UBIGINT", "1::UBIGINT", "9223372036854775808::UBIGINT"),
    "HUGEINT": one_of(
        "170141183460469231731687303715884105727::HUGEINT",
        "0::HUGEINT",
        "(-170141183460469231731687303715884105727)::HUGEINT",
    ),
    "UHUGEINT": one_of("340282366920938463463374607431768211455::UHUGEINT", "1::UHUGEINT"),
    "DECIMAL(12,2)": one_of("12.50::DECIMAL(12,2)", "(-0.01)::DECIMAL(12,2)", "9999999999.99::DECIMAL(12,2)"),
    "DECIMAL(38,10)": one_of("1.5::DECIMAL(38,10)", "(-1234567890123456789012345678.0123456789)::DECIMAL(38,10)"),
    "FLOAT": one_of("0.1::FLOAT", "'nan'::FLOAT", "'-inf'::FLOAT", "16777217::FLOAT", "'-0.0'::FLOAT"),
    "DOUBLE": _DUCK_DOUBLE,
    "BOOLEAN": one_of("true", "false"),
    "VARCHAR": _DUCK_TEXT,
    "BLOB": lambda rng: "'" + "".join(f"\\x{each:02X}" for each in bytes.fromhex(draw_bytes(rng))) + "'::BLOB",
    "DATE": any_of(
        as_type("'{plain}'::DATE", draw_day),
        one_of("'infinity'::DATE", "'0044-03-15 (BC)'::DATE", "'20000-01-01'::DATE"),
    ),
    "TIME": any_of(as_type("'{plain}'::TIME", draw_time), one_of("'24:00:00'::TIME")),
    "TIMETZ": lambda rng: f"'{draw_time(rng)}{draw_zone(rng)}'::TIMETZ",
    "TIMESTAMP": any_of(
        as_type("'{plain}'::TIMESTAMP", draw_instant),
        one_of("'infinity'::TIMESTAMP", "'0044-03-15 (BC) 12:00:00'::TIMESTAMP", "'20000-01-01'::TIMESTAMP"),
    ),
    "TIMESTAMP_S": as_type("'{plain}'::TIMESTAMP_S", draw_instant),
    "TIMESTAMP_MS": as_type("'{plain}'::TIMESTAMP_MS", draw_instant),
    "TIMESTAMP_NS": one_of("'2024-01-02 03:04:05.123456789'::TIMESTAMP_NS", "'1970-01-01'::TIMESTAMP_NS"),
    "TIMESTAMPTZ": any_of(
        lambda rng: f"'{draw_instant(rng)}{draw_zone(rng)}'::TIMESTAMPTZ", one_of("'-infinity'::TIMESTAMPTZ")
    ),
    "INTERVAL": one_of(
        "INTERVAL '1 month 2 days'", "INTERVAL '-3 hours'", "INTERVAL '0 seconds'", "INTERVAL '1 microsecond'"
    ),
    "UUID": one_of("'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'::UUID"),
    "BIT": one_of("'101'::BIT", "'0'::BIT"),
    "ENUM": one_of("'sad'::mood", "'=1+1'::mood"),
    "JSON": as_type("{quoted}::JSON", lambda rng: rng.choice(_JSON)),
    "BIGINT[]": array_of("[{}]::BIGINT[]", as_type("({plain})::BIGINT", draw_integer)),
    "VARCHAR[]": array_of("[{}]::VARCHAR[]", _DUCK_TEXT),
    "DOUBLE[]": array_of("[{}]::DOUBLE[]", _DUCK_DOUBLE),
    "DATE[]": array_of("[{}]::DATE[]", as_type("'{plain}'::DATE", draw_day)),
    "INTEGER[2]": one_of("[1, NULL]::INTEGER[2]", "[1, 2]::INTEGER[2]"),
    "STRUCT": as_type("{{'a': 1, 'b': {quoted}}}::STRUCT(a INTEGER, b VARCHAR)", draw_text),
    "MAP": one_of("MAP {'a': 1, '=b': NULL}::MAP(VARCHAR, INTEGER)", "MAP {}::MAP(VARCHAR, INTEGER)"),
    "UNION": one_of(
        "union_value(n := 1)::UNION(n INTEGER, t VARCHAR)", "union_value(t := '=1')::UNION(n INTEGER, t VARCHAR)"
    ),
}
"""What draws a value of each type of DuckDB."""
DUCKDB_SETUP = "CREATE TYPE mood AS ENUM ('sad', '=1+1')"

_SQLITE_ANY = any_of(
    as_type("{plain}", draw_integer),
    any_of(as_type("{plain}", draw_float), one_of("9e999", "-9e999", "2.0", "1e15")),
    as_type("{quoted}", draw_text),
    as_type("x'{plain}'", draw_bytes),
    one_of(
        "'a' || char(0) || 'b'", "CAST(x'ff41' AS TEXT)", "'12.50'", "'2024-02-29'", "'2024-02-29 12:00:00'", "x'3132'"
    ),
)
SQLITE: Mapping[str, Draw] = dict.fromkeys(
    (
        "",
        "INTEGER",
        "REAL",
        "TEXT",
        "BLOB",
        "NUMERIC",
        "DECIMAL(10,2)",
        "BOOLEAN",
        "DATE",
        "DATETIME",
        "TIME",
        "UUID",
        "JSON",
        "BIGINT",
    ),
    _SQLITE_ANY,
)
"""What draws a value for a column of each declared type of SQLite, where any value may stand in any column."""


@dataclass(frozen=True)
class Asked:
    """A statement, what must run before it, and its number of columns."""

    sql: str
    setup: Sequence[str] = field(default=())


def _names(rng: random.Random, count: int) -> list[str]:
    return [rng.choice(NAMES) for _ in range(count)]


def _quote_name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _rows(rng: random.Random, draws: Sequence[Draw], nulls: Sequence[str]) -> list[str]:
    """Return rows as SQL, up to six, about one value in six NULL."""
    return [
        "("
        + ", ".join(null if rng.random() < 0.15 else draw(rng) for draw, null in zip(draws, nulls, strict=True))
        + ")"
        for _ in range(rng.randrange(1, 7))
    ]


def _select(rng: random.Random, columns: Sequence[str], source: str) -> str:
    """Return a query of columns under random names, sometimes of no rows, sometimes the first row many times before."""
    named = ", ".join(
        f"{column} AS {_quote_name(name)}" for column, name in zip(columns, _names(rng, len(columns)), strict=True)
    )
    return f"SELECT {named} FROM {source}" + (" WHERE 1 = 0" if rng.random() < 0.08 else "")


def ask_typed(rng: random.Random, number: int, types: Mapping[str, Draw]) -> Asked:
    """Return a statement over a table of its own, of an engine that types its columns."""
    chosen = [rng.choice(list(types)) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
    draws = [types[name] for name in chosen]
    columns = [f"c{place}" for place in range(len(chosen))]
    # The first row says which types the columns have, so that it has no NULL.
    first = "(" + ", ".join(draw(rng) for draw in draws) + ")"
    rows = ", ".join([first, *_rows(rng, draws, ["NULL"] * len(draws))])
    setup = f"CREATE TABLE t{number} AS SELECT * FROM (VALUES {rows}) AS t ({', '.join(columns)})"
    return Asked(_select(rng, columns, f"t{number}"), (setup,))


def ask_sqlite(rng: random.Random, number: int) -> Asked:
    """Return a statement over a table of its own, whose declared types its values need not fit."""
    declared = [rng.choice(list(SQLITE)) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
    columns = [f"c{place}" for place in range(len(declared))]
    made = ", ".join(f"{column} {kind}" for column, kind in zip(columns, declared, strict=True))
    rows = ", ".join(_rows(rng, [SQLITE[kind] for kind in declared], ["NULL"] * len(declared)))
    setup = (f"CREATE TABLE t{number} ({made})", f"INSERT INTO t{number} VALUES {rows}")
    return Asked(_select(rng, columns, f"t{number}"), setup)
