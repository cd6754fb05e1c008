"""Calls and answers: requests, rows as executors return them, results and plans."""

from __future__ import annotations

import json
import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

from dragoman.model.callers import LOCAL, Principal
from dragoman.model.columns import Column, Encoded
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
    - `reads`: the relations that the judge found in the statement, as written. An executor whose engine tells what it
      reads can refuse a statement that reads others. None: nobody judged it, or filters and masks read more.
    - `types`: in the same way, the types of users in it, each as `Named.dotted`, in lower case. None also where
      every type is visible.
    """

    statement: str
    parameters: Sequence[Any] = ()
    limits: Limits = Limits()
    principal: Principal = LOCAL
    tags: Mapping[str, str] = field(default_factory=_nothing, hash=False)
    call_id: str = ""
    confinement: Confinement | None = None
    acting: Acting | None = None
    reads: tuple[Relation, ...] | None = None
    types: tuple[str, ...] | None = None


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
