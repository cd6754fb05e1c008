"""Tokens of an issuer: verified once, then remembered for a minute at most."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, NamedTuple

from dragoman.auth.claims import principal_of
from dragoman.auth.http import IssuerClient
from dragoman.auth.introspection import IntrospectedTokens
from dragoman.auth.jwks import KeyCache
from dragoman.auth.jwt import SignedTokens
from dragoman.auth.refusals import InvalidToken

if TYPE_CHECKING:
    from dragoman.config.settings import Auth
    from dragoman.model import Principal

REMEMBERED = 60.0
"""Seconds for which a verified token is not checked again. A withdrawn token may work for as long."""

MOST = 10_000
"""The number of accepted tokens that are remembered, and of refused ones."""

Reader = Callable[[str, Hashable], Awaitable[dict[str, Any]]]


class _Remembered(NamedTuple):
    """What was found about a token, and until when it counts: by the wall clock, and by one that nobody sets back.

    The steady clock alone would not do either: it may stand still while the machine sleeps.
    """

    found: Principal | InvalidToken
    until: float
    steady_until: float

    @property
    def is_valid(self) -> bool:
        return time.time() < self.until and time.monotonic() < self.steady_until


class Verifier:
    """Finds the principal that a token of the configured issuer names."""

    def __init__(self, settings: Auth) -> None:
        self._settings = settings
        self._client = IssuerClient()
        self._keys = KeyCache(self._client, settings.jwks_url)
        self._read: Reader = SignedTokens(self._keys).claims
        if settings.introspection_url:
            self._read = IntrospectedTokens(self._client, settings).claims
        # Apart, so that strangers who invent tokens push out none that was accepted.
        self._accepted: dict[bytes, _Remembered] = {}
        self._refused: dict[bytes, _Remembered] = {}

    async def principal(self, token: str, peer: str = "") -> Principal:
        """Return the principal that a token names. Raises `InvalidToken`, `IssuerUnreachable`.

        `peer`: the address that sent it. Addresses take turns, and so does each token that was accepted before.
        """
        digest = hashlib.sha256(token.encode("latin-1")).digest()
        known = self._accepted.get(digest) or self._refused.get(digest)
        if known is not None and known.is_valid:
            found = known.found
        else:
            found = await self._verify(token, digest, digest if digest in self._accepted else peer)
        if isinstance(found, InvalidToken):
            raise InvalidToken(str(found))
        return found

    async def _verify(self, token: str, digest: bytes, party: Hashable) -> Principal | InvalidToken:
        found: Principal | InvalidToken
        try:
            found, expires = principal_of(await self._read(token, party), self._settings)
        except InvalidToken as error:
            if not self._settings.introspection_url:
                raise
            # The issuer will refuse a token again that it refused before, and asking costs time on both sides.
            found, expires = error.with_traceback(None), time.time() + REMEMBERED
        self._remember(digest, found, expires)
        return found

    def _remember(self, digest: bytes, found: Principal | InvalidToken, expires: float) -> None:
        self._accepted.pop(digest, None)
        self._refused.pop(digest, None)
        memory = self._refused if isinstance(found, InvalidToken) else self._accepted
        while len(memory) >= MOST:
            del memory[next(iter(memory))]
        until = min(expires, time.time() + REMEMBERED)
        memory[digest] = _Remembered(found, until, time.monotonic() + REMEMBERED)

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        await self._keys.aclose()
        await self._client.aclose()
