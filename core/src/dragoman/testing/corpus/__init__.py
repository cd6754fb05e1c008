"""Statements that must pass and statements that must not, by class, as data other servers can use too.

`any.jsonl` holds for every dialect, the others for one. A line is an object: `dialect`, `sql`, `allow`, `reason` (the
class) and, for what is refused, `code`; `since` is the first version of the database that runs it, where that matters.
`sqlite.sql` builds what the allowed queries read.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A statement and its verdict; `code` is the error's when it is refused, `since` a version of the database."""

    dialect: str
    sql: str
    allow: bool
    reason: str
    code: str = ""
    since: int = 0

    def __str__(self) -> str:
        return f"{self.reason}: {self.sql[:60]!r}"


def cases(name: str) -> tuple[Case, ...]:
    """Return the cases of one file: `any`, or a dialect."""
    lines = (files(__name__) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(Case(**json.loads(line)) for line in lines)


def setup(name: str) -> str:
    """Return the SQL that builds what a dialect's allowed queries read."""
    return (files(__name__) / f"{name}.sql").read_text(encoding="utf-8")
