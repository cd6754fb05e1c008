"""Pictures of results, for people: bars, lines, points and histograms as SVG or PNG, drawn by Vega-Lite."""

# vl_convert's functions take and return what its stubs call Any.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import vl_convert

from dragoman.errors import ParameterError
from dragoman.exports.fields import Field, fields_of, label, suiting
from dragoman.exports.formats import Source
from dragoman.model import Column

MOST_ROWS: Final = 10_000
MOST_BARS: Final = 60
MOST_SERIES: Final = 8
UPRIGHT: Final = 12
"""More bars than these lie, so that their names can be read."""
_CONFIG: Final = {
    "background": "white",
    "font": "sans-serif",
    "view": {"stroke": None},
    "axis": {"grid": True, "gridColor": "#e6e6e6", "domainColor": "#888", "tickColor": "#888", "labelLimit": 240},
    "bar": {"color": "#3b6fb6"},
    "line": {"color": "#3b6fb6", "strokeWidth": 2},
    "point": {"color": "#3b6fb6", "filled": True, "size": 36, "opacity": 0.75},
}


def write_svg(path: Path, columns: Sequence[Column], source: Source, chart: str | None = None) -> tuple[str, ...]:
    """Draw an SVG. Raises `ParameterError` for rows that the chart cannot show."""
    spec = chart_of(columns, _rows(source), chart)
    path.write_text(vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]), encoding="utf-8")
    return ()


def write_png(path: Path, columns: Sequence[Column], source: Source, chart: str | None = None) -> tuple[str, ...]:
    """Draw a PNG, twice as fine as a screen's points. Raises as `write_svg`."""
    spec = chart_of(columns, _rows(source), chart)
    path.write_bytes(vl_convert.vegalite_to_png(spec, scale=2, allowed_base_urls=[]))
    return ()


def _rows(source: Source) -> list[Sequence[Any]]:
    rows: list[Sequence[Any]] = []
    for batch in source():
        rows += batch
        if len(rows) > MOST_ROWS:
            raise ParameterError(f"A picture shows {MOST_ROWS:,} rows at most.", suggestion="Aggregate them first.")
    return rows


def chart_of(columns: Sequence[Column], rows: Sequence[Sequence[Any]], chart: str | None) -> dict[str, Any]:
    """Return what Vega-Lite draws; without a `chart`, the one that suits the columns."""
    fields = fields_of(columns, rows)
    numbers = [field for field in fields if field.type == "quantitative"]
    if not rows or not numbers:
        raise ParameterError("A picture needs rows with a column of numbers.", suggestion="Select a name and a number.")
    chart = chart or suiting(fields)
    drawn = _DRAW[chart](fields, numbers)
    return {"$schema": "https://vega.github.io/schema/vega-lite/v5.json", "config": _CONFIG, **drawn}


def _bar(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    name = next((field for field in fields if field.type != "quantitative"), fields[0])
    if len(set(name.values)) > MOST_BARS:
        raise ParameterError(
            f"{len(set(name.values))} bars are too many to read; {MOST_BARS} are the most.",
            suggestion="Aggregate, or add LIMIT; or draw a line or a histogram.",
        )
    lies = len(name.values) > UPRIGHT or max(len(str(value)) for value in name.values) > UPRIGHT
    spec = _series(_as_names(name), fields, numbers, "bar")
    encoding = spec["encoding"]
    encoding["x"] |= {"sort": None, "axis": {"labelAngle": 0, "grid": False}}
    encoding["y"] |= {"scale": {"zero": True}, "stack": None}
    beside = {"field": "series", "sort": None} if "color" in encoding else None
    if lies:
        encoding["x"], encoding["y"] = encoding["y"], {**encoding["x"], "axis": {"grid": False}}
        encoding |= {"yOffset": beside} if beside else {}
        return {**spec, "width": 560, "height": {"step": 18, "for": "position"}}
    encoding |= {"xOffset": beside} if beside else {}
    return {**spec, "width": {"step": 48, "for": "position"}, "height": 300}


def _as_names(field: Field) -> Field:
    """Return a field whose values are laid out by their labels."""
    return Field(field.name, "nominal", [label(field.type, value) for value in field.values])


def _line(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    spec = _series(fields[0], fields, numbers, {"type": "line", "point": len(fields[0].values) <= 60})
    return {**spec, "width": 640, "height": 320}


def _scatter(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    return {**_series(fields[0], fields, numbers, "point"), "width": 560, "height": 380}


def _histogram(fields: Sequence[Field], numbers: Sequence[Field]) -> dict[str, Any]:
    shown = numbers[0]
    return {
        "data": {"values": [{"x": value} for value in shown.values if value is not None]},
        "mark": {"type": "bar", "binSpacing": 1},
        "encoding": {
            "x": {"field": "x", "bin": {"maxbins": 30}, "type": "quantitative", "title": shown.name},
            "y": {"aggregate": "count", "type": "quantitative", "title": "rows"},
        },
        "width": 560,
        "height": 320,
    }


def _series(x: Field, fields: Sequence[Field], numbers: Sequence[Field], mark: Any) -> dict[str, Any]:
    """One series of each further column of numbers; or of each value of a third column, where that is of names."""
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
        if value is not None
    ]
    encoding: dict[str, Any] = {
        "x": {"field": "x", "type": x.type, "title": x.name},
        "y": {"field": "y", "type": "quantitative", "title": others[0].name if len(others) == 1 else None},
    }
    if x.type == "temporal":
        encoding["x"]["scale"] = {"type": "utc"}
    elif x.type == "quantitative":
        encoding["x"]["scale"] = {"zero": False}
    encoding["y"]["scale"] = {"zero": False}
    if len({row["series"] for row in rows}) > 1:
        encoding["color"] = {"field": "series", "type": "nominal", "title": title or None, "sort": None}
    return {"data": {"values": rows}, "mark": mark, "encoding": encoding}


_DRAW: Final[dict[str, Callable[[Sequence[Field], Sequence[Field]], dict[str, Any]]]] = {
    "bar": _bar,
    "line": _line,
    "scatter": _scatter,
    "histogram": _histogram,
}
