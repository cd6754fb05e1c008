"""Static tokens: how they are made, and which principals they name.

The configuration keeps hashes; a token is shown once.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from dragoman.auth.refusals import InvalidToken
from dragoman.model import Principal

if TYPE_CHECKING:
    from dragoman.config.settings import StaticToken
    from dragoman.model import Secret

PREFIX = "drg_"
"""The prefix of a token, so that scanners find one that was published by mistake."""

HASH_PREFIX = "sha256:"
_BYTES = 32


def make_token() -> str:
    """Return a new token: 256 random bits, for which a plain hash is enough."""
    return PREFIX + secrets.token_urlsafe(_BYTES)


def hash_token(token: str) -> str:
    """Return the hash of a token, for the configuration."""
    return HASH_PREFIX + _digest(token.encode()).hex()


class StaticTokens:
    """The tokens of a configuration. `shared`: `server.token`; all its callers are one principal."""

    def __init__(self, tokens: Iterable[StaticToken], shared: Secret | None = None) -> None:
        self._known: dict[bytes, tuple[Principal, float | None]] = {}
        if shared:
            self._known[_digest(shared.reveal().encode())] = (Principal("token"), None)
        for token in tokens:
            principal = Principal(token.name, token=token.name, groups=token.groups)
            expires = token.expires.timestamp() if token.expires else None
            self._known[bytes.fromhex(token.hash.removeprefix(HASH_PREFIX))] = (principal, expires)

    def __bool__(self) -> bool:
        return bool(self._known)

    def find(self, given: bytes) -> Principal | None:
        """Return the principal that a token names; None if it is not known. Raises `InvalidToken` if it has expired."""
        # The duration depends on a digest, which nobody can choose, and not on the token.
        principal, expires = self._known.get(_digest(given), (None, None))
        if expires is not None and time.time() >= expires:
            raise InvalidToken("This token has expired.")
        return principal


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()
