"""Pictures of results, for people: bars, lines, points and histograms as SVG or PNG, drawn by Vega-Lite."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from dragoman.errors import ParameterError
from dragoman.exports.drawing import draw
from dragoman.exports.fields import Field, fields_of, label, suiting
from dragoman.exports.formats import Source
from dragoman.exports.text import distinct
from dragoman.model import Column

MOST_ROWS: Final = 10_000
MOST_BARS: Final = 60
MOST_SERIES: Final = 8
MOST_LETTERS: Final = 100
"""The most characters of a name or title: more than is shown, and few enough to measure quickly."""
UPRIGHT: Final = 12
"""With more bars, or a name with more letters, bars are horizontal so that their names can be read."""
LETTER: Final = 7
"""The width of a letter of a label, in points."""
DAY: Final = 86_400_000
"""Milliseconds in a day."""
_ABOVE: Final = {
    "grid": False,
    "titleAngle": 0,
    "titleAlign": "right",
    "titleX": -8,
    "titleY": -8,
    "labelOverlap": True,
}
"""With names longer than this there is no room for a title."""
_CONFIG: Final = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#e6e6e6", "domainColor": "#888", "tickColor": "#888", "labelLimit": 240},
    "bar": {"color": "#3b6fb6"},
    "line": {"color": "#3b6fb6", "strokeWidth": 2},
    "point": {"color": "#3b6fb6", "filled": True, "size": 36, "opacity": 0.75},
}


def write_svg(
    path: Path, columns: Sequence[Column], source: Source, check: Callable[[], None], chart: str | None = None
) -> tuple[str, ...]:
    """Draw an SVG. Raises `ParameterError` for rows that the chart cannot show, and whatever `check` raises."""
    return _write("svg", path, chart_of(columns, _rows(source), chart), check)


def write_png(
    path: Path, columns: Sequence[Column], source: Source, check: Callable[[], None], chart: str | None = None
) -> tuple[str, ...]:
    """Draw a PNG. Raises as `write_svg` does."""
    return _write("png", path, chart_of(columns, _rows(source), chart), check)


def _write(form: str, path: Path, spec: dict[str, Any], check: Callable[[], None]) -> tuple[str, ...]:
    path.write_bytes(draw(spec, form, check))
    return ()


def _rows(source: Source) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for batch in source():
        rows += batch
        if len(rows) > MOST_ROWS:
            raise ParameterError(f"A picture shows {MOST_ROWS:,} rows at most.", suggestion="Aggregate them first.")
    return rows


def chart_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]], chart: str | None) -> dict[str, Any]:
    """Return the Vega-Lite specification. Without a `chart`, the columns decide which one it is."""
    fields = [_shorten(field) for field in fields_of(_rename(columns), rows)]
    numbers = [field for field in fields if field.type == "quantitative"]
    if not rows or not numbers:
        raise ParameterError("A picture needs rows with a column of numbers.", suggestion="Select a name and a number.")
    chart = chart or suiting(fields)
    drawn = _DRAW[chart](fields, numbers)
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **drawn}


def _rename(columns: Sequence[Column]) -> list[Column]:
    """Return the columns with names that fit a picture."""
    return [replace(column, name=_cut(column.name)) for column in columns]


def _shorten(field: Field) -> Field:
    """Return a field of names, each shortened to fit. Different names stay different."""
    if field.type != "nominal":
        return field
    names = list(dict.fromkeys(field.values))
    shown = dict(zip(names, distinct([_cut(name) for name in names]), strict=True))
    return replace(field, values=[shown[value] for value in field.values])


def _cut(text: str) -> str:
    return text if len(text) <= MOST_LETTERS else f"{text[: MOST_LETTERS - 1]}\N{HORIZONTAL ELLIPSIS}"


def _bar(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    name = next((field for field in fields if field.type != "quantitative"), fields[0])
    if len(set(name.values)) > MOST_BARS:
        raise ParameterError(
            f"{len(set(name.values))} bars are too many to read; {MOST_BARS} are the most.",
            suggestion="Aggregate, or add LIMIT; or draw a line or a histogram.",
        )
    names = _as_names(name)
    labels = list(dict.fromkeys(names.values))
    longest = max(map(len, labels))
    lies = len(labels) > UPRIGHT or longest > UPRIGHT
    spec = _series(names, fields, numbers, "bar")
    encoding = spec["encoding"]
    # A name whose value is missing keeps its place.
    encoding["x"] |= {"sort": None, "scale": {"domain": labels}, "axis": {"labelAngle": 0, "grid": False}}
    encoding["y"] |= {"scale": {"zero": True}, "stack": None}
    beside = {"field": "series", "sort": None} if "color" in encoding else None
    if lies:
        encoding["x"], encoding["y"] = encoding["y"], {**encoding["x"], "axis": _ABOVE}
        encoding |= {"yOffset": beside} if beside else {}
        return {**spec, "width": 560, "height": {"step": 18, "for": "position"}}
    encoding |= {"xOffset": beside} if beside else {}
    step = max(48, LETTER * longest + 8, min(96, 288 // len(labels)))
    return {**spec, "width": {"step": step, "for": "position"}, "height": 300}


def _as_names(field: Field) -> Field:
    """Return a field whose values are placed by their labels."""
    return Field(field.name, "nominal", [label(field.type, value) for value in field.values])


def _line(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    # Points mark the ends of lines too: a line has a gap where a value is missing.
    spec = _series(fields[0], fields, numbers, {"type": "line", "point": len(fields[0].values) <= 60}, gaps=True)
    if fields[0].type == "nominal":
        spec["encoding"]["x"] |= {"sort": None, "axis": {"labelAngle": -30, "grid": False}}
    return {**spec, "width": 640, "height": 320}


def _scatter(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    return {**_series(fields[0], fields, numbers, "point"), "width": 560, "height": 380}


def _histogram(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    shown = numbers[0]
    values = [value for value in shown.values if value is not None]
    # For whole numbers each bar begins at one, including the last bar.
    extent = [min(values), max(values) + 1]
    whole = {"minstep": 1, "extent": extent} if all(value.is_integer() for value in values) else {}
    return {
        "data": {"values": [{"x": value} for value in values]},
        "mark": {"type": "bar", "binSpacing": 1},
        "encoding": {
            "x": {"field": "x", "bin": {"maxbins": 30, **whole}, "type": "quantitative", "title": shown.name},
            "y": {"aggregate": "count", "type": "quantitative", "title": "rows", "axis": {"tickMinStep": 1}},
        },
        "width": 560,
        "height": 320,
    }


def _series(
    x: Field, fields: Sequence[Field], numbers: Sequence[Field], mark: Any, *, gaps: bool = False
) -> dict[str, Any]:
    """Return one series for each further column of numbers, or for each value of a third column if that has names.

    `gaps`: a missing value is a gap, and is not left out.
    """
    others = [field for field in numbers if field.name != x.name or len(numbers) == 1][:MOST_SERIES]
    names = [field for field in fields[1:] if field.type == "nominal" and field.name != x.name]
    if len(others) == 1 and names and len(set(names[0].values)) <= MOST_SERIES:
        told, title = [(others[0], names[0].values)], names[0].name
    else:
        told, title = [(field, [field.name] * len(field.values)) for field in others], ""
    rows = [
        {"x": at, "y": value, "series": series}
        for field, names_of in told
        for at, value, series in zip(x.values, field.values, names_of, strict=True)
        if gaps or value is not None
    ]
    encoding: dict[str, Any] = {
        "x": {"field": "x", "type": x.type, "title": x.name},
        "y": {"field": "y", "type": "quantitative", "title": others[0].name if len(others) == 1 else None},
    }
    if x.type == "temporal":
        encoding["x"] |= _over_time(x)
    elif x.type == "quantitative":
        encoding["x"]["scale"] = {"zero": False}
    encoding["y"]["scale"] = {"zero": False}
    if len({row["series"] for row in rows}) > 1:
        encoding["color"] = {"field": "series", "type": "nominal", "title": title or None, "sort": None}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


def _over_time(field: Field) -> dict[str, Any]:
    """Return the scale, the ticks and the title of a time axis: days if the values are days, hours within a day."""
    scale = {"scale": {"type": "utc"}}
    moments = [value for value in field.values if value is not None]
    first, last = min(moments, default=0.0), max(moments, default=0.0)
    days = (last - first) / DAY
    begun = f"{field.name} (from {label('temporal', first // DAY * DAY)})"
    if all(value % DAY == 0 for value in moments) and days <= 800:
        ticks = ("day", 1, "%b %d") if days <= 14 else ("week", 1, "%b %d") if days <= 100 else ("month", 1, "%b %Y")
        interval, step, form = ticks if days <= 400 else ("month", 3, "%b %Y")
        axis = {"format": form, "tickCount": {"interval": interval, "step": step}}
        return {**scale, "axis": axis, **({"title": begun} if form == "%b %d" else {})}
    if days <= 1.5:
        return {**scale, "title": begun, "axis": {"format": "%H:%M"}}
    return scale


_DRAW: Final[dict[str, Callable[[Sequence[Field], Sequence[Field]], dict[str, Any]]]] = {
    "bar": _bar,
    "line": _line,
    "scatter": _scatter,
    "histogram": _histogram,
}
