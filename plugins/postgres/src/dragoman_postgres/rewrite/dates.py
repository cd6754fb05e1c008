"""Dates and times of the standard and of Trino. If only a column's type could decide, the query is refused."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, number, ours, text
from sqlglot import exp

from dragoman_postgres.rewrite.numbers import product
from dragoman_postgres.rewrite.rewriting import (
    COMPARISONS,
    MOMENTS,
    NUMBERS,
    Notes,
    Rewriter,
    cast,
    kind_of,
    parent_of,
    unsupported,
)

_DAYS = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY"})
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}
_UNITS = frozenset({*_DAYS, *_SECONDS})
# Trino's names of fields, and Postgres'.
_FIELDS = {
    "YEAR": "YEAR", "QUARTER": "QUARTER", "MONTH": "MONTH", "WEEK": "WEEK", "DAY": "DAY", "DAY_OF_MONTH": "DAY",
    "DAY_OF_WEEK": "ISODOW", "DAYOFWEEK": "ISODOW", "DOW": "ISODOW", "DAY_OF_YEAR": "DOY", "DAYOFYEAR": "DOY",
    "DOY": "DOY", "YEAR_OF_WEEK": "ISOYEAR", "YOW": "ISOYEAR", "YEAROFWEEK": "ISOYEAR", "HOUR": "HOUR",
    "MINUTE": "MINUTE", "SECOND": "SECOND",
}  # fmt: skip
_FUNCTIONS: dict[type[Any], str] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.WeekOfYear: "WEEK", exp.Day: "DAY",
    exp.DayOfMonth: "DAY", exp.DayOfWeekIso: "ISODOW", exp.DayOfYear: "DOY", exp.YearOfWeek: "ISOYEAR",
    exp.Hour: "HOUR", exp.Minute: "MINUTE", exp.Second: "SECOND",
}  # fmt: skip
_TRUNCATED = frozenset({"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"})
# Formats that strftime writes as digits, and their equivalents for to_char.
_FORMATS = {
    "%Y": "YYYY", "%m": "MM", "%d": "DD", "%H": "HH24", "%M": "MI", "%S": "SS", "%j": "DDD", "%F": "YYYY-MM-DD",
    "%T": "HH24:MI:SS",
}  # fmt: skip
_FORMAT = re.compile(r"%[YmdHMSjFT]|[^%A-Za-z0-9\"\\]|[A-Za-z]+")
_MIDNIGHT = (
    "A date plus an interval, or cut by date_trunc, is a timestamp in Postgres: cast to date where one is meant."
)
_CAST = "Say which: CAST(... AS date) or CAST(... AS timestamp)."


def is_compared(node: Any) -> bool:
    """Return whether a value is only compared: there, a date and a timestamp of its midnight are the same."""
    parent = parent_of(node)
    if isinstance(parent, (exp.Extract, *COMPARISONS)):
        return True
    return isinstance(parent, (exp.Between, exp.In)) and not isinstance(node, exp.Query)


# Arithmetic


def _sum(node: Any, notes: Notes) -> Any:
    left, right = node.this, node.expression
    kinds = kind_of(left), kind_of(right)
    if "interval" in kinds:
        return _move(node, notes)
    if not notes.trino or isinstance(node, exp.Add):
        node = product(node, notes)
        if MOMENTS & set(kinds):
            raise unsupported("A sum or difference of dates", "Use intervals, or a function of dates.")
        return node
    if MOMENTS & set(kinds):
        raise unsupported("A difference of dates, which is an interval in Trino,", "Use date_diff('day', a, b).")
    if NUMBERS.isdisjoint(kinds):
        # A difference of dates would be a number of days. `1 *` makes Postgres refuse it.
        notes.add("- is arithmetic on numbers here: use date_diff for dates.")
        node.set("expression", exp.Mul(this=number(1), expression=right))
    return node


def _move(node: Any, notes: Notes) -> Any:
    if not notes.trino:
        return node
    moment, interval = node.this, node.expression
    if kind_of(moment) == "interval" and isinstance(node, exp.Add):
        moment, interval = interval, moment
    unit = bare(interval).args.get("unit")
    name = unit.name.upper().rstrip("S") if isinstance(unit, exp.Var) else ""
    return type_like(node, moment, name, notes)


def type_like(moved: Any, moment: Any, unit: str, notes: Notes) -> Any:
    """Return `moved`, a moment plus an interval of `unit`, with the type of the moment.

    Postgres turns dates into timestamps.
    """
    kind = kind_of(moment)
    if kind == "date" and unit in _DAYS:
        return cast(moved, "date")
    if kind in {"timestamp", "zoned"}:
        return ours(moved, kind)
    if kind:
        raise unsupported(f"An interval of {unit.lower() or 'several units'} beside a {kind}", _CAST)
    if not is_compared(moved):
        notes.add(_MIDNIGHT)
    return ours(moved, "timestamp")


def _interval(node: Any, notes: Notes) -> Any:
    parent = parent_of(node)
    if notes.trino and not isinstance(parent, (exp.Add, exp.Sub)):
        raise unsupported("An interval as a value", "Add it to a date or a timestamp.")
    unit = node.args.get("unit")
    if notes.trino and (not isinstance(unit, exp.Var) or unit.name.upper().rstrip("S") not in _UNITS):
        raise unsupported("This interval", "Write it as interval '1' day, of one unit.")
    return node


def _add(node: Any, notes: Notes) -> Any:
    """Rewrite date_add(unit, amount, moment)."""
    amount, unit = node.expression, _unit(node)
    if unit not in _UNITS:
        raise unsupported(f"date_add of {unit}", "Use year, quarter, month, week, day, hour, minute or second.")
    months = {"QUARTER": 3}.get(unit, 1)
    interval = exp.Interval(this=text(f"{months} {'MONTH' if unit == 'QUARTER' else unit}"))
    return type_like(
        ours(exp.paren(exp.Add(this=node.this, expression=exp.Mul(this=amount, expression=interval)))),
        node.this,
        unit,
        notes,
    )


def _unit(node: Any) -> str:
    return str(node.args["unit"].name.upper()) if node.args.get("unit") else "DAY"


def _difference_in(node: Any, notes: Notes) -> Any:
    """Rewrite date_diff(unit, a, b): whole units between two moments, dates or timestamps."""
    unit = _unit(node)
    if not notes.trino or unit not in _SECONDS:
        raise unsupported(f"date_diff of {unit}", "Use day, hour, minute or second.")
    if "zoned" in (kind_of(node.this), kind_of(node.expression)):
        raise unsupported("date_diff of timestamps with time zone", "Cast both to timestamp.")
    later, earlier = (cast(side, "timestamp") for side in (node.this, node.expression))
    seconds = _extract_field("EPOCH", exp.paren(exp.Sub(this=later, expression=earlier)))
    units = exp.Div(this=seconds, expression=number(_SECONDS[unit]))
    return ours(cast(call("trunc", units), "bigint"), "integer")


# Fields


def _extract_field(field: str, moment: Any) -> Any:
    return ours(exp.Extract(this=exp.var(field), expression=moment), "number")


def _field(field: str, moment: Any) -> Any:
    """Return a field as the whole number that it is elsewhere. Postgres' extract returns a numeric."""
    value = _extract_field(field, moment)
    return cast(call("trunc", value) if field == "SECOND" else value, "integer")


