"""The spelling of types in the catalog and in results, and of names in quotes for SQL."""

from __future__ import annotations

import re

_SHORT = (
    (re.compile(r"character varying(\(\d+\))?"), "varchar"),
    (re.compile(r"(character|bpchar)(\(\d+\))?(?!\w)"), "char"),
    (re.compile(r"bit varying(\(\d+\))?"), r"varbit\1"),
    (re.compile(r"(timestamp|time)(\(\d+\))? with time zone"), r"\1tz\2"),
    (re.compile(r"(timestamp|time)(\(\d+\))? without time zone"), r"\1\2"),
)


def short_type(formatted: str) -> str:
    """Return the result of `format_type` in the shortest spelling that the database accepts.

    Texts have no length.
    """
    for pattern, short in _SHORT:
        if match := pattern.match(formatted):
            return match.expand(short) + formatted[match.end() :]
    return formatted


def quote(name: str) -> str:
    """Return a name as SQL, always in quotes."""
    return '"' + name.replace('"', '""') + '"'


def quote_text(text: str) -> str:
    """Return a text as SQL that means the same under every setting of the session. The text has no NUL."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"
