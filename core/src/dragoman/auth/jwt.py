"""Signed tokens: checks that a token is an access token and that a key of the issuer signed it."""

from __future__ import annotations

import base64
import functools
import json
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from dragoman.auth.claims import is_access_token
from dragoman.auth.jwks import ALGORITHMS, KeyCache
from dragoman.auth.refusals import InvalidToken

if TYPE_CHECKING:
    from joserfc.jwk import Key
    from joserfc.jws import JWSRegistry

MAX_BYTES = 16 * 1024
"""The most characters of a token. A request head as a whole has 64 kB."""

_MAX_HEADER = 4 * 1024
_TYPES = {"", "jwt", "at+jwt", "application/at+jwt"}
"""The `typ` headers of access tokens. ID-JAGs, logout tokens and other statements have types of their own."""

_MALFORMED = "This is not a signed token."


class SignedTokens:
    """Reads tokens that are signed with the keys of an issuer."""

    def __init__(self, keys: KeyCache) -> None:
        self._keys = keys

    async def claims(self, token: str, party: Hashable = "") -> dict[str, Any]:
        """Return the claims of a token whose signature is right. Raises `InvalidToken`, `IssuerUnreachable`.

        `party`: who sent it. It does not matter here, since one fetch of the keys is for all.
        """
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
        # The header `at+jwt` proves this already.
        if not kind.endswith("at+jwt") and not is_access_token(claims):
            raise InvalidToken("This is not an access token.")
        return claims


def _header(token: str) -> dict[str, Any]:
    encoded, _, rest = token.partition(".")
    if len(token) > MAX_BYTES:
        raise InvalidToken("This token is too long. Have the issuer leave out groups that this server does not need.")
    if not token.isascii() or len(encoded) > _MAX_HEADER or rest.count(".") != 1:
        raise InvalidToken(_MALFORMED)
    try:
        return _read_object(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except ValueError:
        raise InvalidToken(_MALFORMED) from None


def _verify(token: str, key: Key) -> dict[str, Any]:
    from joserfc import jws

    try:
        signed = jws.deserialize_compact(token, key, ALGORITHMS, _registry())
    except Exception:  # a forged token can raise anything in the library; it is not accepted
        raise InvalidToken("The signature of this token is wrong.") from None
    try:
        return _read_object(signed.payload or b"")
    except ValueError:
        raise InvalidToken(_MALFORMED) from None


def _read_object(octets: bytes) -> dict[str, Any]:
    """Return a JSON object in UTF-8. Raises `ValueError` for anything that another reader may understand differently.

    RFC 7515 and 7519 require UTF-8 and unique member names. The `json` module also takes UTF-16, and the last of two
    equal names.
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
    raise ValueError(f"{constant} is not JSON")


@functools.cache
def _registry() -> JWSRegistry:
    from joserfc import jws

    class Algorithms(jws.JWSRegistry):
        """The algorithms named here and no others. Callers see no warning when one of them is renamed."""

        max_header_length = _MAX_HEADER

        def get_alg(self, name: str) -> Any:
            if name not in ALGORITHMS:
                raise InvalidToken(_MALFORMED)
            return self.algorithms[name]

    # RFC 7515 says to ignore unknown parameters, unless `crit` lists them.
    return Algorithms(algorithms=ALGORITHMS, strict_check_header=False)
