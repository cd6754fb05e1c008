"""What is written to a file comes back the same; what a format cannot carry is told."""

from __future__ import annotations

import csv
import json
import math
import re
import sys
import uuid
import zipfile
from datetime import UTC, date, datetime, time
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dragoman import Column, Kind, ParameterError, ResultTooLarge, Unsupported
from dragoman.exports import FORMATS, arrow, export, format_of
from dragoman.model import KindName
from hypothesis import example, given
from hypothesis import strategies as st

WIDE = "\N{FULLWIDTH EQUALS SIGN}\N{FULLWIDTH PLUS SIGN}\N{FULLWIDTH HYPHEN-MINUS}\N{FULLWIDTH COMMERCIAL AT}"
UUID = "9b2d6c1e-4f0a-4a53-8a51-0e0f3a5b7c11"


def _export(folder: Path, form: str, columns: list[Column], rows: list[list[Any]]) -> tuple[Path, tuple[str, ...]]:
    path = folder / f"out.{form}"
    path.unlink(missing_ok=True)
    # In two batches, so that what is decided for a column holds over both.
    half = len(rows) // 2
    return path, export(path, form, columns, lambda: [rows[:half], rows[half:]])


TYPED = [
    (Column("n", "bigint", Kind("integer")), [1, "9223372036854775807", None], [1, 2**63 - 1, None]),
    (Column("d", "numeric(12,2)", Kind("text")), ["12.50", "-0.01", None], [Decimal("12.50"), Decimal("-0.01"), None]),
    (
        Column("d", "numeric", Kind("text")),
        ["3", "22500225000.000", None, "-0.5", "1e-12"],
        [Decimal(3), Decimal("22500225000"), None, Decimal("-0.5"), Decimal("1e-12")],
    ),
    (Column("d", "decimal", Kind("text")), ["99999999999999999999999999999999999999", "-1"], [Decimal(10**38 - 1), -1]),
    (Column("d", "numeric", Kind("float")), [1.5, 2, None], [1.5, 2.0, None]),
    (Column("d", "decimal", Kind("integer")), [1, "9223372036854775807", None], [1, 2**63 - 1, None]),
    (Column("f", "double precision", Kind("float")), [1.5, "-Infinity", 2], [1.5, -math.inf, 2.0]),
    (Column("b", "boolean", Kind("boolean")), [True, None, False], [True, None, False]),
    (Column("x", "bytea", Kind("binary")), ["AAE=", "", None], [b"\x00\x01", b"", None]),
    (Column("on", "date", Kind("text")), ["2024-02-29", None, "0001-01-01"], [date(2024, 2, 29), None, date(1, 1, 1)]),
    (
        Column("at", "timestamptz", Kind("text")),
        ["2026-11-21 23:36:30.836494+00", "2026-11-22 01:36:30.836494+02", None],
        [datetime(2026, 11, 21, 23, 36, 30, 836494, UTC)] * 2 + [None],
    ),
    (Column("u", "uuid", Kind("text")), [UUID, None, None], [uuid.UUID(UUID), None, None]),
    (Column("l", "integer[]", Kind.array(Kind("integer"))), [[1, None], [], None], [[1, None], [], None]),
    (Column("t", "text", Kind("text")), ["=1+1", "", None], ["=1+1", "", None]),
    (Column("c", "decimal(10,2)", Kind("any")), [5, -7, None], [Decimal(5), Decimal(-7), None]),
]
TYPED_ELEMENTS = [
    *((column, values, wanted) for column, values, wanted in TYPED if column.kind.name != "any"),
    (Column("a", "time", Kind("text")), ["12:00:00.5", None], [time(12, 0, 0, 500000), None]),
    (Column("a", "timestamp", Kind("text")), ["2024-02-29 13:14:15", None], [datetime(2024, 2, 29, 13, 14, 15), None]),
]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize(("column", "values", "wanted"), TYPED, ids=[column.type for column, *_ in TYPED])
def test_typed_columns_come_back_equal(tmp_path, form, column, values, wanted):
    path, notices = _export(tmp_path, form, [column], [[value] for value in values])
    table = pq.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
    assert table.column(0).to_pylist() == wanted
    assert table.schema.field(0).metadata[b"dragoman:type"].decode() == column.type
    assert notices == ()


