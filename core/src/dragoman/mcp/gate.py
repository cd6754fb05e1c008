"""Which messages are well-formed calls of a tool, so that they need not pass through the SDK.

The gate only accepts. Whatever it is not certain that the SDK would accept too, and with the same meaning, goes to the
SDK untouched, so that every error of the protocol stays the SDK's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from dragoman.mcp.answers import RequestId
from dragoman.mcp.handshake import MODERN_VERSION, VERSION_KEY, is_object, plain_envelope
from dragoman.mcp.wire import same_id

_DEEPEST = 100
"""Opening brackets in a message beyond which it could be too deeply nested for one of the parsers."""
_LONG_NUMBER = re.compile(rb"\d{100}")
_LONGEST_ID = 2**53
_RESERVED = "io.modelcontextprotocol/"
_TOKEN = "progressToken"
_REMEMBERED = 256
"""Envelopes that were accepted; a client sends the same one with every request."""

Judge = Callable[[str, dict[str, Any]], bool]
"""Whether the SDK accepts these params of `tools/call` at this version of the protocol."""


class _Params(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    arguments: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    meta: msgspec.Raw = msgspec.field(default=msgspec.Raw(), name="_meta")


class _Request(msgspec.Struct, forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


_request = msgspec.json.Decoder(_Request).decode
_object = msgspec.json.Decoder(dict[str, Any]).decode


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool that is there. `token`: what its progress is reported under, or None."""

    request: RequestId
    name: str
    arguments: dict[str, Any]
    token: RequestId | None


class Gate:
    """Recognises calls. `judge` asks the SDK; without it only what every SDK accepts passes."""

    def __init__(self, tools: Collection[str], judge: Judge | None = None) -> None:
        self._tools = frozenset(tools)
        self.judge = judge
        self._accepted: dict[tuple[str, bytes], RequestId | None] = {}

    def call(self, message: bytes, version: str) -> Call | None:
        """Return the call that a message is, on a connection of this version, or None when it is the SDK's to say."""
        if message.count(b"{") + message.count(b"[") > _DEEPEST or _LONG_NUMBER.search(message):
            return None
        try:
            request = _request(message)
            params = request.params
            if params.name not in self._tools or not -_LONGEST_ID < _number(request.id) < _LONGEST_ID:
                return None
            accepted, token = self._meta(version, params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if not accepted:
            return None
        return Call(request.id, params.name, _arguments(params), token)

    def _meta(self, version: str, params: _Params) -> tuple[bool, RequestId | None]:
        """Tell whether the SDK accepts the `_meta` of a call, and the progress token in it."""
        raw = bytes(params.meta)
        if not raw:
            return version != MODERN_VERSION, None
        if (version, raw) in self._accepted:
            return True, self._accepted[version, raw]
        meta = _object(raw)
        token = meta.get(_TOKEN)
        if not self._fits(version, params, meta):
            return False, None
        if token is None:  # with a token it differs from request to request
            if len(self._accepted) >= _REMEMBERED:
                self._accepted.clear()
            self._accepted[version, raw] = None
        return True, token

    def _fits(self, version: str, params: _Params, meta: dict[str, Any]) -> bool:
        if _TOKEN in meta and type(meta[_TOKEN]) not in (int, str):
            return False
        modern = version == MODERN_VERSION
        if modern != (VERSION_KEY in meta):
            return False
        own = {key: value for key, value in meta.items() if key != _TOKEN}
        if plain_envelope(own) if modern else not own:
            return True
        if self.judge is None or (modern and meta[VERSION_KEY] != version):
            return False
        if not modern and any(key.startswith(_RESERVED) for key in meta):
            return False
        return self.judge(version, {"name": params.name, "arguments": _arguments(params), "_meta": meta})


def _arguments(params: _Params) -> dict[str, Any]:
    return {} if params.arguments is msgspec.UNSET else params.arguments


def _number(request: RequestId) -> int:
    return request if isinstance(request, int) else 0


def cancelled(message: bytes) -> RequestId | None:
    """Return which request a message cancels, by what it is known by, or None for any other message."""
    if b"notifications/cancelled" not in message:
        return None
    try:
        value = _object(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    params = value.get("params")
    fits = value.get("jsonrpc") == "2.0" and value.get("method") == "notifications/cancelled" and "id" not in value
    request: Any = params.get("requestId") if fits and is_object(params) else None
    return same_id(request) if isinstance(request, str | int) and not isinstance(request, bool) else None
