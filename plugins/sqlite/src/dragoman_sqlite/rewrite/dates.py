"""Dates. SQLite stores them as text, so only what is known to be a date is rewritten. Nothing is guessed."""

from __future__ import annotations

import re
from typing import Any

from dragoman.sql.rewriting import bare, call, exact, is_integer, is_text, number, text
from sqlglot import exp

from dragoman_sqlite.rewrite.rewriting import (
    POSTGRES,
    TRINO,
    TSQL,
    Notes,
    Rewriter,
    fold,
    integer,
    kind_of,
    real,
    unsupported,
)
from dragoman_sqlite.rewrite.untyped import like, refuse_arithmetic

_TEXT_NOTICE = "Dates are texts in SQLite: columns must hold them as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS."
_UNITS = {"year": "year", "month": "month", "week": "day", "day": "day", "hour": "hour", "minute": "minute"} | {
    "second": "second"
}
_INTERVAL = re.compile(r"\s*([+-]?\d+)\s*([a-z]+)\s*")

# The strftime format for a field of a date, and how its text becomes the number that other databases return.
_FIELDS = {
    "YEAR": "%Y", "MONTH": "%m", "DAY": "%d", "HOUR": "%H", "MINUTE": "%M", "DOW": "%w", "ISODOW": "%u", "DOY": "%j",
    "WEEK": "%V", "ISOYEAR": "%G",
}  # fmt: skip
_TRUNCATED = {
    "YEAR": "%Y-01-01 00:00:00", "MONTH": "%Y-%m-01 00:00:00", "DAY": "%Y-%m-%d 00:00:00",
    "HOUR": "%Y-%m-%d %H:00:00", "MINUTE": "%Y-%m-%d %H:%M:00", "SECOND": "%Y-%m-%d %H:%M:%S",
}  # fmt: skip
# Trino's names of fields, and those in `_FIELDS`.
_FIELDS_OF_TRINO = {
    "DOW": "ISODOW", "DAY_OF_WEEK": "ISODOW", "DAYOFWEEK": "ISODOW", "DAY_OF_YEAR": "DOY", "DAYOFYEAR": "DOY",
    "DAY_OF_MONTH": "DAY", "YEAR_OF_WEEK": "ISOYEAR", "YEAROFWEEK": "ISOYEAR", "YOW": "ISOYEAR",
}  # fmt: skip
_FIELDS_BY_FUNCTION: dict[type[Any], str] = {
    exp.Year: "YEAR", exp.Quarter: "QUARTER", exp.Month: "MONTH", exp.WeekOfYear: "WEEK", exp.Day: "DAY",
    exp.DayOfMonth: "DAY", exp.DayOfWeekIso: "ISODOW", exp.DayOfYear: "DOY", exp.YearOfWeek: "ISOYEAR",
    exp.Hour: "HOUR", exp.Minute: "MINUTE", exp.Second: "SECOND",
}  # fmt: skip
_SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3600, "DAY": 86400, "WEEK": 604800}
_COMPARED = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.Between,
    exp.In,
    exp.Extract,
    exp.Add,
    exp.Sub,
    exp.Cast,
)
# Formats of strftime that SQLite has and that produce the same digits everywhere.
_FORMAT = re.compile(r"(?:%[YmdHMSjFT]|[^%A-Za-z0-9]|\"?T\"?)*")


def _modifiers(interval: Any, sign: int) -> list[tuple[int, str]]:
    """Return an interval as amounts and units of SQLite's modifiers, months first as Postgres adds them."""
    value, unit = interval.this, interval.args.get("unit")
    if not isinstance(value, exp.Literal):
        raise unsupported("An interval that is computed", "Write the interval as a literal.")
    written = f"{value.name} {unit.name}" if unit else value.name
    parts = _INTERVAL.findall(written.lower())
    if not parts or _INTERVAL.sub("", written.lower()):
        raise unsupported(
            f"The interval {written!r}", "Write it in whole years, months, days, hours, minutes, seconds."
        )
    found: list[tuple[int, str]] = []
    for amount, name in parts:
        unit_name = _UNITS.get(name.rstrip("s"))
        if unit_name is None:
            raise unsupported(f"The interval unit {name}", "Use years, months, weeks, days, hours, minutes or seconds.")
        found.append((sign * int(amount) * (7 if name.startswith("week") else 1), unit_name))
    order = list(_UNITS.values())
    return sorted(found, key=lambda part: order.index(part[1]))


