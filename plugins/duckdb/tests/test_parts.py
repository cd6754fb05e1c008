"""Parquet files that are one table: every value keeps its meaning, whatever types the files give their columns."""

import random
import re
from decimal import Decimal
from urllib.parse import unquote

import duckdb
import pyarrow
import pytest
from dragoman import Database, Gateway
from dragoman_duckdb.writing import quote_text
from pyarrow import parquet


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio

VALUES = {
    "TINYINT": "-128",
    "SMALLINT": "-32768",
    "INTEGER": "2147483647",
    "BIGINT": "9007199254740993",
    "UTINYINT": "255",
    "UINTEGER": "4294967295",
    "UBIGINT": "18446744073709551615",
    "DECIMAL(10,2)": "12345678.25",
    "DECIMAL(12,3)": "1.123",
    "DECIMAL(38,10)": "1234567890123456789012345678.0123456789",
    "FLOAT": "0.1",
    "DOUBLE": "0.1",
    "BOOLEAN": "true",
    "VARCHAR": "007",
    "DATE": "2024-02-29",
    "TIMESTAMP": "2024-02-29 23:59:59.123456",
    "TIMESTAMPTZ": "2024-02-29 23:59:59+05",
    "TIMESTAMP_NS": "2024-02-29 23:59:59.123456789",
    "TIME": "23:59:59.5",
    "UUID": "00000000-0000-0000-0000-000000000001",
    "BLOB": "\\x00\\xFF",
    "INTEGER[]": "[1, 2]",
    "STRUCT(a INTEGER)": "{'a': 1}",
}
"""A value of each type that other types do not hold."""


def write(path, select) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    duckdb.sql(f"COPY ({select}) TO '{path}' (FORMAT parquet)")


def means(answered, value) -> bool:
    """Whether an answered value means the one of its file: of its text, or of its number."""
    try:
        return Decimal(str(answered)) == Decimal(value)
    except ArithmeticError:
        return str(answered).removesuffix(" 00:00:00") == value


def written(value, type_) -> str:
    """Return a value as DuckDB writes it when it reads the type from a file."""
    kept = f"CAST({quote_text(value)} AS {type_})"
    plain = f"CAST({kept} AS DOUBLE)" if type_ == "FLOAT" else kept
    return duckdb.execute(f"SELECT CAST({plain} AS VARCHAR)").fetchall()[0][0]


@pytest.fixture
def lake(tmp_path) -> Database:
    (tmp_path / "lake").mkdir()
    return Database(name="lake", dialect="duckdb", database="lake", folder=tmp_path)


@pytest.mark.parametrize("seed", range(3))
async def test_every_value_keeps_its_meaning_whatever_types_the_files_have(lake, seed):
    chosen = random.Random(seed)
    duckdb.sql("SET TimeZone = 'UTC'")
    tables = {f"t{number}": chosen.sample(sorted(VALUES), chosen.choice([2, 2, 2, 3])) for number in range(40)}
    for name, types in tables.items():
        for number, type_ in enumerate(types):
            part = f"part={number}" if seed else "."
            write(
                lake.folder / "lake" / name / part / f"{number}.parquet",
                f"SELECT {number} AS id, CAST({quote_text(VALUES[type_])} AS {type_}) AS v",
            )
    async with Gateway.open([lake]) as gateway:
        for name, types in tables.items():
            rows = (await gateway.query(None, f"SELECT v FROM {name} ORDER BY id")).rows
            for (answered,), type_ in zip(rows, types, strict=True):
                alternatives = (written(VALUES[type_], type_), VALUES[type_])
                assert any(means(answered, each) for each in alternatives), (name, types, type_, answered)


async def test_a_wider_type_holds_numbers_and_text_holds_the_rest(lake):
    folder = lake.folder / "lake"
    for name, selects in {
        "wide": ["1::INTEGER AS v", "9000000000 AS v"],
        "halves": ["1::INTEGER AS v", "1.5::DOUBLE AS v"],
        "cents": ["1.1::DECIMAL(10,2) AS v", "1.123::DECIMAL(12,3) AS v"],
        "text": ["9007199254740993 AS v", "1.5::DOUBLE AS v"],
        "same": ["1 AS v, 2 AS w", "4 AS w, 3 AS v"],
    }.items():
        for number, select in enumerate(selects):
            write(folder / name / f"{number}.parquet", f"SELECT {select}")
    async with Gateway.open([lake]) as gateway:
        snapshot = await gateway.database().catalog.snapshot()
        columns = {table.relation.name: table.columns[0] for table in snapshot.visible}
        assert {name: column.type for name, column in columns.items()} == {
            "wide": "bigint",
            "halves": "double",
            "cents": "decimal(12,3)",
            "text": "varchar",
            "same": "integer",
        }
        assert columns["text"].comment == "bigint or double, as exact text"
        assert (await gateway.query(None, "SELECT v FROM halves ORDER BY v")).rows == [[1.0], [1.5]]


