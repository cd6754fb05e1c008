"""The options of a Trino server beside those of every database, named as in Trino's own clients."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal
from zoneinfo import ZoneInfo

from dragoman import ConfigurationError, Secret

Authentication = Literal["password", "jwt", "certificate", "kerberos", "gssapi", "oauth2", "none"]
Value = str | int | float | bool


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a Trino server.

    - `http_scheme`: https by default if something secret is sent.
    - `verify`: whether to verify the certificate, or a file of authorities.
    - `auth`: how to sign in, if the other options do not show it.
    - `token`: a JSON web token.
    - `cert`, `key`: a client certificate's files.
    - `session_user`: the user that statements run as, if not the one who signs in.
    - `session_properties`: in a URL `name:value;name:value`.
    - `timezone`: of every timestamp with a time zone that the server creates.
    - `connect_timeout`: seconds.
    - `transactions`: whether statements run in read-only transactions. A load balancer before several servers would
      break them.
    - `embedded`: the demo's server, which is started on its port when it is needed.
    """

    http_scheme: Literal["http", "https"] | None = None
    verify: bool | str = True
    auth: Authentication | None = None
    token: Secret | None = None
    cert: str | None = None
    key: str | None = None
    kerberos_config: str | None = None
    kerberos_service_name: str | None = None
    kerberos_hostname: str | None = None
    kerberos_principal: str | None = None
    kerberos_delegate: bool = False
    session_user: str | None = None
    roles: dict[str, str] = field(default_factory=dict[str, str])
    source: str = "dragoman"
    client_tags: tuple[str, ...] = ()
    session_properties: dict[str, Value] | str = field(default_factory=dict[str, Value])
    extra_credentials: dict[str, Secret] = field(default_factory=dict[str, Secret])
    timezone: str = "UTC"
    connect_timeout: float = 10.0
    transactions: bool = True
    embedded: bool = False

    def __post_init__(self) -> None:
        try:
            ZoneInfo(self.timezone)
        except (ValueError, OSError, KeyError):
            raise ConfigurationError(
                "options: timezone is not the name of a time zone.", suggestion="Write it as in Europe/Berlin or UTC."
            ) from None

    def properties(self) -> dict[str, str]:
        """Return the session properties as the server expects them."""
        given = self.session_properties
        if isinstance(given, str):
            pairs = (pair.partition(":") for pair in given.split(";") if pair)
            return {name.strip(): value.strip() for name, _, value in pairs}
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in given.items()}


OPEN_OPTIONS = frozenset(
    {
        "http_scheme",
        "token",
        "session_user",
        "roles",
        "source",
        "client_tags",
        "session_properties",
        "extra_credentials",
        "timezone",
        "connect_timeout",
        "transactions",
    }
)
"""Options that name no file, no ticket and no program of this machine."""
