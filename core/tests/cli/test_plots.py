"""`dragoman query --plot`: what suits the columns is drawn, and nothing where a drawing would say nothing."""

from __future__ import annotations

from typing import Any

import pytest
from dragoman import Column
from dragoman.cli.output import cell_width
from dragoman.cli.plots import BINS, HEIGHT, LINE, MOST_BARS, WIDTH, plot
from hypothesis import example, given
from hypothesis import strategies as st

NAME, DAY, AT = Column("name", "text"), Column("day", "date"), Column("at", "timestamptz")
NUMBER, EXACT = Column("n", "integer"), Column("total", "numeric(12,2)")


def dots(lines: list[str]) -> list[tuple[int, int]]:
    """The letters of a canvas that are not blank, by line and column."""
    drawn = [line.partition("│")[2] for line in lines[:HEIGHT]]
    return [(row, place) for row, line in enumerate(drawn) for place, letter in enumerate(line) if letter != "\u2800"]


def test_a_name_and_a_number_are_bars():
    lines = plot([NAME, EXACT], [["Ada", "10.00"], ["Zoë", "5.00"], [None, None]])
    assert lines == [f"Ada   {'█' * WIDTH}", f"Zoë   {'█' * (WIDTH // 2)}", "NULL  "]


def test_a_number_over_time_is_a_line_from_end_to_end():
    lines = plot([DAY, EXACT], [["2026-01-01", "1.00"], ["2026-01-03", "3.00"], ["2026-01-02", "2.00"]])
    assert len(lines) == HEIGHT + 2
    assert lines[0].startswith("3 │")
    assert lines[HEIGHT - 1].startswith("1 │")
    assert lines[-1].split() == ["2026-01-01", "2026-01-03"]
    assert {place for _, place in dots(lines)} == set(range(WIDTH))
    assert {(HEIGHT - 1, 0), (0, WIDTH - 1)} <= set(dots(lines))


def test_a_time_of_day_is_written_at_the_ends():
    lines = plot([AT, NUMBER], [["2026-01-01 12:30:00+00", 1], ["2026-01-01 14:00:00+00", 2]])
    assert lines[-1].split() == ["2026-01-01", "12:30", "2026-01-01", "14:00"]


def test_two_numbers_are_points():
    points = [[0, 0.0], [1, 5], [2, 10], [None, 7]]
    assert len(dots(plot([NUMBER, Column("f", "double precision")], points))) == 3


def test_one_column_of_numbers_is_a_histogram():
    lines = plot([NUMBER], [[number] for number in (0, 0, 0, 1, 12)])
    assert len(lines) == BINS
    assert lines[0].startswith("0 to 1 ")
    assert [int(line.split()[-1]) for line in lines] == [3, 1, *[0] * (BINS - 3), 1]


@pytest.mark.parametrize(
    ("columns", "rows"),
    [
        ([NAME, NUMBER], []),
        ([NAME, NUMBER], [["a", 1]]),
        ([NAME, NUMBER], [["a", 1], ["b", -1]]),
        ([NAME, NUMBER], [["a", 0], ["b", None]]),
        ([NAME, NUMBER], [[str(number), number] for number in range(MOST_BARS + 1)]),
        ([NAME, NAME], [["a", "1"], ["b", "2"]]),
        ([NAME, NUMBER, NUMBER], [["a", 1, 2]] * 3),
        ([DAY, NUMBER], [["2026-01-01", 1], ["2026-01-01", 2]]),
        ([NUMBER, NUMBER], [[1, 2], [2, 2]]),
        ([EXACT], [["NaN"], ["NaN"]]),
        ([NUMBER], [[7], [7]]),
    ],
)
def test_what_a_drawing_would_not_show_is_not_drawn(columns: list[Column], rows: list[list[Any]]):
    assert plot(columns, rows) == []


_FLOATS = st.none() | st.floats() | st.sampled_from([0.0, 5e-324, 1e-323, 1.7e308, -1.7e308])


@given(st.lists(st.tuples(_FLOATS, _FLOATS), max_size=5), st.sampled_from(["n", "day", "name"]))
@example([(0.0, 0.0), (5e-324, 5e-324)], "n")
@example([(-1.7e308, -1.7e308), (1.7e308, 1.7e308)], "n")
def test_floats_of_any_size_are_drawn_or_not_and_nothing_fails(points, first):
    number, measured = Column("n", "double precision"), Column("m", "double precision")
    days = [[f"2026-01-{day:02}", y] for day, (_, y) in enumerate(points, 1)]
    plot([number], [[x] for x, _ in points])
    named = {"n": [*map(list, points)], "day": days, "name": days}[first]
    plot([{"n": number, "day": DAY, "name": NAME}[first], measured], named)


def test_a_value_that_a_terminal_would_obey_is_spelled_out():
    assert "\x1b" not in "".join(plot([NAME, NUMBER], [["\x1b[31m", 1], ["b", 2]]))


def test_the_command_draws_below_the_table(dragoman, configured):
    outcome = dragoman("query", "shop", "SELECT name, id FROM customers ORDER BY id", "--plot")
    assert outcome.out.splitlines()[-1].endswith("█" * WIDTH)
    nothing = dragoman("query", "shop", "SELECT name FROM customers", "--plot")
    assert "nothing is drawn" in nothing.err


@pytest.mark.parametrize("name", ["x" * 200, "漢字" * 50, "a"])
def test_a_drawing_is_as_wide_as_a_terminal_at_most(name: str):
    bars = plot([NAME, NUMBER], [[f"{name}{number}", number] for number in range(1, 9)])
    histogram = plot([NUMBER], [[number * 10**9 + 1] for number in range(500)])
    assert bars
    assert histogram
    assert max(map(cell_width, bars + histogram)) <= LINE
