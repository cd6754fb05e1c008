"""The caller over HTTP. The configuration names the ways to sign in; without any, everybody is `anonymous`."""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING

from starlette.datastructures import Headers

from dragoman.auth import InvalidToken, IssuerUnreachable
from dragoman.auth.tokens import PREFIX, StaticTokens
from dragoman.errors import ConfigurationError
from dragoman.mcp.refusals import Refused
from dragoman.mcp.resource import ProtectedResource
from dragoman.model import Principal
from dragoman.model.callers import PROXY_ISSUER

if TYPE_CHECKING:
    from starlette.types import Scope

    from dragoman.auth.verifier import Verifier
    from dragoman.config import Configuration, Server

PRINCIPAL = "dragoman.principal"
"""The key of the ASGI scope under which a request carries its `Principal`. It is absent if nobody signed in."""
UNCHECKED = "dragoman.unchecked"
"""The key of the ASGI scope with the refusal of a token that could not be checked, on a path that needs none."""

FORWARDED_USER = "x-forwarded-user"
FORWARDED_GROUPS = "x-forwarded-groups"

Authenticate = Callable[["Scope"], Awaitable[Principal]]
"""Returns the sender of a request. Raises `Refused` with a challenge if it is unknown. Reads only headers."""

_ANONYMOUS = Principal("anonymous")
_SPACE = " \t"
"""The white space around a value, by HTTP. Any other, such as a no-break space, is part of a name: it differs."""


class SignIn:
    """The configured ways to sign in: a trusted proxy's header, a static token, a token of the issuer.

    `path`: of the MCP endpoint. `required`: returns the scopes that a request needs in an issuer's token; by default
    the configured ones.
    """

    def __init__(self, settings: Server, path: str, required: Callable[[Scope], Iterable[str]] | None = None) -> None:
        self._open = not settings.has_sign_in
        self._proxies = _Proxies(settings.trusted_proxies)
        self._tokens = StaticTokens(settings.tokens, settings.token)
        self._path = path
        self._auth = settings.auth
        self._verifier = _verifier(settings)
        self._replaced: list[Verifier] = []
        self.resource = _resource(settings, path)
        self._required = required or self._configured_scopes

    def _configured_scopes(self, _: Scope) -> Iterable[str]:
        return self._auth.scopes if self._auth else ()

    async def __call__(self, scope: Scope) -> Principal:
        """Return the sender of a request. Raises `Refused`."""
        if self._open:
            return _ANONYMOUS
        headers = Headers(scope=scope)
        if (named := self._proxies.principal(scope, headers)) is not None:
            return named
        given = headers.get("authorization")
        if given is None:
            # If a request says nothing about its sender, RFC 6750 wants no error code in the challenge.
            raise self._refuse(scope, "Send a bearer token.")
        try:
            return await self._by_token(scope, _bearer(given))
        except InvalidToken as error:
            raise self._refuse(scope, str(error), "invalid_token") from None
        except IssuerUnreachable as error:
            # 401 would make the client sign in again and again at an issuer that does not answer.
            after = {"Retry-After": str(error.retry_after)}
            raise Refused(503, "issuer_unreachable", "The token cannot be checked now. Try again.", after) from None

    async def _by_token(self, scope: Scope, token: str) -> Principal:
        # Starlette reads headers as Latin-1; these are the bytes that were sent.
        if (principal := self._tokens.find(token.encode("latin-1"))) is not None:
            return principal
        if self._verifier is None or not token or token.startswith(PREFIX):
            raise InvalidToken("This token is not known.")
        principal = await self._verifier.principal(token, _peer(scope))
        needed = tuple(self._required(scope))
        if not principal.scopes.issuperset(needed):
            reason = f"This needs a token with the scopes {', '.join(needed)}."
            raise self._refuse(scope, reason, "insufficient_scope", 403)
        return principal

    def _refuse(self, scope: Scope, reason: str, error: str = "", status: int = 401) -> Refused:
        challenge = f'Bearer error="{error}"' if error else "Bearer"
        if self.resource is not None:
            challenge = self.resource.challenge(scope, self._required(scope), error)
        return Refused(status, error or "invalid_token", reason, {"WWW-Authenticate": challenge})

    def prepare(self, configuration: Configuration) -> Callable[[], None]:
        """Return the function that applies the issuer and the static tokens of a new configuration.

        Raises `ConfigurationError` if the change would switch signing in on or off, or move the server's address.
        """
        if self._open == configuration.server.has_sign_in:
            raise ConfigurationError(
                "Whether callers sign in cannot change while the server runs.",
                suggestion="Restart the server to apply it.",
            )
        server = configuration.server
        resource = _resource(server, self._path)
        if _addresses(resource) != _addresses(self.resource):
            raise ConfigurationError(
                "The address of the server in server.auth.audience cannot change while the server runs.",
                suggestion="Restart the server to apply it.",
            )
        tokens = StaticTokens(server.tokens, server.token)

        def take() -> None:
            self._tokens = tokens
            if server.auth != self._auth:
                self._replace(_verifier(server))
                self._auth, self.resource = server.auth, resource

        return take

    def _replace(self, verifier: Verifier | None) -> None:
        """Use another verifier from now on. The one before still answers its requests, and is closed at the end."""
        if self._verifier is not None:
            self._replaced.append(self._verifier)
        self._verifier = verifier

    async def aclose(self) -> None:
        """Close the connections to the issuer."""
        for verifier in (*self._replaced, self._verifier):
            if verifier is not None:
                await verifier.aclose()