@pytest.mark.parametrize("form", ["parquet", "arrow"])
@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize(("of", "values", "wanted"), TYPED_ELEMENTS, ids=[column.type for column, *_ in TYPED_ELEMENTS])
def test_lists_of_every_type_come_back_equal(tmp_path, form, depth, of, values, wanted):
    kind, declared = of.kind, of.type
    for _ in range(depth):
        values, wanted, kind, declared = [values, [], None], [wanted, [], None], Kind.array(kind), f"array({declared})"
    path, notices = _export(tmp_path, form, [Column("l", declared, kind)], [[value] for value in values])
    table = pq.read_table(path) if form == "parquet" else pa.ipc.open_file(path).read_all()
    assert table.column(0).to_pylist() == wanted
    assert notices == ()


MISFITS = [
    (Column("d", "numeric(12,2)", Kind("text")), ["12.50", "NaN"]),
    (Column("d", "numeric", Kind("text")), ["1", "1e400"]),
    (Column("d", "numeric", Kind("text")), ["1", "NaN"]),
    (Column("d", "numeric", Kind("text")), ["99999999999999999999999999999999999999", "0.1"]),
    (Column("d", "numeric", Kind("text")), ["0.1234567890123456789012345"]),
    (Column("on", "date", Kind("text")), ["2024-01-01", "infinity"]),
    (Column("on", "date", Kind("text")), ["2024-01-01", "0044-03-15 BC"]),
    (Column("at", "timestamptz", Kind("text")), ["294276-01-01 00:00:00+00"]),
    (Column("at", "timestamptz", Kind("text")), ["0001-01-01 00:00:00+02", "9999-12-31 23:59:59-01"]),
    (Column("at", "timestamp(12)", Kind("text")), ["2024-01-02 03:04:05.123456789012"]),
    (Column("at", "timestamp with time zone", Kind("text")), ["2024-01-02 03:04:05.1 America/New_York"]),
    (Column("n", "hugeint", Kind("integer")), ["170141183460469231731687303715884105727"]),
    (Column("l", "integer[]", Kind.array(Kind("integer"))), [[[1, 2], [3, 4]]]),
    (Column("l", "integer[]", Kind.array(Kind("integer"))), ["[0:1]={1,2}"]),
    (Column("m", "any", Kind("any")), [1, "one", None]),
    (Column("m", "any", Kind("any")), [5, "007"]),
    (Column("m", "integer", Kind("any")), [5, "7"]),
    (Column("m", "integer", Kind("any")), [5, "\N{FULLWIDTH DIGIT NINE}007199254740993"]),
    (Column("d", "decimal(10,2)", Kind("any")), [5, "1234"]),
    (Column("d", "decimal(10,2)", Kind("any")), [5, "1_000"]),
    (Column("d", "decimal(10,2)", Kind("text")), ["1_000"]),
    (Column("d", "decimal(10,2)", Kind("text")), ["\N{FULLWIDTH DIGIT ONE}", " 1"]),
    (Column("j", "jsonb", Kind("json")), [{"a": [1, "x"]}, None]),
    (Column("r", "int4range", Kind("native")), ["[1,5)"]),
    (Column("l", "text[]", Kind("native")), ["[0:1]={a,b}"]),
    (Column("m", "map(varchar, varchar)", Kind("json")), [{"a": "b"}]),
    (Column("s", "row(a varchar)", Kind("json")), [{"a": "b"}]),
]


@pytest.mark.parametrize(
    ("column", "values"), MISFITS, ids=[f"{column.type} {values[-1]}" for column, values in MISFITS]
)
def test_what_has_no_counterpart_keeps_its_text_and_is_named(tmp_path, column, values):
    path, notices = _export(tmp_path, "parquet", [column], [[value] for value in values])
    read = pq.read_table(path).column(0).to_pylist()
    for value, like in zip(read, values, strict=True):
        assert like == (value if value is None or isinstance(like, str) else json.loads(value))
    assert f"{column.name} ({column.type})" in notices[0]


_VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.lists(st.integers(0, 9), max_size=2),
)
_KINDS = st.sampled_from(["any", "text", "integer", "float", "boolean", "binary", "json", "native"])


