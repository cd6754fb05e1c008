"""The model's parsed replies: a query, a database, a verdict."""

from __future__ import annotations

from typing import Literal

import msgspec


class Written(msgspec.Struct, forbid_unknown_fields=True):
    """The model's reply to a question: a query, tables that it must see first, a question back, or a refusal."""

    kind: Literal["query", "look", "clarify", "refuse"]
    sql: str
    text: str
    assumptions: list[str]
    tables: list[str]
    confidence: Literal["high", "medium", "low"]


class Chosen(msgspec.Struct, forbid_unknown_fields=True):
    """The database that a question is about; empty if none or several are, with a question back."""

    database: str
    reason: str
    clarify: str


class Verdict(msgspec.Struct, forbid_unknown_fields=True):
    """Whether an answer fits its question."""

    valid: bool
    reason: str