def _verifier(settings: Server) -> Verifier | None:
    if settings.auth is None:
        return None
    from dragoman.auth.verifier import Verifier

    return Verifier(settings.auth)


def _resource(settings: Server, path: str) -> ProtectedResource | None:
    return ProtectedResource(settings.auth, path) if settings.auth else None


def _addresses(resource: ProtectedResource | None) -> tuple[object, ...]:
    """Return the part of the addresses that is fixed while the server runs: its routes, and its own address."""
    return (resource.paths, resource.origin) if resource else ()


class _Proxies:
    """Peers that may name the caller. `X-Forwarded-User` from any other peer is ignored."""

    def __init__(self, networks: Iterable[str]) -> None:
        self._networks = [ipaddress.ip_network(each) for each in networks]

    def principal(self, scope: Scope, headers: Headers) -> Principal | None:
        """Return the caller that a trusted proxy names; None if the peer is no such proxy, or names nobody.

        Raises `Refused` for a name or group that is not UTF-8.
        """
        if not self._networks or not self._trusts(scope):
            return None
        user = _read_name(headers, FORWARDED_USER).strip(_SPACE)
        groups = (each.strip(_SPACE) for each in _read_name(headers, FORWARDED_GROUPS).split(","))
        return Principal(user, PROXY_ISSUER, user, groups=frozenset(filter(None, groups))) if user else None

    def _trusts(self, scope: Scope) -> bool:
        try:
            peer = ipaddress.ip_address(_peer(scope))
        except ValueError:
            return False
        peer = getattr(peer, "ipv4_mapped", None) or peer
        return any(peer in network for network in self._networks)


def _peer(scope: Scope) -> str:
    return str((scope.get("client") or ("",))[0])


def _read_name(headers: Headers, name: str) -> str:
    """Return a header's text. Raises `Refused` for bytes that are not UTF-8: they would name somebody else."""
    given = headers.get(name, "").encode("latin-1")  # the bytes that were sent
    try:
        return given.decode()
    except UnicodeDecodeError:
        titled = name.title()
        raise Refused(400, "invalid_request", f"{titled} is not UTF-8: have the proxy send it so.") from None


def _bearer(given: str) -> str:
    """Return the token of an `Authorization` header. Raises `InvalidToken` for another scheme."""
    scheme, _, value = given.partition(" ")
    if scheme.lower() != "bearer":
        raise InvalidToken("This token is not known.")
    return value.strip()
