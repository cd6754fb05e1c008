"""The messages to a worker process beside statements."""

from __future__ import annotations

from typing import Any

import msgspec


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
