"""Pictures: the chart that suits the columns, drawn with nothing of the rows that is more than text."""

import struct
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest
from dragoman import Column, ParameterError
from dragoman.exports import CHARTS, export
from dragoman.exports.charts import MOST_BARS, MOST_ROWS, chart_of

NAME, MONTH, TOTAL, COUNT = (
    Column("country", "text"),
    Column("month", "date"),
    Column("total", "numeric(12,2)"),
    Column("orders", "bigint"),
)
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


def test_one_column_of_numbers_is_a_histogram():
    assert chart_of([TOTAL], [["1.5"], [None]], None)["encoding"]["x"]["bin"]


def test_columns_of_numbers_are_series_and_so_are_names_in_a_third_column():
    columns = chart_of([MONTH, TOTAL, COUNT], [["2024-01-01", "1.5", 2]], None)
    assert [row["series"] for row in columns["data"]["values"]] == ["total", "orders"]
    names = chart_of([MONTH, NAME, COUNT], [["2024-01-01", "France", 2], ["2024-01-01", "Spain", None]], None)
    assert names["data"]["values"] == [{"x": 1704067200000.0, "y": 2.0, "series": "France"}]


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