def _extract(node: Any, notes: Notes) -> Any:
    if not notes.trino:
        return node
    field = _FIELDS.get(node.name.upper())
    if field is None:
        raise unsupported(f"EXTRACT({node.name})", f"Use one of {', '.join(sorted(_FIELDS))}.")
    return _field(field, node.expression)


def _extract_named_field(node: Any, notes: Notes) -> Any:
    return _field(_FUNCTIONS[node.__class__], node.this)


def _truncate(node: Any, notes: Notes) -> Any:
    unit = _unit(node)
    if node.args.get("zone") or unit not in _TRUNCATED:
        raise unsupported(f"date_trunc to {unit}", f"Use one of {', '.join(sorted(_TRUNCATED))}.")
    kind = kind_of(node.this)
    moment = call("date_trunc", unit.lower(), node.this, kind=kind or "timestamp")
    if not notes.trino or kind in {"timestamp", "zoned"}:
        return moment
    if kind == "date":
        moment.meta["kind"] = ""
        return cast(moment, "date")
    if not is_compared(node):
        notes.add(_MIDNIGHT)
    return moment


def _last_day(node: Any, notes: Notes) -> Any:
    if node.args.get("unit"):
        raise unsupported("The last day of another unit", "Use last_day_of_month.")
    first = call("date_trunc", "month", cast(node.this, "timestamp"))
    day = exp.Add(this=first, expression=exp.Interval(this=text("1 month -1 day")))
    return cast(ours(day), "date")


def _as_date(node: Any, notes: Notes) -> Any:
    if node.expressions or node.args.get("zone") or node.this is None:
        raise unsupported("date() of several values", "Cast a text: CAST('2024-01-31' AS date).")
    return cast(node.this, "date")


def _epoch(node: Any, notes: Notes) -> Any:
    if kind_of(node.this) == "zoned":
        raise unsupported("The seconds of a timestamp with time zone", "Cast to timestamp.")
    return cast(_extract_field("EPOCH", node.this), "double precision")


def _today(node: Any, notes: Notes) -> Any:
    if node.this is not None:
        raise unsupported("The current time with a precision or a zone", "Use current_timestamp.")
    notes.add("The current time and date are those of the Postgres session's time zone.")
    return node


# Formats


def format_moment(form: Any, moment: Any, kind: str = "text") -> Any:
    """Return a moment as text in a format of strftime. Raises `Unsupported` unless the format has only digits."""
    if not isinstance(form, exp.Literal):
        raise unsupported("A format of dates that is computed", "Write it as a literal.")
    parts: list[str] = _FORMAT.findall(form.name)
    if "".join(parts) != form.name:
        raise unsupported(f"The format of dates {form.name!r}", "Use digits of years, months, days and times only.")
    written = "".join(f'"{part}"' if part[0].isalpha() else _FORMATS.get(part, part) for part in parts)
    made = call("to_char", moment, written, kind=kind)
    made.meta["digits"] = form.name in _FORMATS and form.name not in {"%F", "%T"}
    return made


def _format(node: Any, notes: Notes) -> Any:
    if kind_of(node.this) == "text":
        raise unsupported("A text as a date", "Cast it to date or timestamp.")
    return format_moment(node.args["format"], node.this)


DATES: dict[type[Any], Rewriter] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Interval: _interval,
    exp.DateAdd: _add,
    exp.DateDiff: _difference_in,
    exp.Extract: _extract,
    **dict.fromkeys(_FUNCTIONS, _extract_named_field),
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.LastDay: _last_day,
    exp.Date: _as_date,
    exp.TimeToUnix: _epoch,
    exp.TimeToStr: _format,
    exp.CurrentDate: _today,
    exp.CurrentTimestamp: _today,
    exp.Localtimestamp: _today,
}
