"""Dates and timestamps: sums with intervals, fields that count differently, formats, time zones."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import call, is_text, number, text
from sqlglot import exp

from dragoman_trino.rewrite.numbers import check_numbers, fold, kind_of_number
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, bare, cast, in_parens, kind_of, unsupported, whole

DATES_STAY = "Where Postgres turns a date into a timestamp, Trino keeps a date."
_DAYS = "- between columns is arithmetic on numbers: write a::date - b::date for a number of days."
_UNITS = ("year", "month", "week", "day", "hour", "minute", "second")
_INTERVAL = re.compile(r"\s*([+-]?\d+)\s*([a-z]+)\s*")
_FIELDS = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "DOY", "HOUR", "MINUTE"}
_TRUNCATED = {"YEAR", "QUARTER", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND"}
# Formats whose digits are the same everywhere.
_FORMAT = re.compile(r'(?:%[YmdHMSjyFT]|[^%A-Za-z0-9"]|"?T"?)*')


def parts_of(interval: Any) -> list[tuple[int, str]]:
    """Return an interval literal as amounts and units, longest first, as Postgres adds them."""
    value, unit = interval.this, interval.args.get("unit")
    if not isinstance(value, exp.Literal):
        raise unsupported("An interval that is computed", "Write the interval as a literal.")
    written = f"{value.name} {unit.name}" if unit else value.name
    parts = _INTERVAL.findall(written.lower())
    names = [name.removesuffix("s") for _, name in parts]
    if not parts or _INTERVAL.sub("", written.lower()) or not set(names) <= set(_UNITS):
        raise unsupported(
            f"The interval {written!r}", "Write it in whole years, months, weeks, days, hours, minutes, seconds."
        )
    found = [(int(amount), name) for (amount, _), name in zip(parts, names, strict=True)]
    return sorted(_join_months(found), key=lambda part: _UNITS.index(part[1]))


def _join_months(parts: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Make one step of years and months: a year before February 29th, and then a month, would lose a day."""
    months = [amount * (12 if unit == "year" else 1) for amount, unit in parts if unit in {"year", "month"}]
    if len(months) < 2:
        return parts
    return [(sum(months), "month"), *(part for part in parts if part[1] not in {"year", "month"})]


def move_moment(moment: Any, parts: list[tuple[int, str]], sign: int = 1) -> Any:
    """Return `moment` with amounts of units added one after another."""
    for amount, unit in parts:
        if unit == "week":
            amount, unit = amount * 7, "day"
        step = exp.Interval(this=text(str(abs(amount))), unit=exp.Var(this=unit.upper()))
        operator = exp.Sub if amount * sign < 0 else exp.Add
        moment = operator(this=moment, expression=step)
        moment.meta["kind"] = kind_of(moment.this)
    return moment


def _sum(node: Any, notes: Notes) -> Any:
    sign = 1 if isinstance(node, exp.Add) else -1
    left, right = node.this, node.expression
    if kind_of(left) == "interval" and sign == 1:
        left, right = right, left
    if sign == 1 and whole(left) is not None and kind_of(right) == "date":
        left, right = right, left
    kinds = kind_of(left), kind_of(right)
    if kinds[1] == "interval":
        return _shift(left, right, sign, notes)
    if not any(kinds):
        check_numbers(node)
        constant = fold(node, notes)
        if constant is not None:
            return constant
        if sign == -1 and not _is_number(left) and not _is_number(right):
            notes.add(_DAYS)
        return node
    if kinds == ("date", "date") and sign == -1:
        return _whole(call("date_diff", "day", right, left))
    days = whole(right)
    if kinds[0] == "date" and days is not None:
        return call("date_add", "day", sign * days, left, kind="date")
    raise unsupported(
        "Arithmetic between a moment and what may be one",
        "Cast both sides with ::date for a number of days, or add an interval written as a literal.",
    )


def _whole(node: Any) -> Any:
    bare(node).meta["number"] = "whole"
    return node


def _is_number(node: Any) -> bool:
    if isinstance(bare(node), (exp.Min, exp.Max)) and not kind_of_number(node):
        raise unsupported(
            "The difference of what may be dates",
            "Cast both sides with ::date for a number of days, with ::numeric for numbers.",
        )
    return bool(kind_of_number(node)) or not isinstance(bare(node), (exp.Column, exp.Window))