async def test_columns_of_the_path_keep_their_type_beside_mixed_ones(lake):
    folder = lake.folder / "lake" / "events"
    write(folder / "day=2026-01-01" / "a.parquet", "SELECT 1::INTEGER AS n, 'a' AS day")
    write(folder / "day=2026-01-02" / "a.parquet", "SELECT 1.5::DOUBLE AS n, 'b' AS day")
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, "SELECT n, day FROM events WHERE day > '2026-01-01'")
        assert answer.rows == [[1.5, "2026-01-02"]]
        assert answer.columns[1].type == "date"


DAYS = ("2026-01-02", "2026-1-2", "26-01-02", "1-2-3", "epoch", "infinity", "10000-01-02", "2026-01")
CLOCKS = ("", " 03:04", "T03:04:05", " 03:04:05.123456", " 03:04:05.123456789")
ZONES = ("", "Z", "+02", "-05:30")
SPELT = [f"{day}{clock}{zone}" for day in DAYS for clock in CLOCKS for zone in (ZONES if clock else ("",))]
SPELT += ["007", "+5", "0x1F", "%205", "1e3", "1.0", "true", "9223372036854775808", "__HIVE_DEFAULT_PARTITION__"]
"""What a path may say of a column; the last is how programs write that it has no value."""


@pytest.mark.parametrize("mixed", [False, True])
async def test_a_column_of_the_path_is_what_the_path_says_and_a_text_where_a_type_would_change_it(lake, mixed):
    for number, text in enumerate(SPELT):
        folder = lake.folder / "lake" / f"t{number}"
        write(folder / f"Said={text}" / "a.parquet", "SELECT 1::INTEGER AS n")
        write(folder / f"Said={text}" / "b.parquet", f"SELECT 1::{'DOUBLE' if mixed else 'INTEGER'} AS n")
    async with Gateway.open([lake]) as gateway:
        for number, text in enumerate(SPELT):
            answer = await gateway.query(None, f"SELECT DISTINCT said FROM t{number}")
            ((said,),) = answer.rows
            assert is_said(said, unquote(text)), (answer.columns[0].type, said, text)


def is_said(said: object, text: str) -> bool:
    """Whether an answer is this text, or the same day or moment with all its figures."""
    figures = [[int(figure) for figure in re.findall(r"\d+", str(each))] for each in (said, text)]
    longest = max(map(len, figures))
    padded = [each + [0] * (longest - len(each)) for each in figures]
    is_moment = re.match(r"\d{4,}-\d+-\d+([ T][\d:.]+)?$", text) and padded[0] == padded[1]
    return said == (None if text.startswith("__") else text) or bool(is_moment)


async def test_texts_of_paths_that_mean_two_moments_stay_apart(lake):
    for text in ("2026-01-01T00:00:00+02", "2026-01-01T00:00:00Z"):
        write(lake.folder / "lake" / "t" / f"seen={text}" / "a.parquet", "SELECT 1 AS n")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT count(DISTINCT seen) FROM t")).rows == [[2]]
        assert (await gateway.query(None, "SELECT n FROM t WHERE seen = '2026-01-01T00:00:00Z'")).rows == [[1]]


@pytest.mark.parametrize("mixed", [False, True])
@pytest.mark.parametrize("beside", ["", "/seen=2026-01-01T00:00:00Z"])
@pytest.mark.parametrize("nothing", ["NULL", "null", "__HIVE_DEFAULT_PARTITION__"])
@pytest.mark.parametrize(("text", "value"), [("1", 1), ("2026-01-02", "2026-01-02")])
async def test_a_path_without_a_value_leaves_the_others_their_type(lake, text, value, nothing, beside, mixed):
    """DuckDB takes NULL for no value among numbers and dates, and its older versions wrote it."""
    folder = lake.folder / "lake" / f"t{beside}"
    write(folder / f"said={text}" / "a.parquet", "SELECT 1::INTEGER AS n")
    write(folder / f"said={nothing}" / "a.parquet", f"SELECT 1::{'DOUBLE' if mixed else 'INTEGER'} AS n")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT said FROM t ORDER BY said")).rows == [[value], [None]]


