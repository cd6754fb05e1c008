"""Decides which messages are well-formed calls of a tool, so that they need not pass through the SDK.

The gate only accepts. If it is not certain that the SDK would accept a message too, with the same meaning, the message
goes to the SDK untouched. So every error of the protocol is the SDK's own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from dragoman.mcp.answers import RequestId, is_request_id
from dragoman.mcp.handshake import MODERN_VERSION, VERSION_KEY, is_object, plain_envelope
from dragoman.mcp.wire import same_id
from dragoman.telemetry import TRACE_KEYS, Origin

_DEEPEST = 100
"""The number of opening brackets in a message beyond which it may be nested too deeply for one of the parsers."""
_SAME = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBER = b"0" * 100
_EXTREMES = (b"e000", b"e+000", b"e-000")
_MOST_EXTREMES = 100
"""The number of exponents of three digits in a message beyond which its numbers may take long: msgspec takes some 7
microseconds for each that is nearly too large or too small, a hundred times as long as for others."""
_LONGEST_ID = 2**53
_RESERVED = "io.modelcontextprotocol/"
_TOKEN = "progressToken"
_CHANGING = TRACE_KEYS | {_TOKEN}
_REMEMBERED = 256
"""The number of accepted envelopes that are remembered. A client sends the same one with every request."""

_NO_TRACE: Mapping[str, str] = MappingProxyType({})

Judge = Callable[[str, dict[str, Any]], bool]
"""Returns whether the SDK accepts these params of `tools/call` at this version of the protocol."""


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
    """A call of an existing tool. `token`: for its progress notifications, or None.

    `trace`: the keys of its `_meta` that carry the caller's trace.
    """

    request: RequestId
    name: str
    arguments: dict[str, Any]
    token: RequestId | None
    trace: Mapping[str, str] = field(default_factory=lambda: _NO_TRACE)


class Gate:
    """Recognises calls. `judge` asks the SDK. Without it, only messages pass that every SDK accepts."""

    def __init__(self, tools: Collection[str], judge: Judge | None = None) -> None:
        self._tools = frozenset(tools)
        self.judge = judge
        self._accepted: set[tuple[str, bytes]] = set()

    def call(self, message: bytes, version: str) -> Call | None:
        """Return the call in a message, on a connection of this version, or None if the SDK must decide."""
        if message.count(b"{") + message.count(b"[") > _DEEPEST or _has_slow_numbers(message):
            return None
        try:
            request = _request(message)
            params = request.params
            if params.name not in self._tools or not -_LONGEST_ID < _number(request.id) < _LONGEST_ID:
                return None
            meta = self._meta(version, params)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return None
        if meta is None:
            return None
        return Call(request.id, params.name, _arguments(params), meta.get(_TOKEN), trace_of(meta))

    def _meta(self, version: str, params: _Params) -> Mapping[str, Any] | None:
        """Return the part of a call's `_meta` that differs from call to call. None: the SDK may not accept it."""
        raw = bytes(params.meta)
        if not raw:
            return _NO_TRACE if version != MODERN_VERSION else None
        if (version, raw) in self._accepted:
            return _NO_TRACE
        meta = _object(raw)
        if not self._fits(version, params, meta):
            return None
        if not meta.keys() & _CHANGING:
            if len(self._accepted) >= _REMEMBERED:
                self._accepted.clear()
            self._accepted.add((version, raw))
        return meta

    def _fits(self, version: str, params: _Params, meta: dict[str, Any]) -> bool:
        if _TOKEN in meta and type(meta[_TOKEN]) not in (int, str):
            return False
        modern = version == MODERN_VERSION
        if modern != (VERSION_KEY in meta):
            return False
        own = {key: value for key, value in meta.items() if key not in _CHANGING}
        if not all(isinstance(meta.get(key, ""), str) for key in TRACE_KEYS):
            own = meta
        if plain_envelope(own) if modern else not own:
            return True
        if self.judge is None or (modern and meta[VERSION_KEY] != version):
            return False
        if not modern and any(key.startswith(_RESERVED) for key in meta):
            return False
        return self.judge(version, {"name": params.name, "arguments": _arguments(params), "_meta": meta})


def trace_of(meta: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the keys of a `_meta` that carry a trace. Values other than texts are ignored."""
    if not meta.keys() & TRACE_KEYS:
        return _NO_TRACE
    return {key: meta[key] for key in TRACE_KEYS if isinstance(meta.get(key), str)}


def origin_of(trace: Mapping[str, str], request: RequestId | None, version: str, linked: str | None = None) -> Origin:
    """Return the origin of a call. `linked`: the trace of the HTTP request around it; None: over stdio."""
    transport = "pipe" if linked is None else "tcp"
    return Origin(**trace, linked=linked or "", transport=transport, version=version, request=str(request))


def _has_slow_numbers(message: bytes) -> bool:
    same = message.translate(_SAME)
    return _LONG_NUMBER in same or sum(same.count(each) for each in _EXTREMES) > _MOST_EXTREMES


def _arguments(params: _Params) -> dict[str, Any]:
    return {} if params.arguments is msgspec.UNSET else params.arguments


def _number(request: RequestId) -> int:
    return request if isinstance(request, int) else 0


def read_cancellation(message: bytes) -> RequestId | None:
    """Return the key of the request that a message cancels, or None for any other message."""
    if b"notifications/cancelled" not in message:
        return None
    try:
        value = _object(message)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    params = value.get("params")
    fits = value.get("jsonrpc") == "2.0" and value.get("method") == "notifications/cancelled" and "id" not in value
    request: Any = params.get("requestId") if fits and is_object(params) else None
    return same_id(request) if is_request_id(request) else None
