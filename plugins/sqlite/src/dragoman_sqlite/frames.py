"""What is sent to a worker process beside statements."""

from __future__ import annotations

from typing import Any

import msgspec


class Setup(msgspec.Struct, frozen=True):
    """Which file, within which bounds (`memory`, `length` in bytes)."""

    path: str
    functions: list[str]
    memory: int
    length: int


class View(msgspec.Struct, frozen=True):
    """What is read in place of a table of this name."""

    name: str
    sql: str


class Confine(msgspec.Struct, frozen=True):
    """The parts of tables that a statement may read, as `Run.confine` has them.

    `schema`: what the file is called. `hidden`: how the names of what reads it begin. `values`: what the views bind.
    """

    schema: str
    hidden: str
    views: tuple[View, ...]
    values: dict[str, Any]
