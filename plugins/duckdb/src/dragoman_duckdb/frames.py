"""The first message to a worker process."""

from __future__ import annotations

import msgspec


class Setup(msgspec.Struct, frozen=True):
    """The file or folder, and the limits of one statement: `memory` in MiB, `threads`.

    - `home`: the schema in which a name without a schema is looked up first.
    - `schemas`: the only schemas that statements find. None: all.
    - `functions`: those that the configuration allows beside the listed ones, in lower case.
    """

    path: str
    memory: int
    threads: int
    home: str = "main"
    schemas: tuple[str, ...] | None = None
    functions: tuple[str, ...] = ()
