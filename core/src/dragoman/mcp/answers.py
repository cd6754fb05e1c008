"""Answers as the bytes of a JSON-RPC message, built without decoding anything that was already encoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeGuard

import msgspec

from dragoman.mcp.handshake import SERVER_KEY

if TYPE_CHECKING:
    from dragoman.tools import Answer
    from dragoman.tools.answer import Link

encode = msgspec.json.Encoder().encode
"""Returns any JSON value, minified. A text becomes a quoted literal."""

RequestId: TypeAlias = int | str


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Return whether a value can be the id of a request. Python counts booleans as integers, JSON-RPC does not."""
    return isinstance(value, str | int) and not isinstance(value, bool)


def message(request: RequestId, answer: Answer, stamp: dict[str, Any] | None) -> bytes:
    """Return the response to `tools/call`.

    `stamp`: the server's name, which only the modern version of the protocol includes.
    """
    parts = [b'{"jsonrpc":"2.0","id":', encode(request), b',"result":{']
    meta = answer.meta if stamp is None else {**answer.meta, SERVER_KEY: stamp}
    if meta:
        parts += (b'"_meta":', encode(meta), b",")
    if answer.text and not answer.links:
        parts += (b'"content":[{"type":"text","text":', encode(answer.text), b"}]")
    else:
        parts += (b'"content":', encode([*_texts(answer), *map(_link, answer.links)]))
    if answer.body is not None and not answer.is_error:
        parts += (b',"structuredContent":', one_line(answer.body))
    parts.append(b',"isError":true' if answer.is_error else b',"isError":false')
    parts.append(b"}}" if stamp is None else b',"resultType":"complete"}}')
    return b"".join(parts)


def _texts(answer: Answer) -> list[dict[str, Any]]:
    return [{"type": "text", "text": answer.text}] if answer.text else []


def _link(link: Link) -> dict[str, Any]:
    named = {"type": "resource_link", "uri": link.uri, "name": link.name}
    return {**named, "mimeType": link.mime, "size": link.size}


def one_line(document: bytes) -> bytes:
    """Return a JSON document without line ends. In valid JSON they only ever separate tokens."""
    if b"\n" in document or b"\r" in document:
        return document.replace(b"\n", b" ").replace(b"\r", b" ")
    return document


def notification(token: RequestId, done: float, total: float | None, words: str | None) -> bytes:
    """Return a notification of progress."""
    params: dict[str, Any] = {"progressToken": token, "progress": done}
    if total is not None:
        params["total"] = total
    if words is not None:
        params["message"] = words
    return encode({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})


def error(request: RequestId, code: int, words: str) -> bytes:
    """Return an error of the protocol."""
    return encode({"jsonrpc": "2.0", "id": request, "error": {"code": code, "message": words}})
