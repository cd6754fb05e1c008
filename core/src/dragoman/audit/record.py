"""The content of an audit record."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Event = Literal["call", "file", "reload", "change"]


class Record(msgspec.Struct, omit_defaults=True, kw_only=True):
    """One call, or another event that an audit must know. Empty fields are left out.

    - `ts`: UTC, ISO 8601.
    - `event`: what happened; left out for a call.
    - `call`: the call's own id.
    - `issuer`, `subject`: identify the principal, whose name is for people.
    - `hash`: of the statement's text.
    - `sql`, `params`: only if the configuration keeps them.
    - `relations`, `columns`: as the judge read them; a column is `relation.column`.
    - `acting`: the identity with which the database ran it, if it applies the rights of callers.
    - `verdict`: allowed or refused.
    - `roles`: the principal's roles.
    - `filters`: `relation: condition`, with `$user` in place of the value.
    - `masks`: `relation.column`.
    - `bytes`: of the answer.
    - `ms`: from the call's arrival to its record.
    - `outcome`: ok, or an error's code.
    - `trace`: the trace id.
    - `model`: what a call used of a language model, and the statements that the model wrote, with their outcomes.
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
    # An argument may be anything that a caller of the library passes. The record must be written all the same.
    return str(value)


_encode = msgspec.json.Encoder(enc_hook=_text).encode


def encode(record: Record) -> bytes:
    """Return a record as one JSON object, without line breaks.

    Half of a surrogate pair, which is not a character, is spelled out. Raises `ValueError`,
    `TypeError`, `OverflowError` and `RecursionError` for what JSON cannot hold.
    """
    try:
        return _encode(record)
    except UnicodeEncodeError:
        return _encode(_spell(msgspec.to_builtins(record, enc_hook=_text)))


def _spell(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {_spell(name): _spell(each) for name, each in value.items()}  # pyright: ignore[reportUnknownVariableType]
        case list() | tuple():
            return [_spell(each) for each in value]  # pyright: ignore[reportUnknownVariableType]
        case _:
            return value
