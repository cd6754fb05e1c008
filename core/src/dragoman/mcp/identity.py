"""Who calls over HTTP. Another way to sign in is another `Authenticate`, and nothing else changes."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers
from starlette.types import Scope

from dragoman.mcp.refusals import Refused
from dragoman.model import Principal, Secret

PRINCIPAL = "dragoman.principal"
"""The key of the ASGI scope under which a request carries its `Principal`; absent when nobody signed in."""

Authenticate = Callable[[Scope], Awaitable[Principal]]
"""Returns who sent a request; raises `Refused` with a challenge when that is not known. Reads headers only."""


def by_token(token: Secret | None) -> Authenticate:
    """Return the sign-in by one static bearer token; without one everybody is `anonymous`."""
    expected = _digest(token.reveal().encode()) if token else b""

    async def authenticate(scope: Scope) -> Principal:
        if not token:
            return Principal("anonymous")
        given = Headers(scope=scope).get("authorization")
        if given is None:
            raise Refused(401, "invalid_token", "Send a bearer token.", {"WWW-Authenticate": "Bearer"})
        scheme, _, value = given.partition(" ")
        # Digests have one length, so that the comparison takes the same time whatever was sent.
        same = hmac.compare_digest(_digest(value.strip().encode("latin-1")), expected)
        if not (same and scheme.lower() == "bearer"):
            challenge = {"WWW-Authenticate": 'Bearer error="invalid_token"'}
            raise Refused(401, "invalid_token", "This token is not known.", challenge)
        return Principal("token")

    return authenticate


def _digest(text: bytes) -> bytes:
    return hashlib.sha256(text).digest()