async def test_the_name_of_a_file_is_no_part_of_its_path(lake):
    folder = lake.folder / "lake" / "events"
    write(folder / "k=1.parquet", "SELECT 2::INTEGER AS k")
    write(folder / "k=2.parquet", "SELECT 1.5::DOUBLE AS k")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT k FROM events ORDER BY k")).rows == [[1.5], [2.0]]


@pytest.mark.parametrize("linked", [False, True])
async def test_nothing_above_the_folder_is_a_column_of_its_tables(tmp_path, linked):
    place = tmp_path / "env=prod" / "v=9" / "lake"
    write(place / "one.parquet", "SELECT 1 AS v")
    write(place / "v=8.parquet", "SELECT 1 AS v")
    write(place / "alike" / "a.parquet", "SELECT 1 AS v")
    write(place / "~x" / "a.parquet", "SELECT 1 AS v")
    write(place / "file:" / "a.parquet", "SELECT 1 AS v")
    write(place / "parted" / "day=2026-01-01" / "a.parquet", "SELECT 1 AS v")
    write(place / "mixed" / "day=2026-01-01" / "a.parquet", "SELECT 1::INTEGER AS v, 1::INTEGER AS n")
    write(place / "mixed" / "day=2026-01-02" / "a.parquet", "SELECT 2::INTEGER AS v, 1.5::DOUBLE AS n")
    write(place / "~y.parquet", "SELECT 1 AS v")
    for suffix in ("csv", "tsv"):
        (place / f"text_{suffix}.{suffix}").write_text("v\n1\n")
    if linked:
        place = tmp_path / "link"
        place.symlink_to(tmp_path / "env=prod" / "v=9" / "lake")
    async with Gateway.open([Database(name="lake", dialect="duckdb", database=str(place))]) as gateway:
        for table in ("one", "v=8", "alike", "~x", "~y", "file:", "text_csv", "text_tsv"):
            answer = await gateway.query(None, f'SELECT * FROM "{table}"')
            assert ([column.name for column in answer.columns], answer.rows) == (["v"], [[1]])
        assert (await gateway.query(None, "FROM parted")).rows == [[1, "2026-01-01"]]
        assert (await gateway.query(None, "FROM mixed ORDER BY v")).rows == [
            [1, 1.0, "2026-01-01"],
            [2, 1.5, "2026-01-02"],
        ]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_a_file_without_values_leaves_the_type_to_the_others(lake, order):
    folder = lake.folder / "lake" / "t"
    folder.mkdir()
    empty, filled = (folder / f"{name}.parquet" for name in order)
    parquet.write_table(pyarrow.table({name: pyarrow.nulls(1) for name in "dt"}), empty)
    write(filled, "SELECT DATE '2024-02-29' AS d, 'x' AS t")
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, "SELECT d, t FROM t ORDER BY d NULLS FIRST")
        assert answer.rows == [[None, None], ["2024-02-29", "x"]]
        assert [column.type for column in answer.columns] == ["date", "varchar"]
        snapshot = await gateway.database().catalog.snapshot()
        assert [column.comment for table in snapshot.visible for column in table.columns] == [None, None]


async def test_lists_without_values_leave_the_type_to_the_others(lake):
    folder = lake.folder / "lake" / "t"
    folder.mkdir()
    for name, kind in (("a", pyarrow.list_(pyarrow.null())), ("b", pyarrow.list_(pyarrow.string()))):
        values = pyarrow.array([[] if name == "a" else ["x"]], kind)
        parquet.write_table(
            pyarrow.table({"t": values, "s": pyarrow.array([{"u": values[0]}])}), folder / f"{name}.parquet"
        )
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, "SELECT t[1], len(t), s.u[1] FROM t ORDER BY 2")
        assert answer.rows == [[None, 0, None], ["x", 1, "x"]]


@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_whole_numbers_beside_floats_are_numbers_where_floats_hold_them(lake, order):
    """As of programs that write whole numbers with gaps as floats."""
    first, second = (lake.folder / "lake" / "t" / f"{name}.parquet" for name in order)
    write(first, "SELECT * FROM (VALUES (7::BIGINT), (9007199254740992), (NULL)) AS t (v)")
    write(second, "SELECT * FROM (VALUES (7.0::DOUBLE), (1.5), (NULL)) AS t (v)")
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, "SELECT count(DISTINCT v), max(v), count(*) FILTER (v = 2) FROM t")
        assert answer.rows == [[3, 9007199254740992.0, 0]]


