"""The caller: the principal, and the claims of an identity provider about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class Claims(Mapping[str, Any]):
    """The claims of an identity provider about a caller, as JSON values: read-only, hashable, equal by content."""

    __slots__ = ("_text", "_values")

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._values = dict(values or {})
        self._text = json.dumps(self._values, sort_keys=True, separators=(",", ":"))

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Claims) and other._text == self._text

    def __hash__(self) -> int:
        return hash(self._text)

    def __repr__(self) -> str:
        # The values are personal, so a log line shows only the names of the claims.
        return f"Claims({', '.join(self._values)})"


NO_CLAIMS = Claims()
PROXY_ISSUER = "proxy"
"""The issuer of principals that a trusted proxy names. It is the only one that is no address."""


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. On stdio and the command line it is the local one.

    - `name`: for people and logs. It never grants a right by itself.
    - `issuer`, `subject`: together they identify the caller.
    - `client`: the program that calls for the caller.
    - `token`: the name of the caller's static token.
    - `claims`: the claims of the identity provider.
    """

    name: str = "local"
    issuer: str = ""
    subject: str = ""
    client: str = ""
    token: str = ""
    groups: frozenset[str] = frozenset()
    scopes: frozenset[str] = frozenset()
    claims: Claims = NO_CLAIMS

    @property
    def identity(self) -> tuple[str, str, str]:
        """The identity of the caller, whatever else changes from token to token: issuer, subject, static token.

        Without an issuer, the name is the subject.
        """
        return self.issuer, self.subject or self.name, self.token


LOCAL = Principal()
"""The caller where nobody signs in: over stdio, on the command line, in a program."""
