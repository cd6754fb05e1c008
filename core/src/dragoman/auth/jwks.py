"""The issuer's public keys.

They are kept, fetched again when a token names an unknown key, and used on while the issuer is down.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from dragoman.auth.http import RETRY_AFTER, IssuerClient
from dragoman.auth.refusals import InvalidToken, IssuerUnreachable
from dragoman.catalog.flight import SingleFlight

if TYPE_CHECKING:
    from joserfc.jwk import Key

LOGGER = logging.getLogger("dragoman.auth")

FRESH = 300.0
"""Seconds until the next token makes the cache fetch the keys again, without waiting for them."""

OLD = 540.0
"""Seconds until the next token waits for the keys: one of them may be withdrawn.

A verified token is remembered for another minute, so a withdrawn key works for ten minutes.
"""

PATIENCE = 30.0
"""Seconds between two fetches for keys that do not exist, and from a failure until a caller waits for new keys."""

_AFTER_FAILURE = 1.0
_KEY_TYPES = {"RS256": "RSA", "PS256": "RSA", "ES256": "EC", "EdDSA": "OKP", "Ed25519": "OKP"}
ALGORITHMS = tuple(_KEY_TYPES)
_MISSED = 256
_LEAST_BITS = 2048
"""The least bits of an RSA key, as RFC 7518 demands."""


class KeyCache:
    """The keys under `jwks_url`. At most one fetch runs at a time, and no caller can cancel it for the others."""

    def __init__(self, client: IssuerClient, jwks_url: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._client = client
        self._url = jwks_url
        self._clock = clock
        self._flight = SingleFlight()
        self._keys: list[Key] = []
        self._fetched = self._failed = self._fruitless = float("-inf")
        self._missed: set[str | None] = set()

    async def find(self, kid: str | None, algorithm: str) -> Key:
        """Return the key of a token.

        Raises `InvalidToken` if there is none, `IssuerUnreachable` if the keys are unknown.
        """
        await self._renew()
        if (key := self._lookup(kid, algorithm)) is None:
            await self._search(kid)
            if (key := self._lookup(kid, algorithm)) is None:
                self._miss(kid)
                raise InvalidToken("This token is signed with a key that the issuer does not have.")
        return key

    async def _renew(self) -> None:
        """Fetch known keys again, so that withdrawn ones are dropped.

        Callers wait for it only if nobody has asked for long. While the issuer is down, callers who come all the time
        keep fetching, and none of them waits.
        """
        now = self._clock()
        if not self._keys or now < self._fetched + FRESH or now < self._failed + _AFTER_FAILURE:
            return
        fetching = self._flight.start("keys", self._fetch)
        if now > self._fetched + OLD and now > self._failed + PATIENCE:
            with suppress(IssuerUnreachable):
                await asyncio.shield(fetching)

    def _lookup(self, kid: str | None, algorithm: str) -> Key | None:
        fitting = [
            key
            for key in self._keys
            if key.key_type == _KEY_TYPES[algorithm] and key.get("alg") in (None, algorithm) and kid in (None, key.kid)
        ]
        # A token that names no key is checked only if there is a single key.
        return fitting[0] if fitting and (kid is not None or len(fitting) == 1) else None

    async def _search(self, kid: str | None) -> None:
        """Fetch the keys to find an unknown one, unless a recent fetch did not find it."""
        wait = self._fruitless + PATIENCE - self._clock()
        if wait > 0:
            if kid in self._missed:
                return
            # The key may be new. Calling the token wrong would make its owner sign in again for nothing.
            raise IssuerUnreachable(int(wait) + 1)
        if self._clock() < self._failed + _AFTER_FAILURE:
            raise IssuerUnreachable(RETRY_AFTER)
        await self._flight.run("keys", self._fetch)

    def _miss(self, kid: str | None) -> None:
        if self._clock() > self._fruitless + PATIENCE:
            self._fruitless = self._clock()
            self._missed.clear()
        if len(self._missed) < _MISSED:
            self._missed.add(kid)

    async def _fetch(self) -> None:
        try:
            given = (await self._client.ask("GET", self._url, headers={"Accept": "application/json"})).get("keys")
            if not isinstance(given, list):  # a page about an outage, for instance
                raise IssuerUnreachable(RETRY_AFTER)
            self._keys = _signing_keys(cast("list[object]", given))
            if not self._keys:  # it checks no token: the callers are not the ones who are wrong
                LOGGER.warning("the issuer publishes no key that checks signatures")
                raise IssuerUnreachable(RETRY_AFTER)
        except IssuerUnreachable:
            self._failed = self._clock()
            raise
        self._fetched = self._clock()

    async def aclose(self) -> None:
        """End a running fetch."""
        await self._flight.aclose()


def _signing_keys(given: list[object]) -> list[Key]:
    return [key for each in given if (key := _signing_key(each)) is not None]


def _signing_key(given: Any) -> Key | None:
    """Return a public key that may check signatures; None for any other key."""
    if not isinstance(given, dict):
        return None
    try:
        return _read_key(cast("dict[str, Any]", given))
    except Exception:  # a broken key can raise anything, here or in the library; the other keys still count
        LOGGER.warning("a key of the issuer cannot be read")
        return None


def _read_key(given: dict[str, Any]) -> Key | None:
    from joserfc import jwk

    if given.get("use", "sig") != "sig" or given.get("kty") not in _KEY_TYPES.values():
        return None
    if "verify" not in given.get("key_ops", ["verify"]):
        return None
    key = jwk.import_key({name: value for name, value in given.items() if name != "key_ops"})
    if isinstance(key, jwk.RSAKey) and key.public_key.key_size < _LEAST_BITS:
        LOGGER.warning("an RSA key of the issuer has less than %d bits", _LEAST_BITS)
        return None
    return key
