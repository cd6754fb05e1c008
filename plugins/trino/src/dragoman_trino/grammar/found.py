"""What reading a statement finds."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dragoman import FunctionCall, Relation

MentionForm = Literal["table", "version", "query", "argument", "shown"]


@dataclass(slots=True)
class Mention:
    """A place where a statement names a relation. Offsets count characters.

    - `offset`: where the name stands.
    - `start`, `end`: the name, with TABLE before it in a `query`, and with the parenthesis after it in an `argument`.
    - `form`: a `table` in FROM, or an older `version` of one; a `query` TABLE t; an `argument` TABLE(t); `shown`: a
      statement such as DESCRIBE describes it.
    - `aliased`: an alias follows.
    """

    relation: Relation
    offset: int
    start: int
    end: int
    form: MentionForm = "table"
    aliased: bool = False


@dataclass(slots=True)
class Found:
    """Everything that a statement touches, as written, in lower case.

    - `mentions`: every mention of a relation, in order, without names that WITH defines.
    - `schemas`: the schemas whose contents it lists, as (catalog, schema); None for the session's own.
    - `quantifiers`: where a question mark is a part of a row pattern, and not a parameter.
    - `lists_schemas`: it lists schemas, or the contents of several schemas.
    """

    calls: list[FunctionCall] = field(default_factory=list[FunctionCall])
    mentions: list[Mention] = field(default_factory=list[Mention])
    schemas: list[tuple[str | None, str | None]] = field(default_factory=list[tuple[str | None, str | None]])
    quantifiers: set[int] = field(default_factory=set[int])
    lists_schemas: bool = False