_DECLARED = st.sampled_from(
    ["", "date", "timestamp", "timestamptz", "time", "uuid", "numeric(4,2)", "numeric", "bigint", "integer[]"]
)


_LIKE_NUMBERS = st.from_regex(r"[-+ ]?[0-9_\uff10-\uff19]{1,19}(\.[0-9]{1,2})?", fullmatch=True)


@given(values=st.lists(_VALUES | _LIKE_NUMBERS, max_size=6), kind=_KINDS, declared=_DECLARED)
def test_no_value_of_any_kind_is_lost_or_changed(tmp_path_factory, values, kind, declared):
    """Whatever a driver says of a column, what comes back is the value or its exact text."""
    folder = tmp_path_factory.mktemp("out")
    path, _ = _export(folder, "parquet", [Column("c", declared, Kind(kind))], [[value] for value in values])
    for given_value, read in zip(values, pq.read_table(path).column(0).to_pylist(), strict=True):
        if isinstance(read, bytes | date | datetime):
            continue  # typed: the tests above compare these
        text = isinstance(read, str) and not isinstance(given_value, str)
        same = json.loads(read) if text else read
        assert same == given_value or _is_number_as_text(read, given_value, kind)


def _is_number_as_text(read: Any, value: Any, kind: str) -> bool:
    """Return whether a text is what an answer makes of a number: a decimal, or an integer that JSON does not hold."""
    if isinstance(read, Decimal) and kind != "any":
        return re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", value) is not None and Decimal(value) == read
    return abs(read) >= 2**53 and str(read).removesuffix(".00") == value


_OFFSETS = st.sampled_from(["", "Z", "+00", "-03:30", "+0530", "+24", "-15:59", " +02", "+02:60"])
_TEXTS_LIKE = {
    "numeric(12,2)": st.decimals(-(10**11), 10**11, allow_nan=False, allow_infinity=False).map(str)
    | st.from_regex(r"-?[0-9]{1,11}(\.[0-9]{1,3})?", fullmatch=True),
    "numeric(3,3)": st.from_regex(r"-?0?(\.[0-9]{0,4})?", fullmatch=True),
    "numeric(2,0)": st.from_regex(r"-?[0-9]{1,3}", fullmatch=True),
    "numeric": st.from_regex(r"-?[0-9]{1,19}(\.[0-9]{1,2})?", fullmatch=True),
    "date": st.from_regex(r"[0-9]{4}-[01][0-9]-[0-3][0-9]", fullmatch=True) | st.dates().map(str),
    "timestamp": st.datetimes().map(str)
    | st.from_regex(r"20[0-9]{2}-0[0-9]-[0-3][0-9][ T][0-2][0-9]:[0-6][0-9]:[0-6][0-9](\.[0-9]{1,7})?", fullmatch=True),
    "timestamptz": st.tuples(st.datetimes().map(str), _OFFSETS).map("".join),
    "uuid": st.uuids().map(str) | st.uuids().map(str).map(str.upper),
    "bigint": st.integers(-(2**65), 2**65),
    "double precision": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "boolean": st.booleans(),
    "text": st.text(max_size=5),
}


_KINDS_LIKE: dict[str, KindName] = {"bigint": "integer", "double precision": "float", "boolean": "boolean"}


@pytest.mark.parametrize("declared", _TEXTS_LIKE)
@given(data=st.data())
def test_values_taken_at_once_are_what_each_of_them_is(declared, data):
    """Whatever Arrow reads by itself, it reads as we read it; what we take for a misfit it does not take."""
    values = data.draw(st.lists(st.none() | _TEXTS_LIKE[declared], min_size=1, max_size=4))
    kind = Kind(_KINDS_LIKE.get(declared, "text"))
    form = next(iter(arrow._candidates(Column("c", declared, kind))), arrow.TEXT)
    at_once = form._array_at_once(values)
    if at_once is not None:
        each = pa.array([None if value is None else form.convert(value) for value in values], type=form.type)
        assert at_once.equals(each)
        assert repr(at_once.to_pylist()) == repr(each.to_pylist())


