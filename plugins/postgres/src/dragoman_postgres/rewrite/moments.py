"""SQLite's date functions: texts there, timestamps here, and texts again in the result."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from dragoman.sql.rewriting import call, is_text, number, ours, text
from sqlglot import exp

from dragoman_postgres.rewrite.dates import format_moment
from dragoman_postgres.rewrite.rewriting import Notes, Rewriter, cast, kind_of, unsupported

_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(?:[ T]\d\d:\d\d(?::\d\d)?)?")
_MODIFIER = re.compile(r"([+-]?\d+) (second|minute|hour|day|month|year)s?")
_STARTS = {"start of day": "day", "start of month": "month", "start of year": "year"}
_NOTICE = "Dates are texts in SQLite: columns are read as timestamps, in UTC."
_NAMES = frozenset({"date", "datetime", "time", "julianday", "unixepoch", "strftime"})
# Formats without an equivalent in to_char, and their fields.
_FIELDS = {"%w": "DOW", "%u": "ISODOW", "%s": "EPOCH"}


def _moment(arguments: list[Any], notes: Notes) -> Any:
    """Return the timestamp of a time value with its modifiers."""
    moment = _start(arguments[0], notes) if arguments else _now()
    for modifier in arguments[1:]:
        if not is_text(modifier):
            raise unsupported("A modifier of dates that is computed", "Write it as a literal.")
        moment = _modify(moment, modifier.name.strip().lower())
    return moment


def _start(value: Any, notes: Notes) -> Any:
    while isinstance(value, (exp.TsOrDsToTimestamp, exp.TsOrDsToDate)):
        value = value.this
    if value.meta.get("moment") is not None:
        return value.meta["moment"]
    if is_text(value):
        if value.name.lower() == "now":
            return _now()
        if not _is_moment(value.name):
            raise unsupported(f"The time value {value.name[:30]!r}", "Write YYYY-MM-DD or YYYY-MM-DD HH:MM:SS.")
    elif kind_of(value) not in {"", "date", "timestamp"}:
        raise unsupported("A number as a date", "Write dates as YYYY-MM-DD.")
    else:
        notes.add(_NOTICE)
    return cast(value, "timestamp")


def _is_moment(written: str) -> bool:
    try:
        return bool(_MOMENT.fullmatch(written) and datetime.fromisoformat(written))
    except ValueError:
        return False


def _now() -> Any:
    zoned = exp.AtTimeZone(this=exp.CurrentTimestamp(), zone=text("UTC"))
    return call("date_trunc", "second", ours(zoned, "timestamp"), kind="timestamp")


def _modify(moment: Any, modifier: str) -> Any:
    start = _STARTS.get(modifier)
    if start:
        return call("date_trunc", start, moment, kind="timestamp")
    found = _MODIFIER.fullmatch(modifier)
    if not found:
        raise unsupported(
            f"The modifier {modifier!r}", "Use '+N days' and other units, 'start of month', 'start of year'."
        )
    interval = exp.Interval(this=text(f"{int(found[1])} {found[2]}"))
    if found[2] not in {"month", "year"}:
        return ours(exp.paren(exp.Add(this=moment, expression=interval)), "timestamp")
    # SQLite carries days that a month does not have over to the next month.
    month = call("date_trunc", "month", moment, kind="timestamp")
    days = exp.paren(exp.Sub(this=moment.copy(), expression=month.copy()))
    return ours(
        exp.paren(exp.Add(this=exp.paren(exp.Add(this=month, expression=interval)), expression=days)), "timestamp"
    )


def _as_text(moment: Any, form: str) -> Any:
    return call("to_char", moment, form, kind="text")


def _day(arguments: list[Any], notes: Notes) -> Any:
    return cast(_moment(arguments, notes), "date")


def _instant(arguments: list[Any], notes: Notes) -> Any:
    """Return a timestamp where it is compared with one, else the text that SQLite shows."""
    moment = _moment(arguments, notes)
    shown = _as_text(moment.copy(), "YYYY-MM-DD HH24:MI:SS")
    shown.meta["moment"] = call("date_trunc", "second", moment, kind="timestamp")
    return shown


def _seconds(arguments: list[Any], notes: Notes) -> Any:
    return ours(exp.Extract(this=exp.var("EPOCH"), expression=_moment(arguments, notes)), "number")


def _julian(arguments: list[Any], notes: Notes) -> Any:
    days = exp.Div(this=cast(_seconds(arguments, notes), "double precision"), expression=number(86400))
    return ours(exp.paren(exp.Add(this=days, expression=number("2440587.5"))), "real")


def _epoch(arguments: list[Any], notes: Notes) -> Any:
    return cast(call("floor", _seconds(arguments, notes)), "bigint")


def _time(arguments: list[Any], notes: Notes) -> Any:
    return _as_text(_moment(arguments, notes), "HH24:MI:SS")


def _strftime(arguments: list[Any], notes: Notes) -> Any:
    form, *rest = arguments
    moment = _moment(rest, notes)
    if not is_text(form) or form.name not in _FIELDS:
        return format_moment(form, moment)
    field = ours(exp.Extract(this=exp.var(_FIELDS[form.name]), expression=moment), "number")
    shown = cast(cast(call("floor", field), "bigint"), "text")
    shown.meta["digits"] = True
    return shown


_CALLS = {
    "date": _day,
    "datetime": _instant,
    "time": _time,
    "julianday": _julian,
    "unixepoch": _epoch,
    "strftime": _strftime,
}


def rewrite_call(node: Any, notes: Notes) -> Any:
    """Rewrite a function that sqlglot has no class for."""
    made = _CALLS.get(node.name.lower()) if notes.sqlite else None
    return made(list(node.expressions), notes) if made else node


def date(node: Any, notes: Notes) -> Any:
    """Rewrite SQLite's date function to a date."""
    return _day([given for given in (node.this, *node.expressions) if given is not None], notes)


def to_text(node: Any, notes: Notes) -> Any:
    """Rewrite SQLite's strftime function to a text."""
    return _strftime([node.args["format"], node.this], notes)


def now(node: Any, notes: Notes) -> Any:
    """Return the current time or date: SQLite's are in UTC."""
    return _day([], notes) if isinstance(node, exp.CurrentDate) else _instant([], notes)


MOMENTS_OF_SQLITE: dict[type[Any], Rewriter] = {
    exp.Date: date,
    exp.TimeToStr: to_text,
    exp.CurrentDate: now,
    exp.CurrentTimestamp: now,
}