def _is_compared(node: Any) -> bool:
    """Return whether a moment is only used where a date and its midnight make no difference."""
    parent = node.parent  # the sum
    while isinstance(parent, (exp.Paren, exp.Add, exp.Sub)):
        parent = parent.parent
    return isinstance(parent, _COMPARED)


def _move(moment: Any, interval: Any, sign: int, notes: Notes) -> Any:
    kind = kind_of(moment)
    if kind == "time":
        raise unsupported("An interval beside a time", "Add it to a timestamp.")
    if not kind and notes.source in TRINO and isinstance(moment, exp.Column):
        return _of_its_length(_move(_as_timestamp(moment), interval, sign, notes), moment)
    if not kind:
        raise unsupported(
            "An interval beside what may be a date, a time or a timestamp",
            "Say which: write column::date or column::timestamp.",
        )
    modifiers = _modifiers(interval, sign)
    whole_days = all(unit in {"year", "month", "day"} for _, unit in modifiers)
    stays = notes.source not in POSTGRES or _is_compared(moment)
    gives = "date" if kind == "date" and whole_days and stays else "timestamp"
    texts: list[str] = []
    for amount, unit in modifiers:
        texts.append(f"{amount:+d} {unit}")
        if unit in {"year", "month"}:
            texts.append("floor")  # January 31st plus a month is February's last day, not in March
    notes.add(_TEXT_NOTICE)
    return call("date" if gives == "date" else "datetime", moment, *texts, kind=gives)


def _as_timestamp(column: Any) -> Any:
    return call("datetime", column, kind="timestamp")


def _of_its_length(moment: Any, column: Any) -> Any:
    """Return a moment as long as the values of a column: a date's text has 10 characters, a timestamp's more."""
    return call("substr", moment, number(1), exp.Length(this=column.copy()))


def _sum(node: Any, notes: Notes) -> Any:
    sign = 1 if isinstance(node, exp.Add) else -1
    left, right = node.this, node.expression
    constant = fold(node)
    if constant is not None:
        return constant
    refuse_arithmetic(node, notes)
    if sign == 1 and notes.source in TSQL and (is_text(left) or is_text(right)):
        return _join(left, right)
    if kind_of(left) == "interval" and sign == 1:
        left, right = right, left
    kinds = kind_of(left), kind_of(right)
    if kinds[1] == "interval":
        return _move(left, right, sign, notes)
    if sign == -1 and notes.source in TRINO and {"date", "timestamp"} & set(kinds):
        raise unsupported("A difference of dates, an interval in Trino,", "Use date_diff('day', a, b).")
    if kinds == ("date", "date") and sign == -1:
        return integer(exp.paren(exp.Sub(this=call("julianday", left), expression=call("julianday", right))))
    if kinds[0] == "date" and is_integer(right):
        notes.add(_TEXT_NOTICE)
        return call("date", left, f"{sign * int(right.name):+d} days", kind="date")
    if any(kinds):
        raise unsupported(
            "Arithmetic between a date and what may be one",
            "Cast both sides with ::date for a number of days, or add an interval written as a literal.",
        )
    if sign == -1 and notes.source in POSTGRES | TRINO and _from_column(left) and _from_column(right):
        notes.add("A difference of columns is one of numbers, or of dates; cast timestamps to date.")
        return _days_or_difference(left, right, as_interval=notes.source in TRINO)
    if sign == -1 and (_may_be_date(left) or _may_be_date(right)):
        raise unsupported(
            "A difference of what may be dates", "Cast both to date for days; write a - 1 * b for numbers."
        )
    if any(isinstance(side, exp.Column) for side in (left, right)) and all(map(_may_be_days, (left, right))):
        notes.add("+ and - on columns are arithmetic on numbers: write column::date where a date is meant.")
    return node


_CHOICES = (exp.Min, exp.Max, exp.Lag, exp.Lead, exp.FirstValue, exp.LastValue, exp.NthValue)


def _may_be_days(node: Any) -> bool:
    return isinstance(node, (exp.Column, exp.Placeholder)) or is_integer(node)


def _may_be_date(node: Any) -> bool:
    """Return whether a value comes from a column, which is often a date."""
    while isinstance(node, (exp.Paren, exp.Window)):
        node = node.this
    return isinstance(node, _CHOICES) and isinstance(node.this, exp.Column)


