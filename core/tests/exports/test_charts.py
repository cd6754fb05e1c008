"""Pictures: the chart that suits the columns, drawn with nothing of the rows that is more than text."""

import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from dragoman import Column, ParameterError
from dragoman.exports import CHARTS, export, fields_of
from dragoman.exports.charts import MOST_BARS, MOST_ROWS, chart_of

NAME, MONTH, TOTAL, COUNT = (
    Column("country", "text"),
    Column("month", "date"),
    Column("total", "numeric(12,2)"),
    Column("orders", "bigint"),
)
TEXT = Column("code", "text")
HOSTILE = "</text><script>alert(1)</script>"


def mark(spec: dict[str, Any]) -> str:
    return spec["mark"] if isinstance(spec["mark"], str) else spec["mark"]["type"]


@pytest.mark.parametrize(
    ("columns", "row", "expected", "axis"),
    [
        ([NAME, TOTAL], ["France", "12.50"], "bar", "nominal"),
        ([MONTH, TOTAL], ["2024-02-29", "12.50"], "line", "temporal"),
        ([TOTAL, COUNT], ["12.50", 3], "point", "quantitative"),
        ([MONTH, COUNT], ["infinity", 3], "bar", "nominal"),
    ],
)
def test_the_columns_choose_the_chart(columns: list[Column], row: list[Any], expected: str, axis: str):
    spec = chart_of(columns, [row, row], None)
    assert (mark(spec), spec["encoding"]["x"]["type"]) == (expected, axis)


def test_a_text_of_digits_is_a_name_unless_its_column_is_of_numbers():
    codes = chart_of([TEXT, COUNT], [["007", 1], ["010", 2]], None)
    assert (mark(codes), [row["x"] for row in codes["data"]["values"]]) == ("bar", ["007", "010"])
    large = chart_of([COUNT, TOTAL], [["9007199254740993", "1.50"], [2, "NaN"]], None)
    assert large["data"]["values"] == [{"x": 9007199254740992.0, "y": 1.5, "series": "total"}]


def test_names_stand_in_the_order_of_the_rows_and_keep_their_place_without_a_value():
    rows = [["March", 3], ["April", None], ["January", 1]]
    bars = chart_of([NAME, COUNT], rows, "bar")["encoding"]["x"]
    assert (bars["sort"], bars["scale"]["domain"]) == (None, ["March", "April", "January"])
    line = chart_of([NAME, COUNT], rows, "line")
    assert line["encoding"]["x"]["sort"] is None
    assert [row["y"] for row in line["data"]["values"]] == [3, None, 1]


def test_whole_numbers_are_counted_each_in_a_bar_of_its_own():
    assert (
        chart_of([COUNT], [[1], [4], [5]], None)["encoding"]["x"]["bin"].items()
        >= {"minstep": 1, "extent": [1, 6]}.items()
    )
    assert "extent" not in chart_of([TOTAL], [["1.5"], ["2"]], None)["encoding"]["x"]["bin"]


@pytest.mark.parametrize(
    ("moments", "form"),
    [
        (["2026-01-01", "2026-01-04"], "%b %d"),
        (["2026-01-01", "2026-03-04"], "%b %d"),
        (["2026-01-01", "2027-03-04"], "%b %Y"),
        (["2026-01-01 08:00", "2026-01-01 17:30"], "%H:%M"),
        (["1999-01-01", "2026-01-04"], None),
    ],
)
def test_an_axis_of_time_names_days_months_or_hours(moments: list[str], form: str | None):
    axis = chart_of([MONTH, COUNT], [[moment, 1] for moment in moments], "line")["encoding"]["x"].get("axis", {})
    assert axis.get("format") == form


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        ("bigint", True),
        ("numeric(12,2)", True),
        ("double precision", True),
        ("UInt64", True),
        ("Nullable(Decimal(9, 2))", True),
        ("hugeint", True),
        ("interval", False),
        ("int4range", False),
        ("point", False),
        ("varchar", False),
        ("", False),
    ],
)
def test_the_type_says_whether_digits_are_numbers(declared: str, expected: bool):
    (field,) = fields_of([Column("c", declared)], [["12"]])
    assert (field.type == "quantitative") is expected


def test_columns_of_one_name_are_series_of_their_own():
    spec = chart_of([NAME, TOTAL, TOTAL], [["France", "1.5", "2.5"]], None)
    assert [(row["series"], row["y"]) for row in spec["data"]["values"]] == [("total", 1.5), ("total_2", 2.5)]
    same = chart_of([COUNT, COUNT], [[1, 2]], None)
    assert same["data"]["values"] == [{"x": 1.0, "y": 2.0, "series": "orders_2"}]


def test_bars_stand_at_the_names_wherever_those_are():
    assert chart_of([TOTAL, NAME], [["1.5", "France"]], "bar")["data"]["values"][0]["x"] == "France"
    assert chart_of([COUNT, TOTAL], [[3, "1.5"]], "bar")["data"]["values"] == [{"x": "3", "y": 1.5, "series": "total"}]


def test_one_column_of_numbers_is_a_histogram():
    assert chart_of([TOTAL], [["1.5"], [None]], None)["encoding"]["x"]["bin"]


def test_columns_of_numbers_are_series_and_so_are_names_in_a_third_column():
    columns = chart_of([MONTH, TOTAL, COUNT], [["2024-01-01", "1.5", 2]], None)
    assert [row["series"] for row in columns["data"]["values"]] == ["total", "orders"]
    names = chart_of([MONTH, NAME, COUNT], [["2024-01-01", "France", 2], ["2024-01-01", "Spain", None]], None)
    assert names["data"]["values"] == [
        {"x": 1704067200000.0, "y": 2.0, "series": "France"},
        {"x": 1704067200000.0, "y": None, "series": "Spain"},
    ]


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_is_drawn_and_its_text_is_only_text(chart: str, tmp_path: Path):
    columns = [Column(HOSTILE, "text"), COUNT]
    rows = [[HOSTILE, 3], [None, 4], ["Zoë", None]]
    assert export(tmp_path / "a.svg", "svg", columns, lambda: [rows], chart) == ()
    tree = ElementTree.parse(tmp_path / "a.svg")
    assert not [each for each in tree.iter() if each.tag.endswith(("script", "image", "foreignObject"))]
    export(tmp_path / "a.png", "png", columns, lambda: [rows], chart)
    head = (tmp_path / "a.png").read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    assert min(struct.unpack("!II", head[16:])) > 100


@pytest.mark.parametrize(
    ("rows", "chart", "words"),
    [
        ([["a", "b"]], None, "column of numbers"),
        ([], None, "column of numbers"),
        ([[str(number), number] for number in range(MOST_BARS + 1)], "bar", "too many"),
        ([["a", number] for number in range(MOST_ROWS + 1)], "line", "10,000 rows"),
    ],
)
def test_what_cannot_be_drawn_is_said(rows: list[list[Any]], chart: str | None, words: str, tmp_path: Path):
    with pytest.raises(ParameterError, match=words):
        export(tmp_path / "a.svg", "svg", [NAME, COUNT], lambda: [rows], chart)


def test_only_pictures_have_charts(tmp_path: Path):
    with pytest.raises(ParameterError, match="Only a picture"):
        export(tmp_path / "a.csv", "csv", [NAME, COUNT], lambda: [[["a", 1]]], "bar")
