"""Calls and answers: requests, rows as executors return them, results and plans."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from dragoman.model.callers import LOCAL, Principal
from dragoman.model.configured import Acting
from dragoman.model.confinement import Confinement
from dragoman.model.relations import Relation


def _nothing() -> Mapping[str, Any]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one answer: rows, bytes of its minified JSON rows, and seconds until the deadline."""

    max_rows: int = 1000
    max_bytes: int = 100_000
    timeout: float = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One statement on its way to a database. Grows only by fields with defaults.

    - `statement`: the text that was judged.
    - `parameters`: JSON values, which are bound and never pasted into the text.
    - `tags`: reach the database in its own way (application_name, client tags, a comment that the executor adds).
    - `confinement`: what the statement may read of relations. None: everything.
    - `acting`: the identity to act as, if the engine applies the rights of callers.
    """

    statement: str
    parameters: Sequence[Any] = ()
    limits: Limits = Limits()
    principal: Principal = LOCAL
    tags: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    call_id: str = ""
    confinement: Confinement | None = None
    acting: Acting | None = None


KindName = Literal["text", "boolean", "integer", "float", "binary", "json", "native", "any", "array", "map", "row"]


@dataclass(frozen=True, slots=True)
class Kind:
    """How the driver returns a column's values. The core encodes by column and touches only values that need it.

    - text: str, already the server's exact text.
    - boolean: bool.
    - integer: int.
    - float: float.
    - binary: bytes.
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


@dataclass(frozen=True, slots=True)
class Encoded:
    """Rows in their final form: `count` minified JSON arrays separated by commas. Most are never decoded again.

    - `notices`: what encoding had to change.
    - `oversized`: the next row alone is certainly larger than `max_bytes`, and was not read.
    """

    json: bytes
    count: int
    notices: tuple[str, ...] = ()
    oversized: bool = False

    @classmethod
    def of(cls, rows: Sequence[bytes], notices: tuple[str, ...] = ()) -> Encoded:
        """Return rows that were encoded one by one."""
        return cls(b",".join(rows), len(rows), notices)

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

Batch = Encoded | Sequence[Sequence[Any]]


@dataclass(slots=True)
class RowStream:
    """What an executor opens: columns, and rows in batches. `columns` are final once `batches` is exhausted.

    `truncated` is for readers of a gateway's stream: what cut it, once it is exhausted. Executors do not set it.
    """

    columns: Sequence[Column]
    batches: AsyncIterator[Batch]
    notices: list[str] = field(default_factory=list[str])
    truncated: Truncation | None = None


@dataclass(frozen=True, slots=True)
class Truncation:
    """Why rows are missing: the limit that cut them (rows, bytes or seconds), and how to get the rest."""

    reason: Literal["rows", "bytes", "timeout"]
    limit: int
    hint: str = ""

    @classmethod
    def late(cls, seconds: float) -> Truncation:
        """Return the truncation for a deadline that passed while rows were arriving."""
        return cls(
            "timeout", math.ceil(seconds), "These rows arrived in time. Narrow the query with WHERE, or aggregate."
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Columns and rows, bounded and exact. `rows_json` has the rows as one minified JSON array of arrays.

    `sql` is set only if the SQL that ran is not the SQL that was sent.
    """

    columns: tuple[Column, ...]
    rows_json: bytes
    row_count: int
    truncated: Truncation | None = None
    notices: tuple[str, ...] = ()
    sql: str | None = None
    elapsed_ms: float = 0.0
    query_hash: str = ""

    @property
    def rows(self) -> list[list[Any]]:
        """The rows as JSON values: exact decimals and large integers are strings."""
        rows: list[list[Any]] = json.loads(self.rows_json)
        return rows


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainOptions:
    """Options of a plan. `analyze` runs the query, in the same read-only session.

    `reads`: the plan must also report what it reads and names, if the engine can.
    """

    format: Literal["text", "json", "yaml"] = "text"
    analyze: bool = False
    verbose: bool = False
    buffers: bool = False
    reads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The answer of EXPLAIN. `plan` is text, or JSON values for the json format. None: it is not shown.

    - `reads`: the relations that it reads beside those of the statement, for instance behind views.
    - `schemas`: the schemas of other objects that it names, such as functions and types.

    Both are set only if the engine reports them and the options ask for them.
    """

    plan: Any
    format: Literal["text", "json", "yaml"] = "text"
    estimated_cost: float | None = None
    estimated_rows: int | None = None
    actual_time_ms: float | None = None
    warnings: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    sql: str | None = None
    reads: tuple[Relation, ...] = ()
    schemas: frozenset[str] = frozenset()
