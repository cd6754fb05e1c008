"""Warns about names in roles that no caller of the server can have. They are allowed, but probably mistakes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dragoman.config.readers import suggest
from dragoman.config.roles import EVERYBODY, Role
from dragoman.config.settings import Server


def find_unheld(roles: Mapping[str, Role], server: Server) -> Iterator[str]:
    """Yield a warning for each name of a token, an issuer or a caller that no sign-in can produce."""
    for role in roles.values():
        yield from _tokens(role, server)
        yield from _principals(role, server)


def _tokens(role: Role, server: Server) -> Iterator[str]:
    names = tuple(token.name for token in server.tokens)
    for unknown in sorted(role.tokens.difference(names, {EVERYBODY})):
        yield _join(f"roles.{role.name}.tokens: no static token is called {unknown}.", suggest(unknown, names))


def _principals(role: Role, server: Server) -> Iterator[str]:
    key = f"roles.{role.name}.principals"
    names = tuple(token.name for token in server.tokens)
    for name in sorted(role.principals - {EVERYBODY}):
        issuer, _, subject = name.rpartition("#")
        if name in names:
            yield f"{key}: {name} is a static token, which has no subject. List it in roles.{role.name}.tokens."
        elif server.trusted_proxies:
            continue  # a proxy may name anybody
        elif issuer and subject and server.auth is not None and issuer != server.auth.issuer:
            yield _join(f"{key}: {issuer} is not the issuer.", suggest(issuer, (server.auth.issuer,)))
        elif names and server.transport == "http" and server.auth is None:
            told = f"{key}: callers over HTTP have static tokens here, and none of them is {name}."
            yield _join(told, _suggest_token(role, suggest(name, names)))


def _suggest_token(role: Role, near: str) -> str:
    return f"{near} Tokens are listed in roles.{role.name}.tokens." if near else ""


def _join(told: str, suggestion: str) -> str:
    return f"{told} {suggestion}" if suggestion else told
