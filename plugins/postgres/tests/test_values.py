"""Every value is what the server itself would write, in the JSON form of the contract."""

import pytest
from dragoman import Gateway
from dragoman.testing.asking import ask, value_of
from dragoman.testing.files import TEXT, types_in_files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETUP = """
CREATE TYPE mood AS ENUM ('sad', 'quite "ok"', 'happy');
CREATE TYPE pair AS (a integer, b text);
CREATE TYPE nested AS (p pair, ps pair[], at timestamptz, r int4range, m mood, big bigint, j jsonb);
CREATE DOMAIN positive AS integer CHECK (VALUE > 0);
CREATE DOMAIN pairs AS pair[];
CREATE TYPE span AS RANGE (subtype = float8);
CREATE TABLE product (id integer, name varchar(20), price numeric(10,2));
INSERT INTO product VALUES (1, 'Pan', 12.50);
"""

VALUES = {
    "smallint": ("(-32768)::smallint", "smallint", -32768),
    "integer": ("2147483647", "integer", 2147483647),
    "bigint": ("9007199254740991", "bigint", 9007199254740991),
    "large bigint": ("9223372036854775807", "bigint", "9223372036854775807"),
    "numeric": ("12.50::numeric(10,2)", "numeric(10,2)", "12.50"),
    "numeric long": ("('1' || repeat('0', 1000) || '.5')::numeric", "numeric", "1" + "0" * 1000 + ".5"),
    "numeric nan": ("'NaN'::numeric", "numeric", "NaN"),
    "numeric integral": ("5::numeric", "numeric", "5"),
    "real": ("0.1::real", "real", 0.1),
    "real nan": ("'NaN'::real", "real", "NaN"),
    "double": ("0.1::float8", "double precision", 0.1),
    "double large": ("1.7976931348623157e308::float8", "double precision", 1.7976931348623157e308),
    "double infinity": ("'-Infinity'::float8", "double precision", "-Infinity"),
    "money": ("'12.34'::money", "money", "$12.34"),
    "boolean": ("true", "boolean", True),
    "text": ("'Zoë \U0001f600'::text", "text", "Zoë \U0001f600"),
    "varchar": ("'x'::varchar(5)", "varchar", "x"),
    "char keeps its blanks": ("'ab'::char(5)", "char", "ab   "),
    "internal char": ("'a'::\"char\"", '"char"', "a"),
    "name": ("'n'::name", "name", "n"),
    "unknown": ("'x'", "text", "x"),
    "bytea": ("'\\x00ff10'::bytea", "bytea", "AP8Q"),
    "date": ("'2024-02-29'::date", "date", "2024-02-29"),
    "date infinity": ("'infinity'::date", "date", "infinity"),
    "date bc": ("'0044-03-15 BC'::date", "date", "0044-03-15 BC"),
    "date far": ("'5874897-12-31'::date", "date", "5874897-12-31"),
    "time": ("'24:00:00'::time", "time", "24:00:00"),
    "timetz": ("'13:14:15.123456+05:30'::timetz", "timetz", "13:14:15.123456+05:30"),
    "timestamp": ("'2024-02-29 13:14:15.123456'::timestamp", "timestamp", "2024-02-29 13:14:15.123456"),
    "timestamp far": ("'294276-12-31 23:59:59.999999'::timestamp", "timestamp", "294276-12-31 23:59:59.999999"),
    "timestamptz": ("'2024-02-29 13:14:15+02'::timestamptz", "timestamptz", "2024-02-29 11:14:15+00"),
    "timestamptz infinity": ("'-infinity'::timestamptz", "timestamptz", "-infinity"),
    "interval": ("'1 mon 2 days -03:04:05.678'::interval", "interval", "P1M2DT-3H-4M-5.678S"),
    "interval zero": ("'0'::interval", "interval", "PT0S"),
    "json keeps its text where digits would go": ('\'{"a": 1.10, "a": 2}\'::json', "json", '{"a": 1.10, "a": 2}'),
    "json": ("'[1, {\"b\": null}]'::json", "json", [1, {"b": None}]),
    "jsonb": ('\'{"a": [1, 2.5, "x"]}\'::jsonb', "jsonb", {"a": [1, 2.5, "x"]}),
    "jsonb big": ("'{\"a\": 9007199254740993}'::jsonb", "jsonb", '{"a": 9007199254740993}'),
    "jsonb null": ("'null'::jsonb", "jsonb", None),
    "jsonpath": ("'$.a[*]'::jsonpath", "jsonpath", '$."a"[*]'),
    "uuid": (
        "'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'::uuid",
        "uuid",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    ),
    "inet host": ("'10.1.2.3'::inet", "inet", "10.1.2.3"),
    "inet network": ("'10.1.2.3/8'::inet", "inet", "10.1.2.3/8"),
    "inet6": ("'::ffff:1.2.3.4'::inet", "inet", "::ffff:1.2.3.4"),
    "cidr": ("'10.0.0.0/8'::cidr", "cidr", "10.0.0.0/8"),
    "macaddr": ("'08:00:2b:01:02:03'::macaddr", "macaddr", "08:00:2b:01:02:03"),
    "macaddr8": ("'08:00:2b:01:02:03:04:05'::macaddr8", "macaddr8", "08:00:2b:01:02:03:04:05"),
    "bit": ("B'101'", "bit", "101"),
    "varbit": ("'0110'::varbit", "varbit", "0110"),
    "point": ("'(1,2.5)'::point", "point", "(1,2.5)"),
    "line": ("'{1,2,3}'::line", "line", "{1,2,3}"),
    "lseg": ("'[(1,2),(3,4)]'::lseg", "lseg", "[(1,2),(3,4)]"),
    "box": ("'(3,4),(1,2)'::box", "box", "(3,4),(1,2)"),
    "path": ("'[(1,2),(3,4)]'::path", "path", "[(1,2),(3,4)]"),
    "polygon": ("'((1,2),(3,4))'::polygon", "polygon", "((1,2),(3,4))"),
    "circle": ("'<(1,2),3>'::circle", "circle", "<(1,2),3>"),
    "tsvector": ("'a:1 b:2'::tsvector", "tsvector", "'a':1 'b':2"),
    "tsquery": ("'a & b'::tsquery", "tsquery", "'a' & 'b'"),
    "oid": ("4294967295::oid", "oid", 4294967295),
    "regclass": ("'pg_class'::regclass", "regclass", "pg_class"),
    "regtype": ("'integer'::regtype", "regtype", "integer"),
    "xid": ("'7'::xid", "xid", "7"),
    "xid8": ("'7'::xid8", "xid8", "7"),
    "pg_lsn": ("'16/B374D848'::pg_lsn", "pg_lsn", "16/B374D848"),
    "tid": ("'(1,2)'::tid", "tid", "(1,2)"),
    "int2vector": ("'1 2'::int2vector", "int2vector", "1 2"),
    "aclitem": ("'postgres=r/postgres'::aclitem", "aclitem", "postgres=r/postgres"),
    "void": ("pg_sleep(0)", "void", ""),
    "enum": ("'quite \"ok\"'::mood", "mood", 'quite "ok"'),
    "domain": ("7::positive", "integer", 7),
    "range": ("int4range(1, 5)", "int4range", "[1,5)"),
    "range of timestamps": (
        "tsrange('2024-01-01', NULL)",
        "tsrange",
        '["2024-01-01 00:00:00",)',
    ),
    "multirange": ("'{[1,3), [5,9)}'::int4multirange", "int4multirange", "{[1,3),[5,9)}"),
    "range of one's own": ("span(1.5, 2)", "span", "[1.5,2)"),
    "array": ("ARRAY[1, NULL, 3]", "integer[]", [1, None, 3]),
    "array empty": ("'{}'::text[]", "text[]", []),
    "array of two dimensions": ("ARRAY[[1, 2], [3, NULL]]", "integer[]", [[1, 2], [3, None]]),
    "array with lower bounds of its own": ("'[2:3]={1,2}'::int[]", "integer[]", "[2:3]={1,2}"),
    "array of texts": (
        "ARRAY['a\"b', 'NULL', NULL, 'c,d', 'e\\f', '', ' x ', '{}']",
        "text[]",
        ['a"b', "NULL", None, "c,d", "e\\f", "", " x ", "{}"],
    ),
    "array of large integers": ("ARRAY[9007199254740993, 1]", "bigint[]", ["9007199254740993", 1]),
    "array of numerics": ("ARRAY[1.50, 2]", "numeric[]", ["1.50", "2"]),
    "array of floats": ("ARRAY[0.1, 'NaN']::float8[]", "double precision[]", [0.1, "NaN"]),
    "array of reals": ("ARRAY[0.1]::real[]", "real[]", [0.1]),
    "array of booleans": ("ARRAY[true, false, NULL]", "boolean[]", [True, False, None]),
    "array of binaries": ("ARRAY['\\x00ff'::bytea]", "bytea[]", ["AP8="]),
    "array of json": ('ARRAY[\'{"a": [1, "b"]}\'::jsonb]', "jsonb[]", [{"a": [1, "b"]}]),
    "array of big json": ("ARRAY['9007199254740993'::jsonb]", "jsonb[]", ["9007199254740993"]),
    "array of boxes": ("ARRAY['(3,4),(1,2)'::box, '(1,1),(0,0)'::box]", "box[]", ["(3,4),(1,2)", "(1,1),(0,0)"]),
    "array of ranges": ("ARRAY[int4range(1, 2)]", "int4range[]", ["[1,2)"]),
    "array of enums": ("ARRAY['sad', 'quite \"ok\"']::mood[]", "mood[]", ["sad", 'quite "ok"']),
    "array of char": ("ARRAY['ab']::char(3)[]", "char[]", ["ab "]),
    "composite": ("ROW(1, 'x')::pair", "pair", {"a": 1, "b": "x"}),
    "composite of nulls": ("ROW(NULL, NULL)::pair", "pair", {"a": None, "b": None}),
    "composite of odd texts": ("ROW(1, 'a \"b\" (c), d\\e')::pair", "pair", {"a": 1, "b": 'a "b" (c), d\\e'}),
    "composite of an empty text": ("ROW(1, '')::pair", "pair", {"a": 1, "b": ""}),
    "array of composites": (
        "ARRAY[ROW(1, 'a b')::pair, NULL, ROW(2, NULL)::pair]",
        "pair[]",
        [{"a": 1, "b": "a b"}, None, {"a": 2, "b": None}],
    ),
    "domain over an array of composites": ("ARRAY[ROW(1, 'x')::pair]::pairs", "pair[]", [{"a": 1, "b": "x"}]),
    "nested": (
        "ROW(ROW(1, 'x,y')::pair, ARRAY[ROW(2, '\"')::pair], '2024-01-01 00:00+00', '[1,2)', 'sad', 9007199254740993,"
        " '{\"k\": [1]}')::nested",
        "nested",
        {
            "p": {"a": 1, "b": "x,y"},
            "ps": [{"a": 2, "b": '"'}],
            "at": "2024-01-01 00:00:00+00",
            "r": "[1,2)",
            "m": "sad",
            "big": "9007199254740993",
            "j": {"k": [1]},
        },
    ),
    "row of a table": ("(SELECT p FROM product p)", "product", {"id": 1, "name": "Pan", "price": "12.50"}),
    "row of a catalog": (
        "(SELECT n.nspacl IS NULL FROM (SELECT n FROM pg_namespace n WHERE nspname = 'pg_toast') AS x(n),"
        " LATERAL (SELECT (x.n).nspacl) AS n)",
        "boolean",
        True,
    ),
    "anonymous row": (
        "ROW(1, 'x', NULL, 2.50, true, 9007199254740993)",
        "record",
        [1, "x", None, "2.50", True, "9007199254740993"],
    ),
    "anonymous row of one null": ("ROW(NULL)", "record", [None]),
    "anonymous row of nothing": ("ROW()", "record", []),
    "anonymous rows within": ("ROW(ROW(1, ARRAY[2, 3]), 'a b')", "record", [[1, [2, 3]], "a b"]),
    "array of anonymous rows": ("ARRAY[ROW(1, 'a'), ROW(2, NULL)]", "record[]", [[1, "a"], [2, None]]),
}


