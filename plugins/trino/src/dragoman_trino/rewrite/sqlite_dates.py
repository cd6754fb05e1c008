"""SQLite's date functions, which take and return texts and move them by modifiers."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from datetime import date
from typing import Any

from dragoman.sql.rewriting import call, is_text, number, text
from sqlglot import exp

from dragoman_trino.rewrite.dates import move_moment, spell
from dragoman_trino.rewrite.documents import call_named
from dragoman_trino.rewrite.rewriting import Notes, Rewriter, cast, in_parens, unsupported

_MODIFIER = re.compile(r"([+-]?\d+) (year|month|day|hour|minute|second)s?")
_STARTS = {"start of day": "day", "start of month": "month", "start of year": "year"}
_NEWER = re.compile("%[eFgGIklpPRTuUV]")
_UTC = "UTC"
_JULIAN_OF_EPOCH = "2440587.5e0"


def _value(name: str, arguments: list[Any]) -> Any:
    """Return the value of a function of literals, computed by SQLite itself: its months overflow in its own way."""
    with closing(sqlite3.connect(":memory:")) as connection:
        places = ", ".join("?" * len(arguments))
        return connection.execute(f"SELECT {name}({places})", [argument.name for argument in arguments]).fetchone()[0]


def _is_fixed(arguments: list[Any]) -> bool:
    literal = bool(arguments) and all(map(is_text, arguments))
    return literal and not any(re.search("now|local|utc|auto", argument.name.lower()) for argument in arguments)


def _moment(arguments: list[Any], kind: str) -> Any:
    """Return SQLite's time value with its modifiers, as a date, a timestamp of whole seconds, or an exact one.

    SQLite keeps milliseconds, and drops them when it writes a moment. A cast to timestamp(0) would round them up.
    """
    value, modifiers = (arguments[0], arguments[1:]) if arguments else (text("now"), [])
    if is_text(value) and value.name.lower() == "now":
        value = call("at_timezone", exp.CurrentTimestamp(), _UTC)
    elif is_text(value):
        raise unsupported(f"The moment {value.name[:20]!r}", "Write it as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS.")
    moves = [modifier.name.strip().lower() if is_text(modifier) else "" for modifier in modifiers]
    clocked = kind != "date" or any(re.search("hour|minute|second", move) for move in moves)
    moment = cast(value, "timestamp(3)" if clocked else "date")
    for move in moves:
        moment = _modify(moment, move, clocked)
    if kind == "timestamp":
        return call("date_trunc", "second", moment)
    return cast(moment, "date") if kind == "date" and clocked else moment


def _modify(moment: Any, modifier: str, clocked: bool) -> Any:
    if modifier in _STARTS:
        return call("date_trunc", _STARTS[modifier], moment)
    found = _MODIFIER.fullmatch(modifier)
    if not found:
        raise unsupported(f"The modifier {modifier!r}", "Use '+N days' and the like, or 'start of month'.")
    amount, unit = int(found[1]), found[2]
    if unit not in {"year", "month"}:
        return move_moment(moment, [(amount, unit)])
    # SQLite keeps the day's number and lets it overflow into the next month.
    begin = call("date_trunc", "month", moment)
    elapsed = exp.paren(exp.Sub(this=call("day", moment.copy()), expression=number(1)))
    day = call("date_add", "day", elapsed, move_moment(begin, [(amount, unit)]))
    time = call("date_diff", "millisecond", call("date_trunc", "day", moment.copy()), moment.copy())
    return call("date_add", "millisecond", time, day) if clocked else day


def _call(node: Any, notes: Notes) -> Any:
    name, arguments = node.name.lower(), list(node.expressions)
    found = _FUNCTIONS.get(name)
    return found(arguments, notes) if found else call_named(node, notes)


def _date(arguments: list[Any], notes: Notes) -> Any:
    return _fix("date", arguments) or _mark(_moment(arguments, "date"), "date")


def _datetime(arguments: list[Any], notes: Notes) -> Any:
    return _fix("datetime", arguments) or _mark(_moment(arguments, "timestamp"), "timestamp")


def _mark(node: Any, kind: str) -> Any:
    node = in_parens(node)
    node.meta["kind"] = kind
    return node


def _fix(name: str, arguments: list[Any]) -> Any:
    if not _is_fixed(arguments):
        return None
    value = _value(name, arguments)
    if value is None:
        return exp.Null()
    if not _is_day(value[:10]):
        raise unsupported(f"The day {value[:10]}", "Write one that the calendar has.")
    return cast(text(value), "date" if name == "date" else "timestamp(0)")


def _is_day(value: str) -> bool:
    try:
        return bool(date.fromisoformat(value))
    except ValueError:
        return False


def _strftime(arguments: list[Any], notes: Notes) -> Any:
    form, *moments = arguments
    if not is_text(form):
        raise unsupported("A format that is computed", "Write the format as a literal.")
    if _NEWER.search(form.name):
        raise unsupported(
            f"The format {form.name[:20]!r}, which older versions of SQLite lack,", "Use %Y %m %d %H %M %S."
        )
    if _is_fixed(moments):
        value = _value("strftime", arguments)
        return exp.Null() if value is None else cast(text(value), "varchar")
    if form.name == "%s":
        return cast(_epoch(moments, notes), "varchar")
    moment = _moment(moments, "exact")
    if form.name == "%w":
        return cast(exp.Mod(this=call("day_of_week", moment), expression=number(7)), "varchar")
    return cast(call("date_format", moment, spell(form.name)), "varchar")


def _julian(arguments: list[Any], notes: Notes) -> Any:
    if _is_fixed(arguments):
        return number(f"{_value('julianday', arguments)!r}e0")
    days = exp.Div(this=call("to_unixtime", _moment(arguments, "exact")), expression=number("86400e0"))
    return exp.paren(exp.Add(this=days, expression=number(_JULIAN_OF_EPOCH)))


def _epoch(arguments: list[Any], notes: Notes) -> Any:
    if _is_fixed(arguments):
        return number(_value("unixepoch", arguments))
    return cast(call("to_unixtime", _moment(arguments, "timestamp")), "bigint")


def _total(arguments: list[Any], notes: Notes) -> Any:
    return call("coalesce", exp.Sum(this=cast(arguments[0], "double")), number("0e0"))


_FUNCTIONS = {
    "date": _date,
    "datetime": _datetime,
    "strftime": _strftime,
    "julianday": _julian,
    "unixepoch": _epoch,
    "total": _total,
}


def _date_of(node: Any, notes: Notes) -> Any:
    return _date([node.this] if node.this else [], notes)


def _format(node: Any, notes: Notes) -> Any:
    moment = node.this
    while isinstance(moment, (exp.TsOrDsToTimestamp, exp.TsOrDsToDate)):
        moment = moment.this
    return _strftime([node.args["format"], moment], notes)


def _now(node: Any, notes: Notes) -> Any:
    kind = "date" if isinstance(node, exp.CurrentDate) else "timestamp"
    return _mark(_moment([], kind), kind)


SQLITE_DATES: dict[type[Any], Rewriter] = {
    exp.Anonymous: _call,
    exp.Date: _date_of,
    exp.TimeToStr: _format,
    exp.CurrentDate: _now,
    exp.CurrentTimestamp: _now,
}
