"""Who calls over HTTP. The ways to sign in are those the configuration names; without any, everybody is `anonymous`."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from dragoman.auth import InvalidToken
from dragoman.auth.tokens import StaticTokens
from dragoman.mcp.refusals import Refused
from dragoman.model import Principal

if TYPE_CHECKING:
    from starlette.types import Scope

    from dragoman.config import Server

PRINCIPAL = "dragoman.principal"
"""The key of the ASGI scope under which a request carries its `Principal`; absent when nobody signed in."""

PROXY_ISSUER = "proxy"
"""The issuer of principals that a trusted proxy names."""

FORWARDED_USER = "x-forwarded-user"
FORWARDED_GROUPS = "x-forwarded-groups"

Authenticate = Callable[["Scope"], Awaitable[Principal]]
"""Returns who sent a request; raises `Refused` with a challenge when that is not known. Reads headers only."""

_ANONYMOUS = Principal("anonymous")


def sign_in(settings: Server) -> Authenticate:
    """Return the sign-in that a configuration asks for."""
    return _SignIn(settings) if settings.has_sign_in else _anonymous


async def _anonymous(_: Scope) -> Principal:
    return _ANONYMOUS


class _SignIn:
    """By a trusted proxy's word, else by a bearer token."""

    def __init__(self, settings: Server) -> None:
        self._proxies = _Proxies(settings.trusted_proxies)
        self._tokens = StaticTokens(settings.tokens, settings.token)

    async def __call__(self, scope: Scope) -> Principal:
        headers = Headers(scope=scope)
        if (named := self._proxies.principal(scope, headers)) is not None:
            return named
        try:
            return self._by_token(_bearer(headers))
        except InvalidToken as error:
            raise _challenge(str(error)) from None

    def _by_token(self, token: str) -> Principal:
        # Starlette reads headers as Latin-1; the bytes are those that were sent.
        if (principal := self._tokens.find(token.encode("latin-1"))) is not None:
            return principal
        raise InvalidToken("This token is not known.")


class _Proxies:
    """Peers that may say who calls. Anybody else's `X-Forwarded-User` is never looked at."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(each) for each in networks]

    def principal(self, scope: Scope, headers: Headers) -> Principal | None:
        """Return whom a trusted proxy names; None when the peer is none, or names nobody."""
        if not self._networks or not self._trusts(scope):
            return None
        user = headers.get(FORWARDED_USER, "").strip()
        groups = (each.strip() for each in headers.get(FORWARDED_GROUPS, "").split(","))
        return Principal(user, PROXY_ISSUER, user, groups=frozenset(filter(None, groups))) if user else None

    def _trusts(self, scope: Scope) -> bool:
        try:
            peer = ipaddress.ip_address((scope.get("client") or ("",))[0])
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._networks)


def _bearer(headers: Headers) -> str:
    """Return the bearer token of a request. Raises `Refused` without one, and `InvalidToken` for another scheme."""
    given = headers.get("authorization")
    if given is None:
        # Of a request that says nothing of who sends it, RFC 6750 wants no error code in the challenge.
        raise Refused(401, "invalid_token", "Send a bearer token.", {"WWW-Authenticate": "Bearer"})
    scheme, _, value = given.partition(" ")
    if scheme.lower() != "bearer":
        raise InvalidToken("This token is not known.")
    return value.strip()


def _challenge(reason: str) -> Refused:
    return Refused(401, "invalid_token", reason, {"WWW-Authenticate": 'Bearer error="invalid_token"'})
