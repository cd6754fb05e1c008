"""The messages to a worker process beside statements, and the names that both sides use."""

from __future__ import annotations

from typing import Any

import msgspec

NONE = "_none"
"""The end of the name of the table without rows, and of its only column. It follows `Confine.hidden`."""
VALUE, HASH = "dragoman_value", "dragoman_hash"
"""The functions that views call."""


class Setup(msgspec.Struct, frozen=True):
    """The file, and the limits of one statement (`memory`, `length` in bytes)."""

    path: str
    functions: list[str]
    memory: int
    length: int


class View(msgspec.Struct, frozen=True):
    """The view that replaces a table of this name."""

    name: str
    sql: str


class Confine(msgspec.Struct, frozen=True):
    """The parts of tables that a statement may read, for `Run.confine`.

    - `schema`: the name of the attached file.
    - `hidden`: the prefix of the views that read it.
    - `values`: what the views bind.
    """

    schema: str
    hidden: str
    views: tuple[View, ...]
    values: dict[str, Any]
