"""Signed tokens: is this an access token that a key of the issuer signed?"""

from __future__ import annotations

import base64
import functools
import json
from typing import TYPE_CHECKING, Any

from dragoman.auth.claims import is_access_token
from dragoman.auth.jwks import ALGORITHMS, KeyCache
from dragoman.auth.refusals import InvalidToken

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

MAX_BYTES = 16 * 1024
"""Of a token; a head as a whole has 64 kB."""

_MAX_HEADER = 4 * 1024
_TYPES = {"", "jwt", "at+jwt", "application/at+jwt"}
"""Headers of access tokens. ID-JAGs, logout tokens and other statements have types of their own."""

_MALFORMED = "This is no signed token."


class SignedTokens:
    """Reads tokens that the keys of an issuer sign."""

    def __init__(self, keys: KeyCache) -> None:
        self._keys = keys

    async def claims(self, token: str) -> dict[str, Any]:
        """Return what a token says; its signature is right. Raises `InvalidToken`, `IssuerUnreachable`."""
        header = _header(token)
        algorithm, kid = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
            raise InvalidToken(f"This token is not signed with one of {', '.join(ALGORITHMS)}.")
        if kid is not None and not isinstance(kid, str):
            raise InvalidToken(_MALFORMED)
        kind = str(header.get("typ", "")).lower()
        if kind not in _TYPES:
            raise InvalidToken("This is not an access token.")
        claims = _verify(token, await self._keys.find(kid, algorithm))
        # Where the header says `at+jwt` that is settled.
        if not kind.endswith("at+jwt") and not is_access_token(claims):
            raise InvalidToken("This is not an access token.")
        return claims


def _header(token: str) -> dict[str, Any]:
    encoded, _, rest = token.partition(".")
    if not token.isascii() or len(token) > MAX_BYTES or len(encoded) > _MAX_HEADER or rest.count(".") != 1:
        raise InvalidToken(_MALFORMED)
    try:
        return _read_object(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except ValueError:
        raise InvalidToken(_MALFORMED) from None


def _verify(token: str, key: Key) -> dict[str, Any]:
    from joserfc import jws

    try:
        signed = jws.deserialize_compact(token, key, ALGORITHMS, _registry())
    except Exception:  # whatever a forged token makes the library raise: it is not accepted
        raise InvalidToken("The signature of this token is wrong.") from None
    try:
        return _read_object(signed.payload or b"")
    except ValueError:
        raise InvalidToken(_MALFORMED) from None


def _read_object(octets: bytes) -> dict[str, Any]:
    """Return a JSON object in UTF-8. Raises `ValueError` for anything that another reader may take for another object.

    RFC 7515 and 7519 want UTF-8 and members of different names; `json` by itself takes UTF-16, and of two the last.
    """
    try:
        read = json.loads(octets.decode(), object_pairs_hook=_unite, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("nested too deep") from None
    if not isinstance(read, dict):
        raise ValueError("no object")
    return read  # pyright: ignore[reportUnknownVariableType]


def _unite(members: list[tuple[str, Any]]) -> dict[str, Any]:
    united = dict(members)
    if len(united) < len(members):
        raise ValueError("a member twice")
    return united


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


@functools.cache
def _registry() -> JWSRegistry:
    from joserfc import jws

    class Algorithms(jws.JWSRegistry):
        """The algorithms named here and no others; that one of them has a newer name is no news to a caller."""

        max_header_length = _MAX_HEADER

        def get_alg(self, name: str) -> Any:
            if name not in ALGORITHMS:
                raise InvalidToken(_MALFORMED)
            return self.algorithms[name]

    # Parameters that are not known are ignored, as RFC 7515 says, unless `crit` lists them.
    return Algorithms(algorithms=ALGORITHMS, strict_check_header=False)
