"""What reading a statement finds."""

from __future__ import annotations

from dataclasses import dataclass, field

from dragoman import FunctionCall, Relation


@dataclass(slots=True)
class Found:
    """Everything a statement touches, as written, in lower case.

    `relations`: with the offset of the first mention, without those WITH defines. `schemas`: the schemas it lists the
    contents of, as (catalog, schema), None for the session's own. `lists_schemas`: it lists schemas, or what is in
    several of them.
    """

    calls: list[FunctionCall] = field(default_factory=list[FunctionCall])
    relations: dict[Relation, int] = field(default_factory=dict[Relation, int])
    schemas: list[tuple[str | None, str | None]] = field(default_factory=list[tuple[str | None, str | None]])
    lists_schemas: bool = False
