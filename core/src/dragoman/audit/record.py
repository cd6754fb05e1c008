"""What an audit record says."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Event = Literal["call", "file", "reload", "change"]


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One call, or something else that an audit must know. Fields that say nothing are left out.

    `ts`: UTC, ISO 8601. `event`: what happened; `call` is left out. `call`: the call's own id. `issuer` and `subject`
    identify the principal, whose name is for people. `hash`: of the statement's text. `sql` and `params`: only where
    the configuration keeps them. `relations` and `columns`: as the judge read them; columns are `relation.column`.
    `acting`: as whom the database ran it, where it keeps the rights of callers. `verdict`: allowed or refused.
    `roles`: those of the principal. `filters`: `relation: condition`, with `$user` for a value and not the value;
    `masks`: `relation.column`. `bytes`: of the answer. `ms`: from the call's arrival to its record. `outcome`: ok, or
    an error's code. `trace`: the trace id. `model`: what a call used of a language model, and the statements that it
    wrote, with their outcomes.
    """

    ts: str
    event: Event = "call"
    call: str = ""
    principal: str = ""
    issuer: str = ""
    subject: str = ""
    client: str = ""
    token: str = ""
    roles: tuple[str, ...] = ()
    database: str = ""
    acting: str = ""
    tool: str = ""
    hash: str = ""
    sql: str = ""
    params: list[Any] | None = None
    arguments: dict[str, Any] | None = None
    relations: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    verdict: str = ""
    filters: tuple[str, ...] = ()
    masks: tuple[str, ...] = ()
    rows: int = 0
    bytes: int = 0
    ms: float = 0.0
    outcome: str = ""
    trace: str = ""
    detail: str = ""
    model: dict[str, Any] | None = None


def _text(value: Any) -> str:
    # An argument may be anything a library's caller passes; the record must be written all the same.
    return str(value)


encode = msgspec.json.Encoder(enc_hook=_text).encode
"""Return a record as one JSON object, without line breaks."""
