"""What an operator may set for a Trino server beside what every database has; the names of Trino's own clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from dragoman import Secret

Authentication = Literal["password", "jwt", "certificate", "kerberos", "gssapi", "oauth2"]


@dataclass(frozen=True, slots=True)
class Options:
    """`http_scheme`: https wherever something secret is sent, unless it is said. `verify`: or a file of authorities.

    `connect_timeout`: seconds. `timezone`: of every timestamp with a time zone that the server makes. `session_user`:
    whom statements run as, when that is not who signs in. `cert` and `key`: a client certificate's files.
    `transactions`: whether statements run in read-only ones; a balancer before several servers would tear them apart.
    """

    http_scheme: Literal["http", "https"] | None = None
    verify: bool | str = True
    auth: Authentication | None = None
    token: Secret | None = None
    cert: str | None = None
    key: str | None = None
    session_user: str | None = None
    roles: dict[str, str] = field(default_factory=dict[str, str])
    source: str = "dragoman"
    client_tags: tuple[str, ...] = ()
    session_properties: dict[str, str] = field(default_factory=dict[str, str])
    extra_credentials: dict[str, Secret] = field(default_factory=dict[str, Secret])
    timezone: str = "UTC"
    transactions: bool = True
    connect_timeout: float = 10.0