def _from_column(node: Any) -> bool:
    return isinstance(node, exp.Column) or _may_be_date(node)


def _days_or_difference(left: Any, right: Any, *, as_interval: bool) -> Any:
    """Return a difference of possible dates, which are texts, or of numbers.

    Trino writes days as an interval's text.
    """
    days = integer(exp.paren(exp.Sub(this=call("julianday", left), expression=call("julianday", right))))
    if as_interval:
        days = exp.DPipe(this=days, expression=text(" 00:00:00.000"))
    is_date = exp.EQ(this=call("typeof", left.copy()), expression=text("text"))
    difference = exp.Sub(this=left.copy(), expression=right.copy())
    chosen = exp.Case(ifs=[exp.If(this=is_date, true=days)], default=difference)
    chosen.meta["difference"] = True
    return chosen


def same_kind(node: Any, notes: Notes) -> Any:
    """Make a date beside a timestamp a timestamp: as texts they would differ."""
    heed_spelling(node.this, node.__class__, node.expression, notes)
    heed_spelling(node.expression, _MIRRORED.get(node.__class__) or node.__class__, node.this, notes)
    for side, other in (("this", node.expression), ("expression", node.this)):
        node.set(side, like(other, node.args[side], notes))
    kinds = kind_of(node.this), kind_of(node.expression)
    for side, pair in (("this", ("date", "timestamp")), ("expression", ("timestamp", "date"))):
        if kinds == pair:
            node.set(side, call("datetime", node.args[side], kind="timestamp"))
    return node if all(kinds) else _beside_unknown(node, notes)


_MIRRORED = {exp.GT: exp.LT, exp.GTE: exp.LTE, exp.LT: exp.GT, exp.LTE: exp.GTE}
_WRITTEN = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d:\d\d)?")
_SPELLED = (
    "A text like a date is compared as a text: write dates as YYYY-MM-DD, timestamps as YYYY-MM-DD HH:MM:SS, and no"
    " time of day beside a column of dates."
)
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T]00:00(?::00)?)?")


def heed_spelling(value: Any, compared: type[Any], written: Any, notes: Notes) -> None:
    """Say where Postgres may read a text as the date or timestamp that it is compared with, and the text differs.

    Postgres leaves a time of day out beside a date.
    """
    if notes.source not in POSTGRES or not is_text(written) or is_text(value):
        return
    if not re.match(r"\d{4}-\d", written.name) or _MIDNIGHT.fullmatch(written.name):
        return
    is_exact = kind_of(value) == "timestamp" or compared in {exp.GT, exp.LTE}
    if not (is_exact and _WRITTEN.fullmatch(written.name)):
        notes.add(_SPELLED)


def _beside_unknown(node: Any, notes: Notes) -> Any:
    """Compare a midnight with what may hold dates or timestamps.

    A date's text begins its midnight's text and sorts before it, so that one of the two compares rightly with either.
    """
    side = next((name for name in ("this", "expression") if is_midnight(node.args[name], notes)), "")
    midnight, other = node.args.get(side), node.args["this" if side == "expression" else "expression"]
    if midnight is None or isinstance(other, (exp.Any, exp.All)):
        return node
    if isinstance(node, (exp.EQ, exp.NEQ)):
        found = exp.In(this=other, expressions=both_texts(midnight))
        return found if isinstance(node, exp.EQ) else exp.not_(found)
    order = node.__class__ if side == "expression" else _MIRRORED.get(node.__class__)
    if order in _MIRRORED:
        node.set(side, both_texts(midnight)[order in {exp.GT, exp.LTE}])
    return node


def is_midnight(node: Any, notes: Notes) -> bool:
    """Return whether a node is a date, or written as a midnight. Postgres takes a text beside a date for one."""
    if is_text(node):
        return notes.source in POSTGRES and bool(_MIDNIGHT.fullmatch(node.name))
    return kind_of(node) == "date" or (kind_of(node) == "timestamp" and bool(_written_day(node)))


def _written_day(node: Any) -> str:
    """Return the day of a midnight that is written as a literal, else an empty text."""
    arguments = node.expressions if isinstance(node, exp.Anonymous) else [node]
    found = _MIDNIGHT.fullmatch(arguments[0].name) if len(arguments) == 1 and is_text(arguments[0]) else None
    return found[1] if found else ""