SINCE_14 = {"multirange"}
IN_FILES = {
    "smallint": "int64",
    "integer": "int64",
    "bigint": "int64",
    "large bigint": "int64",
    "numeric": "decimal128(10, 2)",
    "numeric integral": "decimal128(18, 0)",
    "real": "double",
    "real nan": "double",
    "double": "double",
    "double large": "double",
    "double infinity": "double",
    "boolean": "bool",
    "bytea": "binary",
    "date": "date32[day]",
    "timestamp": "timestamp[us]",
    "timestamptz": "timestamp[us, tz=UTC]",
    "uuid": "extension<arrow.uuid>",
    "oid": "int64",
    "domain": "int64",
    "row of a catalog": "bool",
    "array": "list<item: int64>",
    "array empty": "list<item: string>",
    "array of texts": "list<item: string>",
    "array of numerics": "list<item: decimal128(20, 2)>",
    "array of large integers": "list<item: int64>",
    "array of floats": "list<item: double>",
    "array of reals": "list<item: double>",
    "array of booleans": "list<item: bool>",
    "array of char": "list<item: string>",
}
"""The cases that have a type in Parquet and Arrow files; the others are their exact text there."""


@pytest.fixture(scope="module", autouse=True)
async def types(admin):
    await admin.execute(SETUP)