def _shift(moment: Any, interval: Any, sign: int, notes: Notes) -> Any:
    kind = kind_of(moment)
    if kind == "interval":
        raise unsupported("Arithmetic on an interval", "Write the whole interval as a literal.")
    if is_text(moment):
        raise unsupported("An interval beside a text", "Cast it: write date '2024-01-31'.")
    if kind == "date" and notes.source == "postgres":
        moment = cast(moment, "timestamp(6)")
    if not kind:
        notes.add(DATES_STAY)
    return exp.paren(move_moment(in_parens(moment), parts_of(interval), sign))


def _extract(node: Any, notes: Notes) -> Any:
    field, moment = node.name.upper(), node.expression
    if kind_of(moment) == "interval":
        raise unsupported("A field of an interval", "Compute it from the two moments.")
    if field in {"DOW", "DAYOFWEEK"}:
        return _field(exp.paren(exp.Mod(this=call("day_of_week", moment), expression=number(7))))
    if field in {"ISODOW", "ISOYEAR"}:
        return _field(call({"ISODOW": "day_of_week", "ISOYEAR": "year_of_week"}[field], moment))
    if field == "EPOCH":
        return call("to_unixtime", cast(moment, "timestamp(6)") if kind_of(moment) == "date" else moment)
    if field not in _FIELDS:
        raise unsupported(f"EXTRACT({field})", f"Use one of {', '.join(sorted(_FIELDS))}, DOW, ISODOW, EPOCH.")
    return _field(exp.Extract(this=exp.Var(this=field), expression=moment))


def _field(node: Any) -> Any:
    """Mark a field of a date: a whole number in Trino, but a numeric in Postgres, whose quotients have fractions."""
    bare(node).meta["field"] = True
    return _whole(node)


def _truncate(node: Any, notes: Notes) -> Any:
    unit, moment = node.args["unit"].name.upper(), node.this
    if node.args.get("zone"):
        raise unsupported("date_trunc with a time zone", "Use UTC.")
    if unit not in _TRUNCATED:
        raise unsupported(f"date_trunc to {unit}", f"Use one of {', '.join(sorted(_TRUNCATED))}.")
    kind = kind_of(moment)
    if kind == "date" and notes.source == "postgres":
        moment, kind = cast(moment, "timestamp(6) with time zone"), "timestamptz"
    if not kind and notes.source == "postgres":
        notes.add(DATES_STAY)
    return call("date_trunc", unit.lower(), moment, kind=kind)


def spell(form: str) -> str:
    """Return a format of strftime as date_format writes it. Raises `Unsupported` for a format with another spelling."""
    if not _FORMAT.fullmatch(form):
        raise unsupported("This format of a date or number", "Use digits of years, months, days and times only.")
    plain = form.replace('"', "").replace("%F", "%Y-%m-%d").replace("%T", "%H:%M:%S")
    return plain.replace("%M", "%i").replace("%S", "%s")


def _format(node: Any, notes: Notes) -> Any:
    form = node.args["format"]
    if not is_text(form):
        raise unsupported("A format that is computed", "Write the format as a literal.")
    found = call("date_format", node.this, spell(form.name))
    return cast(found, "varchar")


def _parse(node: Any, notes: Notes) -> Any:
    form = node.args["format"]
    if not is_text(form):
        raise unsupported("A format that is computed", "Write the format as a literal.")
    return cast(call("date_parse", node.this, spell(form.name)), "date")


def _set_zone(node: Any, notes: Notes) -> Any:
    """Rewrite AT TIME ZONE, which gives a timestamp its zone, and removes it from one that has it."""
    kind, zone = kind_of(node.this), node.args["zone"]
    if not is_text(zone) or kind not in {"timestamp", "timestamptz"}:
        raise unsupported(
            "AT TIME ZONE of what may have a time zone or not", "Cast to timestamp or timestamptz before it."
        )
    if kind == "timestamp":
        # Shown in the session's own zone, as in the source.
        there = call("with_timezone", node.this, zone)
        return call("at_timezone", there, call("current_timezone"), kind="timestamptz")
    return cast(call("at_timezone", node.this, zone), "timestamp(6)")


def make_date(node: Any, notes: Notes) -> Any:
    """Rewrite a date made of three numbers."""
    numbers = [whole(part) for part in node.expressions]
    if len(numbers) != 3 or None in numbers:
        raise unsupported("make_date() of what is computed", "Use date_parse in Trino's own SQL.")
    year, month, day = (int(part) for part in numbers if part is not None)
    return cast(text(f"{year:04d}-{month:02d}-{day:02d}"), "date")


DATES: dict[type[Any], Rewriter] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Extract: _extract,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.TimeToStr: _format,
    exp.StrToDate: _parse,
    exp.AtTimeZone: _set_zone,
}