def both_texts(midnight: Any) -> list[Any]:
    """Return a midnight as a date's text and as a timestamp's."""
    day = _written_day(midnight)
    if day:
        return [text(day), text(f"{day} 00:00:00")]
    return [midnight, call("datetime", midnight.copy(), kind="timestamp")]


def _between(node: Any, notes: Notes) -> Any:
    low, high = node.args["low"], node.args["high"]
    if notes.source in POSTGRES and is_text(bare(node.this)) and not (is_text(low) and is_text(high)):
        lower = same_kind(exp.GTE(this=node.this.copy(), expression=low), notes)
        return exp.paren(exp.and_(lower, same_kind(exp.LTE(this=node.this, expression=high), notes)))
    for place in ("low", "high"):
        node.set(place, like(node.this, node.args[place], notes))
    for place, last in (("low", False), ("high", True)):
        heed_spelling(node.this, exp.LTE if last else exp.GTE, node.args[place], notes)
        if not kind_of(node.this) and is_midnight(node.args[place], notes):
            node.set(place, both_texts(node.args[place])[last])
    return node


def _add(node: Any, notes: Notes) -> Any:
    """Rewrite date_add(unit, amount, moment) of Trino."""
    amount, unit = exact(node.expression), node.args.get("unit")
    if notes.source not in TRINO or amount is None or unit is None:
        raise unsupported("date_add", "Add an interval written as a literal.")
    size, name = (3, "month") if unit.name.upper() == "QUARTER" else (1, unit.name.lower())
    interval = exp.Interval(this=text(f"{int(amount) * size} {name}"))
    return _move(node.this, interval, 1, notes)


def _difference_in(node: Any, notes: Notes) -> Any:
    """Rewrite date_diff(unit, a, b) of Trino: whole units between two moments, dates or timestamps."""
    unit = node.args["unit"].name.upper() if node.args.get("unit") else ""
    if notes.source not in TRINO or unit not in _SECONDS:
        raise unsupported("This difference of dates", "Use date_diff in days, hours, minutes or seconds.")
    notes.add(_TEXT_NOTICE)
    seconds = exp.paren(exp.Sub(this=call("unixepoch", node.this), expression=call("unixepoch", node.expression)))
    return exp.paren(exp.Div(this=seconds, expression=number(_SECONDS[unit]), typed=True))


def _last_day(node: Any, notes: Notes) -> Any:
    if node.args.get("unit"):
        raise unsupported("The last day of another unit", "Use last_day_of_month.")
    notes.add(_TEXT_NOTICE)
    return call("date", node.this, "start of month", "+1 month", "-1 day", kind="date")


def _epoch(node: Any, notes: Notes) -> Any:
    return real(_part("EPOCH", node.this, notes))


def _field(node: Any, notes: Notes) -> Any:
    """Rewrite year(a), month(a), day(a) and so on."""
    moment = node.this
    while isinstance(moment, (exp.TsOrDsToDate, exp.TsOrDsToTimestamp)):
        moment = moment.this
    return _part(_FIELDS_BY_FUNCTION[node.__class__], moment, notes)


def _join(left: Any, right: Any) -> Any:
    """Rewrite `+` of T-SQL, which joins texts unless one side is a number."""
    if any(isinstance(side, exp.Literal) and not re.search(r"[^\d.\s]", side.name) for side in (left, right)):
        raise unsupported("+ between a number and what may be one", "Use concat(), or cast both sides.")
    return exp.DPipe(this=left, expression=right)


def _extract(node: Any, notes: Notes) -> Any:
    field: str = node.name.upper()
    return _part(_FIELDS_OF_TRINO.get(field, field) if notes.source in TRINO else field, node.expression, notes)


def _part(field: str, moment: Any, notes: Notes) -> Any:
    notes.add(_TEXT_NOTICE)
    if _is_difference(moment):
        raise unsupported("A field of a difference", "Write extract(epoch FROM a) - extract(epoch FROM b).")
    if field in _FIELDS:
        return _field_of(integer(call("strftime", _FIELDS[field], moment)))
    if field == "SECOND":
        whole = notes.source in TRINO
        return integer(call("strftime", "%S", moment)) if whole else real(call("strftime", "%f", moment))
    if field == "EPOCH":
        return call("unixepoch", moment, "subsec")
    if field == "QUARTER":
        month = integer(call("strftime", "%m", moment))
        quarter = exp.Div(this=exp.paren(month + number(2)), expression=number(3), typed=True)
        return exp.paren(_field_of(quarter), copy=False)
    raise unsupported(f"EXTRACT({field})", f"Use one of {', '.join(_FIELDS)}, QUARTER, SECOND, EPOCH.")