@pytest.mark.parametrize("declared", [name for name in _TEXTS_LIKE if name != "numeric(3,3)"])
def test_plain_values_are_taken_at_once(declared):
    plain = {
        **{
            "numeric(12,2)": "-12.50",
            "numeric(2,0)": "99",
            "numeric": "-7",
            "date": "2024-02-29",
            "timestamp": "2024-02-29 13:14:15.5",
        },
        **{"timestamptz": "2024-02-29 13:14:15+00", "uuid": UUID, "bigint": 2**63 - 1, "double precision": 0.1},
        **{"boolean": True, "text": "a"},
    }
    kind = Kind(_KINDS_LIKE.get(declared, "text"))
    form = next(iter(arrow._candidates(Column("c", declared, kind))), arrow.TEXT)
    assert form._array_at_once([plain[declared]]) is not None


def test_csv_tells_null_from_an_empty_text(tmp_path):
    columns = [Column("a", "text", Kind("text")), Column("b, c", "text", Kind("text"))]
    path, _ = _export(tmp_path, "csv", columns, [[None, ""], ["x\ny", 'say "hi"']])
    assert path.read_bytes() == b'a,"b, c"\r\n,""\r\n"x\ny","say ""hi"""\r\n'


@pytest.mark.parametrize(
    ("kind", "values", "lines", "told"),
    [
        ("text", ["x", None, "z"], [b"x", b'""', b"z"], 0),
        ("text", ["", "y"], [b'""', b"y"], 0),
        ("text", ["", "y", "z", None], [b'""', b"y", b"z", b'""'], 1),
        ("integer", [1, None, None, 0], [b"1", b'""', b'""', b"0"], 0),
        ("text", [None, None], [b'""', b'""'], 0),
    ],
)
def test_csv_of_one_column_has_no_empty_line_that_readers_skip(tmp_path, kind, values, lines, told):
    path, notices = _export(tmp_path, "csv", [Column("a", kind, Kind(kind))], [[value] for value in values])
    assert path.read_bytes().split(b"\r\n") == [b"a", *lines, b""]
    assert len(list(csv.DictReader(path.read_text().splitlines(keepends=True)))) == len(values)
    assert len(notices) == told


UNSEEN = [
    "\0",
    "\t",
    "\v",
    "\f",
    "\r",
    "\n",
    " ",
    "\x1b",
    "\x85",
    "\xa0",
    "\xad",
    *"\u061c\u1680\u180e\u2003\u200b\u200d\u200e",
]
UNSEEN += [*"\u2028\u2029\u202e\u202f\u2060\u2066\u3000\u3164\ufeff\ufffb", "\U000e0001", "\U000e0061"]
"""White space and characters that nobody sees."""
_MARKS = st.text(st.sampled_from(["=", "+", "-", "@", *",\"'ab1.e\r\n\t ", *UNSEEN, *WIDE]), max_size=5)
_CELLS = st.sampled_from([_MARKS, st.none() | _MARKS, st.integers(), st.none() | st.booleans(), _VALUES]).flatmap(
    lambda cells: st.lists(cells, min_size=4, max_size=4)
)


@given(by_column=st.lists(_CELLS, min_size=2, max_size=3))
def test_csv_gives_back_every_value_of_any_column_and_nothing_that_a_spreadsheet_runs(tmp_path_factory, by_column):
    columns = [Column(f"c{place}", "any", Kind("any")) for place in range(len(by_column))]
    rows = [list(row) for row in zip(*by_column, strict=True)]
    path, notices = _export(tmp_path_factory.mktemp("out"), "csv", columns, rows)
    with path.open(newline="", encoding="utf-8") as file:
        _, *read = csv.reader(file, strict=True)
    escaped = 0
    for value, cell in zip(chain(*rows), chain(*read), strict=True):
        text = value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)
        if live := isinstance(value, str) and _begins_like_a_formula(value):
            escaped += 1
        assert cell == ("'" + text if live else text)
    assert sum(int(notice.split()[0]) for notice in notices) == escaped


def _begins_like_a_formula(text: str) -> bool:
    seen = text.lstrip("".join(UNSEEN))
    return text[:1] in {*"\t\r\n"} or (seen[:1] in {*"=+-@", *WIDE} and not _is_number(seen))