@pytest.mark.parametrize("case", VALUES)
async def test_a_value_is_exact(executor, admin, case):
    if case in SINCE_14 and admin.get_server_version() < (14,):
        pytest.skip("this type is new in PostgreSQL 14")
    written, type_name, wanted = VALUES[case]
    columns, rows = await ask(executor, f"SELECT {written} AS v")
    assert (columns[0].type, rows) == (type_name, [[wanted]])
    assert type(rows[0][0]) is type(wanted)


async def test_a_null_of_every_case_is_null(executor, admin):
    known = [case for case in VALUES if case not in SINCE_14 or admin.get_server_version() >= (14,)]
    nulls = ", ".join(f"CASE WHEN false THEN {VALUES[case][0]} END" for case in known)
    _, rows = await ask(executor, f"SELECT {nulls}")
    assert rows == [[None] * len(known)]


async def test_every_type_goes_out_to_files_and_comes_back_equal(executor, admin, tmp_path):
    known = [case for case in VALUES if case not in SINCE_14 or admin.get_server_version() >= (14,)]
    written = [f"{VALUES[case][0]} AS v{number}" for number, case in enumerate(known)]
    columns, rows = await ask(executor, f"SELECT {', '.join(written)}")
    types = types_in_files(tmp_path, columns, [*rows, [None] * len(known)])
    assert {case: kind for case, kind in zip(known, types, strict=True) if kind != TEXT} == IN_FILES