@pytest.mark.parametrize(
    ("types", "value"),
    [
        (("BIGINT", "DOUBLE"), "7"),
        (("BIGINT", "DOUBLE"), "1e18"),
        (("BIGINT", "FLOAT"), "-3"),
        (("DECIMAL(18,2)", "DOUBLE"), "1.5"),
        (("DECIMAL(18,2)", "FLOAT"), "100"),
        (("DECIMAL(38,0)", "DECIMAL(38,38)", "DOUBLE"), "0"),
        (("DECIMAL(38,38)", "DOUBLE"), "-0.25"),
        (("UBIGINT", "DOUBLE", "DECIMAL(9,3)"), "20"),
    ],
)
async def test_equal_numbers_have_equal_texts(lake, types, value):
    for number, type_ in enumerate(types):
        rows = f"SELECT {value}::{type_} AS v"
        if type_ == "BIGINT":
            rows += " UNION ALL SELECT 9007199254740993 UNION ALL SELECT 9007199254740993"
        write(lake.folder / "lake" / "t" / f"{number}.parquet", rows)
    async with Gateway.open([lake]) as gateway:
        answer = await gateway.query(None, "SELECT v FROM t GROUP BY v HAVING v <> '9007199254740993'")
        assert len(answer.rows) == 1
        assert answer.columns[0].type == "varchar"


async def test_a_decimal_of_as_many_digits_as_a_bigint_is_answered(lake):
    write(lake.folder / "lake" / "t" / "a.parquet", "SELECT 9500000000000000000::DECIMAL(19,0) AS v")
    write(lake.folder / "lake" / "t" / "b.parquet", "SELECT 1::INTEGER AS v")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT max(v) FROM t")).rows == [["9500000000000000000"]]


async def test_a_file_that_comes_or_changes_changes_the_type_of_its_column(lake):
    folder = lake.folder / "lake" / "t"
    write(folder / "a.parquet", "SELECT 1::INTEGER AS v")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT v FROM t")).rows == [[1]]
        write(folder / "b.parquet", "SELECT 1.5::DOUBLE AS v")
        assert (await gateway.query(None, "SELECT v FROM t ORDER BY v")).rows == [[1.0], [1.5]]
        write(folder / "b.parquet", "SELECT 'x' AS v")
        assert (await gateway.query(None, "SELECT v FROM t ORDER BY v")).rows == [["1"], ["x"]]
        write(folder / "b.parquet", "SELECT 2::INTEGER AS v")
        assert (await gateway.query(None, "SELECT v FROM t ORDER BY v")).rows == [[1], [2]]


async def test_files_that_others_hide_and_links_that_lead_out_are_no_part(lake):
    folder = lake.folder / "lake" / "jobs"
    for name in ("a.parquet", "_temporary/0/b.parquet", ".staging/c.parquet", "_d.parquet"):
        write(folder / name, "SELECT 1 AS n")
    for part in ("_k=1", "_k=2"):
        write(folder.parent / "parts" / part / "a.parquet", "SELECT 1 AS n")
    write(lake.folder / "outside.parquet", "SELECT 2 AS n")
    (folder / "f.parquet").symlink_to(lake.folder / "outside.parquet")
    (folder / "g.parquet").symlink_to("a.parquet")
    async with Gateway.open([lake]) as gateway:
        assert (await gateway.query(None, "SELECT n FROM jobs")).rows == [[1]] * 2
        assert (await gateway.query(None, "SELECT n, _k FROM parts ORDER BY _k")).rows == [[1, 1], [1, 2]]


@pytest.mark.parametrize("kept", ["_delta_log/0.json", ".hoodie/x", "metadata/v1.metadata.json"])
async def test_a_table_whose_files_may_be_of_older_versions_is_left_out(lake, kept):
    write(lake.folder / "lake" / "orders" / "a.parquet", "SELECT 1 AS n")
    path = lake.folder / "lake" / "orders" / kept
    path.parent.mkdir()
    path.touch()
    async with Gateway.open([lake]) as gateway:
        assert not (await gateway.database().catalog.snapshot()).visible


async def test_a_damaged_part_is_told_and_not_left_out(lake):
    folder = lake.folder / "lake" / "t"
    write(folder / "a.parquet", "SELECT 1::INTEGER AS n")
    write(folder / "b.parquet", "SELECT 1.5::DOUBLE AS n")
    (folder / "c.parquet").write_bytes(b"PAR1 nothing PAR1")
    async with Gateway.open([lake]) as gateway:
        with pytest.raises(Exception, match=r"c\.parquet"):
            await gateway.query(None, "SELECT sum(n) FROM t")
