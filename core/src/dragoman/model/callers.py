"""Who calls: the principal, and what an identity provider says of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any


class Claims(Mapping[str, Any]):
    """What an identity provider says of a caller, as JSON values: read-only, hashable, equal by content."""

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
        # The values are personal: a log line shows only which claims there are.
        return f"Claims({', '.join(self._values)})"


NO_CLAIMS = Claims()


@dataclass(frozen=True, slots=True)
class Principal:
    """Who calls. stdio and the command line have the local one.

    `name` is for people and logs; `issuer` and `subject` together identify the caller, and a right is never given by
    the name alone. `client`: the program that calls for them. `token`: the name of the static token they came with.
    `claims`: what their identity provider says of them.
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
        """What tells callers apart, whatever else changes from token to token: issuer, subject, static token.

        Where no issuer vouches, the name stands for the subject.
        """
        return self.issuer, self.subject or self.name, self.token


LOCAL = Principal()
"""Who calls where nobody signs in: over stdio, on the command line, in a program."""