def _field_of(node: Any) -> Any:
    node.meta["field"] = True
    return node


def _is_difference(node: Any) -> bool:
    node = bare(node)
    return isinstance(node, exp.Sub) or bool(node.meta.get("difference"))


def _truncate(node: Any, notes: Notes) -> Any:
    unit, moment = node.args["unit"].name.upper(), node.this
    if node.args.get("zone"):
        raise unsupported("date_trunc with a time zone", "Use UTC.")
    notes.add(_TEXT_NOTICE)
    stays_date = kind_of(moment) == "date" and notes.source not in POSTGRES
    if kind_of(moment) == "date" and not stays_date and not isinstance(node.parent, _COMPARED):
        raise unsupported("date_trunc of a date, a timestamp with time zone,", "Cast it to date or timestamp.")
    if unit in _TRUNCATED:
        form = _TRUNCATED[unit]
        if notes.source in TRINO and not kind_of(moment):
            return _of_its_length(call("strftime", form, moment.copy()), moment)
        return call("strftime", form[:8] if stays_date else form, moment, kind="date" if stays_date else "timestamp")
    if unit == "WEEK":
        monday = call("date", moment, "weekday 0", "-6 days", kind="date")
        return monday if stays_date else call("datetime", monday, kind="timestamp")
    raise unsupported(f"date_trunc to {unit}", f"Use one of {', '.join(_TRUNCATED)}, WEEK.")


def _format(node: Any, notes: Notes) -> Any:
    form = node.args["format"]
    if not isinstance(form, exp.Literal) or not _FORMAT.fullmatch(form.name):
        raise unsupported("This format of a date or number", "Use digits of years, months, days and times only.")
    notes.add(_TEXT_NOTICE)
    return call("strftime", form.name, node.this)


def _date(node: Any, notes: Notes) -> Any:
    if node.expressions or node.args.get("zone") or node.this is None:
        raise unsupported("date() with several arguments", "Write a date as 'YYYY-MM-DD'.")
    return as_moment(node.this, "date", notes)


def _now(node: Any, notes: Notes) -> Any:
    if node.this is not None:
        raise unsupported("The current time with a precision or a zone", "Use CURRENT_TIMESTAMP, which is in UTC.")
    notes.add("The current time is UTC in whole seconds.")
    return node


_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d(?:\.\d+)?)?)?")


def as_moment(value: Any, kind: str, notes: Notes) -> Any:
    """Return `value` cast to a date or a timestamp."""
    if isinstance(value, exp.Literal) and not value.is_string:
        raise unsupported("A number as a date", "Write dates as 'YYYY-MM-DD'.")
    if kind == "timestamp" and isinstance(value, exp.Literal) and "." in value.name:
        raise unsupported("Fractions of a second", "Write timestamps in whole seconds.")
    if isinstance(value, exp.Literal) and not _MOMENT.fullmatch(value.name):
        raise unsupported(f"The date {value.name[:30]!r}", "Write it as 'YYYY-MM-DD' or 'YYYY-MM-DD HH:MM:SS'.")
    notes.add(_TEXT_NOTICE)
    return call("date" if kind == "date" else "datetime", value, kind=kind)


def as_time(value: Any, notes: Notes) -> Any:
    """Return `value` cast to a time of day."""
    notes.add(_TEXT_NOTICE)
    return call("time", value, kind="time")


DATES: dict[type[Any], Rewriter] = {
    exp.Add: _sum,
    exp.Sub: _sum,
    exp.Extract: _extract,
    **dict.fromkeys(_FIELDS_BY_FUNCTION, _field),
    **dict.fromkeys((exp.GT, exp.GTE, exp.LT, exp.LTE, exp.NullSafeEQ, exp.NullSafeNEQ), same_kind),
    exp.Between: _between,
    exp.DateAdd: _add,
    exp.DateDiff: _difference_in,
    exp.LastDay: _last_day,
    exp.TimeToUnix: _epoch,
    exp.TimestampTrunc: _truncate,
    exp.DateTrunc: _truncate,
    exp.TimeToStr: _format,
    exp.Date: _date,
    exp.CurrentDate: _now,
    exp.CurrentTime: _now,
    exp.CurrentTimestamp: _now,
}
