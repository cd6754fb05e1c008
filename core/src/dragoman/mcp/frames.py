"""Reads one message: what it is, or what is wrong with it and which request gets the error.

The parser refuses some JSON that clients do send: lone surrogates, nesting beyond 200 levels, bytes that are not UTF-8.
A client waits forever for a request that is answered without its id, so the id of such a message is searched.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, cast

import mcp_types as types
from pydantic import ValidationError
from pydantic_core import from_json

from dragoman.mcp.answers import is_request_id

# With more strings and brackets, the search would block the event loop: only the ends of the line are searched.
_MOST_TOKENS = 20_000
_END = 16_000
_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_TOKEN = re.compile(_STRING + rb'|[{}\[\]"]', re.DOTALL)
_ID = rb'"id"\s*+:\s*+(' + _STRING + rb"|-?(?:0|[1-9]\d*+))\s*+"
_MEMBER = re.compile(_ID + rb"[,}]", re.DOTALL)
_NEITHER = "Not a JSON-RPC 2.0 request or notification"
_LAST_MEMBER = re.compile(_ID + rb"}\s*+\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a line is not a message. `id`: the request's, as JSON; `null` if it cannot be determined."""

    id: bytes
    code: int
    reason: str

    def answer(self) -> bytes:
        """Return the line to answer with."""
        error = json.dumps({"code": self.code, "message": self.reason}, separators=(",", ":"))
        return b'{"jsonrpc":"2.0","id":%b,"error":%b}' % (self.id, error.encode())


def read_message(line: bytes) -> types.JSONRPCMessage | Fault:
    """Return the message of a line, or what is wrong with it."""
    try:
        message = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError:
        return _fault(line)
    if isinstance(message, types.JSONRPCNotification) and (fault := _nameless(from_json(line))):
        return fault
    if isinstance(message, types.JSONRPCResponse | types.JSONRPCError):
        return _fault_of_request(from_json(line)) or message
    return message


def _fault_of_request(value: Any) -> Fault | None:
    """Return the fault of a request that also has the members of an answer, which has no method; else None."""
    return Fault(_id_of(value), types.INVALID_REQUEST, _NEITHER) if "method" in value else None


def find_nameless(line: bytes) -> Fault | None:
    """Return the fault of a request whose id is not valid; None for any other line, however wrong."""
    if b'"id"' not in line and b"\\u" not in line:
        return None
    try:
        return _nameless(from_json(line))
    except ValueError:
        return None


def _nameless(value: Any) -> Fault | None:
    message: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    if "method" not in message or "id" not in message or is_request_id(message["id"]):
        return None
    return Fault(b"null", types.INVALID_REQUEST, "A request's id is a string or an integer.")


def _fault(line: bytes) -> Fault:
    try:
        value: Any = from_json(line)
    except ValueError:
        return Fault(_find_id(line), types.PARSE_ERROR, "Parse error")
    return Fault(_id_of(value), types.INVALID_REQUEST, _NEITHER)


def _id_of(value: Any) -> bytes:
    message: dict[str, Any] = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    identifier = message.get("id")
    answers = "method" not in message and ("result" in message or "error" in message)
    known = is_request_id(identifier) and not answers
    return json.dumps(identifier if known else None).encode()


def _find_id(line: bytes) -> bytes:
    """Return the id of a request that is not valid JSON as a whole, as written there; the last one, as in parsers."""
    depth = 0
    found = b"null"
    for count, token in enumerate(_TOKEN.finditer(line)):
        if count == _MOST_TOKENS:
            return find_id_at_ends(line[:_END], line[-_END:])
        if token[0] == b'"':  # of a string without an end: it would be read to the end again from each of its quotes
            break
        depth += {b"{": 1, b"[": 1, b"}": -1, b"]": -1}.get(token[0], 0)
        if depth == 1 and token[0] == b'"id"' and (member := _MEMBER.match(line, token.start())):
            found = member[1]
    return found if _is_json(found) and line.lstrip().startswith(b"{") else b"null"


def find_id_at_ends(head: bytes, tail: bytes) -> bytes:
    """Return the id of a request of which only both ends are known; `null` if neither has it."""
    if b'"method"' not in head and b'"method"' not in tail:
        return b"null"
    last = _LAST_MEMBER.search(tail)
    return last[1] if last and _is_json(last[1]) else _find_id(head)


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