async def test_types_are_told_with_their_modifiers_as_the_server_describes_them(executor, admin):
    await admin.execute(
        "CREATE TABLE precise (a numeric(12,2), b varchar(20), c char(5), d timestamptz(3), e time(0), f interval day,"
        " g bit(3), h varbit(8), i numeric(12,2)[], j numeric, k varchar(20)[])"
    )
    wanted = [
        *("numeric(12,2)", "varchar", "char", "timestamptz(3)", "time(0)", "interval day"),
        *("bit(3)", "varbit(8)", "numeric(12,2)[]", "numeric", "varchar[]"),
    ]
    for _ in range(2):
        columns, _ = await ask(executor, "SELECT * FROM precise")
        assert [column.type for column in columns] == wanted
    columns, _ = await ask(
        executor,
        "WITH q AS (SELECT a FROM precise) SELECT a, a + 1, max(a), 1::numeric(5,1), a::text FROM q GROUP BY a",
    )
    assert [column.type for column in columns] == ["numeric(12,2)", "numeric", "numeric", "numeric(5,1)", "text"]


async def test_xml_comes_as_text_where_the_server_has_it(executor, admin):
    libxml = await admin.fetchval("SELECT count(*) FROM pg_config WHERE name = 'CONFIGURE' AND setting ~ 'with-libxml'")
    if libxml:
        assert await value_of(executor, "SELECT '<a/>'::xml") == "<a/>"