def _is_number(text: str) -> bool:
    try:
        return text == text.strip() and "_" not in text and math.isfinite(float(text))
    except ValueError:
        return False


@pytest.mark.parametrize(
    "text", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-2+3", "\t=1", "\n=1", *(f"{sign}1" for sign in WIDE)]
)
def test_a_spreadsheet_runs_nothing_of_a_csv(tmp_path, text):
    path, notices = _export(tmp_path, "csv", [Column("a", "text", Kind("text"))], [[text], ["-1.5"], ["fine"]])
    with path.open(newline="") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == [f"'{text}", "-1.5", "fine"]
    assert notices == ("1 values of the column 'a' begin like a formula; a ' stands before them.",)


def test_a_spreadsheet_runs_nothing_behind_what_nobody_sees(tmp_path):
    live = [f"{before}{sign}1+1" for before in (*UNSEEN, " \u200b\xa0") for sign in ("=", "+", "-", "@", *WIDE)]
    numbers = [" -1.5", "\xa0+7", "\u200b-1e5", "\ufeff.5", "-1"]
    plain = ["\xa0a=1", " ", "\u200b", "\ufeff'=1", "a\u200b=1"]
    rows = [[text] for text in (*live, *numbers, *plain)]
    path, notices = _export(tmp_path, "csv", [Column("a", "text", Kind("text"))], rows)
    with path.open(newline="", encoding="utf-8") as file:
        cells = [row[0] for row in csv.reader(file)][1:]
    assert cells == [*(f"'{text}" for text in live), *numbers, *plain]
    assert notices == (f"{len(live)} values of the column 'a' begin like a formula; a ' stands before them.",)
    for text in live:  # alone in its column it is not looked at beside others
        alone, _ = _export(tmp_path, "csv", [Column("a", "text", Kind("text"))], [[text]])
        assert f"'{text}" in alone.read_bytes().decode()


@pytest.mark.parametrize("name", ["=1+1", "@SUM(A1)", "+cmd|' /C calc'!A0", "-x", "\t=1", "\u200b=1"])
def test_a_spreadsheet_runs_no_name_of_a_column(tmp_path, name):
    columns = [Column(name, "integer", Kind("integer")), Column("-1", "integer", Kind("integer"))]
    path, notices = _export(tmp_path, "csv", columns, [[1, 2]])
    with path.open(newline="", encoding="utf-8") as file:
        assert next(csv.reader(file)) == [f"'{name}", "-1"]
    assert notices == (f"The name {name!r} begins like a formula; a ' stands before it.",)


def test_jsonl_numbers_columns_of_one_name(tmp_path):
    columns = [Column("id", "bigint", Kind("integer")), Column("id", "bigint", Kind("integer"))]
    path, notices = _export(tmp_path, "jsonl", columns, [[1, 2], ["9007199254740993", None]])
    assert [json.loads(line) for line in path.read_text().splitlines()] == [
        {"id": 1, "id_2": 2},
        {"id": "9007199254740993", "id_2": None},
    ]
    assert notices == ("Columns of one name are written as id_2.",)


def test_a_sheet_holds_exact_numbers_and_no_formula(tmp_path):
    columns = [Column("a", "text", Kind("text")), Column("n", "bigint", Kind("integer"))]
    path, _ = _export(tmp_path, "xlsx", columns, [["=1+1", 12], ["http://x", 9007199254740991], [None, True]])
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<f>" not in sheet
    assert "<hyperlink" not in sheet
    assert "<v>12</v>" in sheet
    assert "9007199254740991</t>" in sheet


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=20))
@example(values=[12.345678901234567, 0.30000000000000004, sys.float_info.max, sys.float_info.min, 5e-324, 0.1, -7.0])
def test_a_sheet_holds_every_digit_of_a_float(tmp_path_factory, values):
    """Excel reads no float below the smallest normal one, so that such a float is text."""
    columns = [Column("f", "double precision", Kind("float"))]
    path, _ = _export(tmp_path_factory.mktemp("out"), "xlsx", columns, [[value] for value in values])
    with zipfile.ZipFile(path) as book:
        cells = re.findall(r"<v>([^<]*)</v>|<t>([^<]*)</t>", book.read("xl/worksheets/sheet1.xml").decode())
    numbers = [number for number, text in cells if number]
    assert [float(number or text) for number, text in cells[1:]] == values
    assert all(float(number) == 0 or abs(float(number)) >= sys.float_info.min for number in numbers)


