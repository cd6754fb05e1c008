"""Columns of an answer, how their values come, and rows in their final form: all that a worker process needs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

KindName = Literal["text", "boolean", "integer", "float", "binary", "json", "native", "any", "array", "map", "row"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the driver returns a column's values. The core encodes by column and touches only values that need it.

    - text: str, already the server's exact text.
    - boolean: bool.
    - integer: int.
    - float: float.
    - binary: bytes, or their base64 as str.
    - json: JSON text. `unique_keys`: the database never lets an object have a key twice.
    - native: Python values of any type (Decimal, datetime, UUID, dict, ...), encoded cell by cell.
    - any: int, float, str, bytes or None, mixed, as in SQLite.
    - array: a sequence of `of[0]`.
    - map: a mapping, or pairs, of `of[0]` to `of[1]`.
    - row: a sequence of `of`, with `fields` if they have names.

    As text a date is `2024-02-29`, a time `13:14:15.123456`, a timestamp `2024-02-29 13:14:15.123456`, with a blank and
    as many digits as it has. A value with a time zone ends with its offset, `Z` or the zone. An interval keeps months
    apart from days, in the server's own notation. Numbers that binary floats cannot represent exactly are text, too.
    """

    name: KindName
    of: tuple[Kind, ...] = ()
    fields: tuple[str, ...] = ()
    unique_keys: bool = False

    @staticmethod
    def array(of: Kind) -> Kind:
        """Return the kind of an array with elements of this kind."""
        return Kind("array", (of,))

    @staticmethod
    def map(key: Kind, value: Kind) -> Kind:
        """Return the kind of a map. Its keys are encoded as text."""
        return Kind("map", (key, value))

    @staticmethod
    def row(of: Sequence[Kind], fields: Sequence[str] = ()) -> Kind:
        """Return the kind of a row or composite.

        It is encoded as an object if every field has a name of its own, else as an array.
        """
        return Kind("row", tuple(of), tuple(fields))


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result: its name, its type in the database's own short spelling, and the kind of its values."""

    name: str
    type: str
    kind: Kind = Kind("any")


Octets: TypeAlias = tuple[bool | None, ...]
"""For each column of the kind `any`, whether all its values are bytes; None for other columns, and without values."""


def join_octets(one: Octets, other: Octets) -> Octets:
    """Return what holds of the rows of both."""
    if not one or not other:
        return one or other
    return tuple(a if b is None else b if a is None else a and b for a, b in zip(one, other, strict=True))


def find_binary(columns: Sequence[Column], octets: Octets) -> list[Column]:
    """Return columns, those whose values turned out to be bytes as binary ones."""
    known = octets or (None,) * len(columns)
    return [
        replace(column, kind=Kind("binary")) if is_binary else column
        for column, is_binary in zip(columns, known, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows in their final form: `count` minified JSON arrays separated by commas. Most are never decoded again.

    - `notices`: what encoding had to change.
    - `oversized`: the next row alone is certainly larger than `max_bytes`, and was not read.
    - `octets`: which columns hold bytes alone, as their JSON does not tell bytes from texts. Without it, none does.
    """

    json: bytes
    count: int
    notices: tuple[str, ...] = ()
    oversized: bool = False
    octets: Octets = field(default=(), compare=False)

    @classmethod
    def of(cls, rows: Sequence[bytes], notices: tuple[str, ...] = (), octets: Octets = ()) -> Encoded:
        """Return rows that were encoded one by one."""
        return cls(b",".join(rows), len(rows), notices, octets=octets)

    @property
    def values(self) -> list[list[Any]]:
        """The rows as JSON values."""
        values: list[list[Any]] = json.loads(b"[%b]" % self.json)
        return values

    @property
    def rows(self) -> list[bytes]:
        """The rows one by one, split at their ends."""
        return list(self.rows_within(len(self.json)))

    def rows_within(self, most: int) -> Iterator[bytes]:
        """Yield the first rows one by one, as far as they lie within so many bytes. The rest is not even looked at."""
        text = self.json[:most].decode(errors="ignore")  # the last character may be cut
        start = 0
        for _ in range(self.count):
            try:
                end = _next_value(text, start)[1]
            except ValueError:  # its end is further away
                return
            yield text[start:end].encode()
            start = end + 1


_next_value = json.JSONDecoder().raw_decode