async def test_no_type_of_the_server_fails(executor, admin):
    """All of pg_type but pseudo types, and the rows of the three views that have columns of one."""
    names = await admin.fetch(
        "SELECT format_type(t.oid, NULL) FROM pg_type t WHERE typtype <> 'p'"
        " AND t.typrelid NOT IN (SELECT attrelid FROM pg_attribute WHERE atttypid = 'anyarray'::regtype)"
        " AND t.typelem NOT IN (SELECT reltype FROM pg_class JOIN pg_attribute ON attrelid = pg_class.oid"
        "                       WHERE atttypid = 'anyarray'::regtype)"
    )
    assert len(names) > 350
    for (name,) in names:
        _, rows = await ask(executor, f"SELECT NULL::{name} AS v")
        assert rows == [[None]], name


async def test_every_column_of_the_catalogs_can_be_read(executor, admin):
    relations = await admin.fetch(
        "SELECT oid::regclass::text FROM pg_class c WHERE relnamespace = 'pg_catalog'::regnamespace"
        " AND relkind IN ('r', 'v') AND relname !~ '_numa$|^pg_statistic_ext_data$' AND NOT EXISTS"
        "  (SELECT FROM pg_attribute WHERE attrelid = c.oid AND atttypid = 'anyarray'::regtype)"
    )
    for (name,) in relations:
        columns, rows = await ask(executor, f"SELECT * FROM {name}", max_rows=5)
        assert all(len(row) == len(columns) for row in rows), name


async def test_an_extension_s_type_is_the_server_s_text(executor, admin):
    available = await admin.fetchval("SELECT count(*) FROM pg_available_extensions WHERE name = 'vector'")
    if available:
        await admin.execute("CREATE EXTENSION vector")
        columns, rows = await ask(executor, "SELECT '[1,2.5]'::vector, ARRAY['[1]'::vector], ROW(1, '[3]'::vector)")
        assert [column.type for column in columns] == ["vector", "vector[]", "record"]
        assert rows == [["[1,2.5]", ["[1]"], [1, "[3]"]]]


async def test_values_of_altered_types_are_read_anew(executor, admin):
    await admin.execute(
        "CREATE TYPE changing AS (a integer); CREATE TABLE uses (c changing); INSERT INTO uses VALUES (ROW(1))"
    )
    assert await value_of(executor, "SELECT c FROM uses") == {"a": 1}
    await admin.execute("ALTER TYPE changing ADD ATTRIBUTE b text CASCADE")
    assert await value_of(executor, "SELECT c FROM uses") == {"a": 1, "b": None}


RENAMES = (
    ("ALTER TYPE swapped RENAME ATTRIBUTE a TO b", {"b": 1, "c": 2}),
    ("ALTER TYPE swapped RENAME ATTRIBUTE c TO a", {"b": 1, "a": 2}),
    ("ALTER TYPE swapped DROP ATTRIBUTE a, ADD ATTRIBUTE d integer", {"b": 1, "d": None}),
)
WITH_FIELDS = {
    "SELECT s FROM swaps": lambda fields: fields,
    "SELECT ARRAY[s] FROM swaps": lambda fields: [fields],
    "SELECT ROW(1, s) FROM swaps": lambda fields: [1, fields],
    "SELECT ROW(ARRAY[s]) FROM swaps": lambda fields: [[fields]],
    "SELECT swaps FROM swaps": lambda fields: {"s": fields},
}


@pytest.mark.parametrize("most", [100_000, 100_000_000])
async def test_values_never_stand_under_the_former_name_of_a_field(server, database_name, admin, most):
    await admin.execute(
        "CREATE TYPE swapped AS (a integer, c integer); CREATE TABLE swaps (s swapped);"
        "INSERT INTO swaps VALUES ((1, 2))"
    )
    try:
        async with Gateway.open([server.configure(database_name, pool_size=1)]) as gateway:
            for change, fields in (("SELECT 1", {"a": 1, "c": 2}), *RENAMES):
                await admin.execute(change)
                for sql, wanted in WITH_FIELDS.items():
                    for _ in range(2):
                        assert (await gateway.query(None, sql, max_bytes=most)).rows == [[wanted(fields)]]
            await admin.execute("ALTER TABLE swaps RENAME s TO t")
            found = await gateway.query(None, "SELECT swaps FROM swaps", max_bytes=most)
            assert found.rows == [[{"t": RENAMES[-1][1]}]]
    finally:
        await admin.execute("DROP TABLE swaps; DROP TYPE swapped")