@pytest.mark.parametrize("form", ["jsonl", "parquet", "arrow"])
def test_a_column_keeps_its_name_where_others_get_a_number(tmp_path, form):
    columns = [Column(name, "bigint", Kind("integer")) for name in ("a", "a", "a_2", "b", "a")]
    path, notices = _export(tmp_path, form, columns, [[1, 2, 3, 4, 5]])
    read = {"jsonl": lambda: [json.loads(path.read_text())], "parquet": lambda: pq.read_table(path).to_pylist()}
    rows = read.get(form, lambda: pa.ipc.open_file(path).read_all().to_pylist())()
    assert rows == [{"a": 1, "a_3": 2, "a_2": 3, "b": 4, "a_4": 5}]
    assert notices == ("Columns of one name are written as a_3, a_4.",)


@pytest.mark.parametrize(
    ("declared", "expected"), [("text", "string"), ("any", "string"), ("date", "string"), ("integer", "int64")]
)
@pytest.mark.parametrize("rows", [[], [[None]]], ids=["no rows", "nulls"])
def test_a_column_without_values_has_a_type_that_suits_its_declaration(tmp_path, declared, expected, rows):
    """SQLite's columns hold any values, and texts of another table are compared with them."""
    path, notices = _export(tmp_path, "parquet", [Column("c", declared, Kind("any"))], rows)
    assert str(pq.read_schema(path).field("c").type) == expected
    assert notices == ()


@pytest.mark.parametrize(("text", "left"), [("a" * 32_767, 32_767), ("a" * 32_768, 32_767), ("😀" * 16_384, 16_383)])
def test_a_text_that_a_cell_does_not_hold_is_cut_and_told(tmp_path, text, left):
    """Excel counts UTF-16. A file with longer texts is one that Excel wants to repair."""
    path, notices = _export(tmp_path, "xlsx", [Column(text, "text", Kind("text"))], [[text]])
    with zipfile.ZipFile(path) as book:
        sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert re.findall(f"{text[0]}+(?=</t>)", sheet) == [text[0] * left] * 2
    assert bool(notices) is (left < len(text))


def test_a_sheet_has_an_end(tmp_path, monkeypatch):
    monkeypatch.setattr("dragoman.exports.xlsx.MAX_ROWS", 2)
    with pytest.raises(ResultTooLarge):
        _export(tmp_path, "xlsx", [Column("n", "bigint", Kind("integer"))], [[1], [2], [3]])
    assert list(tmp_path.rglob("*")) == []


def test_a_sheet_is_made_where_its_file_is(tmp_path, monkeypatch):
    """A caller's rows stay in the folder that is its own, and no other user may read them meanwhile."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    seen: list[tuple[str, int]] = []

    def rows():
        for number in range(3):
            yield [[number]]
            seen.extend((str(path.parent.name), path.stat().st_mode & 0o777) for path in tmp_path.glob("*/*"))

    export(tmp_path / "out.xlsx", "xlsx", [Column("n", "bigint", Kind("integer"))], rows)
    assert {*seen} == {("out.xlsx.work", 0o600)}
    assert [path.name for path in tmp_path.rglob("*")] == ["out.xlsx"]


@pytest.mark.parametrize("form", FORMATS)
def test_rows_without_a_column_are_no_file(tmp_path, form):
    """Postgres answers `SELECT FROM orders` with rows. Written, they would be lost, or no reader would read them."""
    with pytest.raises(Unsupported):
        _export(tmp_path, form, [], [[], []])
    assert list(tmp_path.rglob("*")) == []


def test_the_suffix_tells_the_format():
    assert format_of(Path("a/B.PARQUET")) == "parquet"
    assert format_of(Path("x.txt"), "csv") == "csv"
    with pytest.raises(ParameterError) as caught:
        format_of(Path("x.parqet"))
    assert caught.value.suggestion == "Did you mean parquet?"
    assert {format_of(Path(f"x.{form}")) for form in FORMATS} == set(FORMATS)
