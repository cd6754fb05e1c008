"""Check constraints that list the only values of a column."""

from __future__ import annotations

import re

_CAST = r"(?:::[\w ]+(?:\(\d+\))?)*"
_SUBJECT = r'(?P<subject>"(?:[^"]|"")+"|\w+)'
_LIST = re.compile(
    rf"CHECK \({_SUBJECT}{_CAST} = (?:ANY \(ARRAY\[(?P<many>.*?)\]{_CAST}(?:\[\])?\)|(?P<one>.*))\)", re.DOTALL
)
_VALUE = re.compile(rf"(?:'(?P<text>(?:[^']|'')*)'|\(?(?P<number>-?\d+(?:\.\d+)?)\)?){_CAST}(?:, |\Z)")


def allowed_values(definition: str) -> tuple[str, tuple[str, ...]] | None:
    """Return the column (VALUE in a domain) and the values that a check allows it; None for any other check.

    `definition`: the result of `pg_get_constraintdef`, in its pretty form. A check that does not hold for existing rows
    has more text after its parenthesis, and does not match.
    """
    match = _LIST.fullmatch(definition)
    if match is None:
        return None
    values = _values(match["one"] if match["many"] is None else match["many"])
    subject = match["subject"]
    if subject.startswith('"'):
        subject = subject[1:-1].replace('""', '"')
    return (subject, values) if values else None


def _values(text: str) -> tuple[str, ...]:
    values: list[str] = []
    position = 0
    while position < len(text):
        match = _VALUE.match(text, position)
        if match is None:
            return ()
        values.append(match["number"] or match["text"].replace("''", "'"))
        position = match.end()
    return tuple(values)