ROWS = {
    "SELECT ROW(1, ARRAY[2, 3])": [[1, [2, 3]]],
    "SELECT ARRAY[ROW(ROW(ARRAY[ROW(1, 'a')::pair]))]": [[[[[{"a": 1, "b": "a"}]]]]],
    "SELECT ROW(5::positive, ARRAY[ROW(1, 'a')::pair]::pairs)": [[5, [{"a": 1, "b": "a"}]]],
    "SELECT ROW('sad'::mood, '[1,2]'::span, n) FROM generate_series(1, 3) n": [["sad", "[1,2]", n] for n in (1, 2, 3)],
    "SELECT ROW(repeat('x', 5000), ARRAY[1::bigint])": [["x" * 5000, [1]]],
}


@pytest.mark.parametrize("sql", ROWS)
async def test_values_within_rows_do_not_depend_on_what_was_asked_before(server, database_name, sql, admin):
    """No type is known yet, and no other column has these types."""
    for kept in (100_000, 100_000_000):
        async with Gateway.open([server.configure(database_name)]) as gateway:
            for _ in range(2):
                result = await gateway.query(None, sql, max_bytes=kept)
                assert [row[0] for row in result.rows] == ROWS[sql]


# An answer that comes in pieces is not begun anew.
@pytest.mark.parametrize(("most", "lifetime"), [(100_000, 0.0), (100_000, 60.0), (100_000_000, 0.0)])
async def test_fields_of_rows_whose_types_were_altered_are_read_anew(server, database_name, admin, most, lifetime):
    await admin.execute("CREATE TYPE turning AS (a integer, b text); CREATE TYPE still AS (a integer)")
    row = "SELECT ROW(ROW({})::turning, ROW(1)::still), ROW(1)::still"
    try:
        async with Gateway.open([server.configure(database_name, catalog_ttl=lifetime)]) as gateway:
            for change, values, wanted in (
                ("ADD ATTRIBUTE c integer", "1, 'x'", {"a": 1, "b": "x"}),
                ("DROP ATTRIBUTE a", "1, 'x', 2", {"a": 1, "b": "x", "c": 2}),
                ("ADD ATTRIBUTE d integer", "'x', 2", {"b": "x", "c": 2}),
            ):
                result = await gateway.query(None, row.format(values), max_bytes=most)
                assert result.rows == [[[wanted, {"a": 1}], {"a": 1}]]
                await admin.execute(f"ALTER TYPE turning {change}")
    finally:
        await admin.execute("DROP TYPE turning, still")


async def test_json_within_an_array_that_parsing_would_change_is_told(server, database_name):
    async with Gateway.open([server.configure(database_name)]) as gateway:
        for _ in range(2):
            result = await gateway.query(
                None, """SELECT ARRAY['9007199254740993'::jsonb] AS odd, ARRAY['1'::jsonb] AS a"""
            )
            assert result.rows == [[["9007199254740993"], [1]]]
            assert len(result.notices) == 1
            assert "'odd'" in result.notices[0]


TEXTS = st.none() | st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\0"), max_size=8)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(TEXTS, max_size=6), number=st.none() | st.integers(-(2**31), 2**31 - 1))
async def test_whatever_texts_hold_arrays_and_composites_give_them_back(executor, texts, number):
    sql = "SELECT $1::text[], ARRAY[ROW($2::int, ($1::text[])[1])::pair], ROW($2::int, ARRAY[ROW($1::text[])])"
    _, rows = await ask(executor, sql, texts, number)
    first = texts[0] if texts else None
    assert rows == [[texts, [{"a": number, "b": first}], [number, [[texts]]]]]
