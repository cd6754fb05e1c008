"""Checks the claims of a verified token against the configuration, and returns a principal."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from dragoman.auth.refusals import InvalidToken
from dragoman.model import Claims, Principal

if TYPE_CHECKING:
    from dragoman.config.settings import Auth

SKEW = 60
"""Seconds by which clocks may differ."""

_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?#@]*(?=[/?#]|$)")

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which JSON can spell out and no other text can hold."""
# These describe the token, not its holder, and differ from one token to the next.
_OF_THE_TOKEN = frozenset(
    ("active", "exp", "iat", "nbf", "jti", "auth_time", "sid", "session_state", "nonce", "at_hash", "c_hash", "typ")
)


def principal_of(claims: Mapping[str, Any], settings: Auth) -> tuple[Principal, float]:
    """Return the principal of a token, and the time (seconds since the epoch) until which the token is valid.

    Raises `InvalidToken`. The issuer's own answer about a token may leave out `iss` and `exp`.
    """
    required = not settings.introspection_url
    if claims.get("cnf") is not None or str(claims.get("token_type")).lower() in ("dpop", "pop"):
        # RFC 9449 (DPoP) and RFC 8705 (mTLS): a server that cannot check that the caller has the key must not accept
        # the token. An issuer that is asked may say so by the type alone.
        raise InvalidToken("This token is bound to a key (cnf), which this server does not check.")
    _check_issuer(claims, settings, required=required)
    _check_audience(claims.get("aud"), settings.audience)
    expires = _check_time(claims, required=required)
    subject = claims.get("sub")
    if not isinstance(subject, str) or not subject or _HALF.search(subject):
        raise InvalidToken("This token does not say who calls: it has no sub.")
    name, client = _value(claims, settings.user_claim), claims.get("azp", claims.get("client_id"))
    principal = Principal(
        name if isinstance(name, str) and name else subject,
        settings.issuer,
        subject,
        client if isinstance(client, str) else "",
        groups=_names(_value(claims, settings.groups_claim), settings.groups_claim),
        scopes=_with_implied(_scopes(claims), settings.implied_scopes),
        claims=Claims({name: value for name, value in claims.items() if name not in _OF_THE_TOKEN}),
    )
    return principal, expires


def is_access_token(claims: Mapping[str, Any]) -> bool:
    """Return whether this is an access token, and not an ID token, a refresh token or another statement of the issuer.

    Keycloak's `typ`, the `token_use` of Cognito and Hydra and the `token_type` of introspection decide, if present.
    Otherwise claims that only the other kinds have decide.
    """
    if claims.get("token_use", "access") not in ("access", "access_token"):
        return False
    if str(claims.get("token_type")).lower() in ("refresh_token", "refresh", "id_token", "id"):
        return False
    if "typ" in claims:
        return bool(claims["typ"] == "Bearer")
    return claims.keys().isdisjoint(("nonce", "at_hash", "c_hash", "s_hash", "events"))


def _check_issuer(claims: Mapping[str, Any], settings: Auth, *, required: bool) -> None:
    if claims.get("iss", None if required else settings.issuer) != settings.issuer:
        raise InvalidToken("This token is of another issuer.")


def _check_audience(given: Any, expected: tuple[str, ...]) -> None:
    named = [given] if isinstance(given, str) else given if _is_list(given) else []
    own = {_canonical(audience) for audience in expected}
    if own.isdisjoint(_canonical(audience) for audience in named if isinstance(audience, str)):
        raise InvalidToken("This token was not issued for this server.")


def _canonical(audience: str) -> str:
    """Return an audience, with scheme and host in lower case if it is an address, since their case has no meaning."""
    origin = _ORIGIN.match(audience)
    return audience if origin is None else origin[0].lower() + audience[origin.end() :]


def _check_time(claims: Mapping[str, Any], *, required: bool) -> float:
    now = time.time()
    expires = claims.get("exp", None if required else now + SKEW)
    begins = claims.get("nbf", now)
    if not _is_number(expires):
        raise InvalidToken("This token does not say when it expires.")
    if not _is_number(begins):
        raise InvalidToken("This token does not say when it begins to be valid.")
    if not expires > now - SKEW:
        raise InvalidToken("This token has expired.")
    if not begins <= now + SKEW:
        raise InvalidToken("This token is not valid yet.")
    return float(expires + SKEW)


def _scopes(claims: Mapping[str, Any]) -> frozenset[str]:
    given = claims.get("scope", claims.get("scp", ""))
    return frozenset(given.split()) if isinstance(given, str) else _names(given, "scope")


def _with_implied(scopes: frozenset[str], implied: Mapping[str, tuple[str, ...]]) -> frozenset[str]:
    """Return scopes, and those that broader ones among them imply, directly or indirectly."""
    found, waiting = set[str](), [*scopes]
    while waiting:
        scope = waiting.pop()
        if scope not in found:
            found.add(scope)
            waiting += implied.get(scope, ())
    return frozenset(found)


def _names(given: Any, claim: str) -> frozenset[str]:
    named = [] if given is None else [given] if isinstance(given, str) else given
    if not _is_list(named) or not all(isinstance(each, str) for each in named):
        # Leaving out what cannot be read might leave out what limits the caller.
        raise InvalidToken(f"The claim {claim} of this token is not a list of names.")
    return frozenset(named)


def _value(claims: Mapping[str, Any], name: str) -> Any:
    """Return a claim. `realm_access.roles` means a claim inside another, unless a claim has exactly that name."""
    if name in claims:
        return claims[name]
    value: Any = claims
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    return value  # pyright: ignore[reportUnknownVariableType]


def _is_number(value: Any) -> TypeGuard[float]:
    # Infinities and numbers larger than any float are not times.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)
