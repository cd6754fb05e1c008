"""Draws a result in a terminal: bars for names, a line over time or numbers, points, or a histogram."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Final

from dragoman.cli.output import cell_width
from dragoman.exports import Field, fields_of, label, suiting
from dragoman.model import Column
from dragoman.words import visible

FEWEST, MOST_BARS, BINS = 2, 24, 12
LARGEST: Final = 1e300
WIDTH, HEIGHT = 60, 12
"""The width and height of a drawing in characters, without its labels."""
LINE, LABEL = 80, 30
"""The most characters of a line, and of a name in it."""
_DOTS: Final = ((0x01, 0x08), (0x02, 0x10), (0x04, 0x20), (0x40, 0x80))
"""The bits of a Braille letter, by line and column. Each letter is two dots wide and four high."""
_BLANK: Final = 0x2800

Point = tuple[float, float]


def plot(columns: Sequence[Column], rows: Sequence[Sequence[Any]]) -> list[str]:
    """Return the lines that draw a result of one or two columns; none if a drawing would show nothing."""
    fields = fields_of(columns, rows)
    if len(rows) < FEWEST or not 1 <= len(fields) <= 2 or fields[-1].type != "quantitative" or _overflows(fields):
        return []
    return _DRAW[suiting(fields)](fields)


def _overflows(fields: Sequence[Field]) -> bool:
    """Return whether the differences of values may exceed a float, as those of the largest floats do."""
    numbers = (value for field in fields if field.type == "quantitative" for value in field.values)
    return any(abs(value) > LARGEST for value in numbers if value is not None)


def _bars(fields: Sequence[Field]) -> list[str]:
    name, number = fields
    values = [value or 0.0 for value in number.values]
    if len(values) > MOST_BARS or min(values) < 0 or max(values) <= 0:
        return []
    return list(_rows_of_bars([visible(label(name.type, value))[:LABEL] for value in name.values], values))


def _rows_of_bars(names: Sequence[str], values: Sequence[float], room: int = LINE) -> Iterator[str]:
    width, most = max(map(cell_width, names)), max(values)
    for name, value in zip(names, values, strict=True):
        length = max(round(value / most * min(WIDTH, room - width - 2)), value > 0)
        yield f"{name}{' ' * (width - cell_width(name))}  {'█' * length}"


def _histogram(fields: Sequence[Field]) -> list[str]:
    values = [value for value in fields[0].values if value is not None]
    low, high = min(values), max(values)
    step = (high - low) / BINS
    if not step:
        return []
    counts = [0] * BINS
    for value in values:
        counts[min(int((value - low) / step), BINS - 1)] += 1
    names = [f"{low + step * number:.6g} to {low + step * (number + 1):.6g}" for number in range(BINS)]
    bars = _rows_of_bars(names, counts, LINE - 1 - len(str(max(counts))))
    return [f"{bar} {count}" for bar, count in zip(bars, counts, strict=True)]


def _line(fields: Sequence[Field]) -> list[str]:
    points = sorted(_points(fields))
    return _canvas(fields, points, _join(points)) if _spreads(points) else []


def _scatter(fields: Sequence[Field]) -> list[str]:
    points = list(_points(fields))
    return _canvas(fields, points, points) if _spreads(points) else []


def _points(fields: Sequence[Field]) -> Iterator[Point]:
    for x, y in zip(fields[0].values, fields[1].values, strict=True):
        if x is not None and y is not None:
            yield x, y


def _spreads(points: Sequence[Point]) -> bool:
    return len({x for x, _ in points}) > 1 and len({y for _, y in points}) > 1


def _join(points: Sequence[Point]) -> Iterator[Point]:
    """Yield the points, and enough points between neighbours to show a line."""
    span = points[-1][0] - points[0][0]
    for (x, y), (to_x, to_y) in pairwise(points):
        parts = max(4 * HEIGHT, round((to_x - x) / span * 2 * WIDTH))
        yield from ((x + (to_x - x) * part / parts, y + (to_y - y) * part / parts) for part in range(parts + 1))


def _canvas(fields: Sequence[Field], points: Sequence[Point], drawn: Iterator[Point] | Sequence[Point]) -> list[str]:
    """Draw points between axes with labels at their ends."""
    (left, right), (bottom, top) = ((min(axis), max(axis)) for axis in zip(*points, strict=True))
    letters = [[_BLANK] * WIDTH for _ in range(HEIGHT)]
    for x, y in drawn:
        column = round((x - left) / (right - left) * (2 * WIDTH - 1))
        line = round((top - y) / (top - bottom) * (4 * HEIGHT - 1))
        letters[line // 4][column // 2] |= _DOTS[line % 4][column % 2]
    first, last = label("quantitative", top), label("quantitative", bottom)
    width = max(len(first), len(last))
    labels = [first, *[""] * (HEIGHT - 2), last]
    start, end = (label(fields[0].type, value) for value in (left, right))
    return [
        *(f"{label:>{width}} │{''.join(map(chr, line))}" for label, line in zip(labels, letters, strict=True)),
        f"{'':{width}} └{'─' * WIDTH}",
        f"{'':{width}}  {start}{end:>{WIDTH - len(start)}}",
    ]


_DRAW: Final[dict[str, Callable[[Sequence[Field]], list[str]]]] = {
    "bar": _bars,
    "line": _line,
    "scatter": _scatter,
    "histogram": _histogram,
}
