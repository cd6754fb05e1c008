"""Signing in: the configuration decides who signs in and how, and the driver's own classes do it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from dragoman import ConfigurationError, Database, DialectError

from dragoman_trino.options import Authentication, Options

if TYPE_CHECKING:
    import requests
    from trino.auth import Authentication as Method

_log = logging.getLogger(__name__)


def way_of(database: Database, options: Options) -> Authentication:
    """Return the way of signing in. Raises `ConfigurationError` if a setting that it needs is missing."""
    way = options.auth or (
        "jwt" if options.token else "password" if database.password else "certificate" if options.cert else "none"
    )
    needed = {"password": database.password, "jwt": options.token, "certificate": options.cert}
    if way in needed and not needed[way]:
        names = {"password": "user and password", "jwt": "options.token", "certificate": "options.cert and options.key"}
        raise ConfigurationError(
            f"databases.{database.name}: auth = {way!r} needs {names[way]}.",
            suggestion=f"Set {names[way]}, or another options.auth.",
        )
    return way


def method_of(database: Database, options: Options) -> Method | None:
    """Return the driver's authentication; None if there is none, or the connection itself has it."""
    import trino.auth as methods

    match way_of(database, options):
        case "password" if database.password:
            return methods.BasicAuthentication(database.user or "", database.password.reveal())
        case "jwt" if options.token:
            return methods.JWTAuthentication(options.token.reveal())
        case "kerberos":
            return methods.KerberosAuthentication(
                config=options.kerberos_config,
                service_name=options.kerberos_service_name,
                hostname_override=options.kerberos_hostname,
                principal=options.kerberos_principal,
                delegate=options.kerberos_delegate,
            )
        case "gssapi":
            return methods.GSSAPIAuthentication(
                config=options.kerberos_config,
                service_name=options.kerberos_service_name,
                hostname_override=options.kerberos_hostname,
                principal=options.kerberos_principal,
                delegate=options.kerberos_delegate,
            )
        case "oauth2":
            # Standard output belongs to the protocol, and the driver's default would write to it.
            return methods.OAuth2Authentication(redirect_auth_url_handler=methods.CompositeRedirectHandler([_show]))
        case _:
            return None


def sign_in(session: requests.Session, method: Method | None) -> None:
    """Set the authentication of a session. Raises `DialectError` if a package that it needs is not installed."""
    if method is None:
        return
    try:
        method.set_http_session(session)
    except RuntimeError as error:
        raise DialectError(
            f"The driver of Trino cannot sign in this way: {error}.",
            suggestion="Install dragoman-trino[kerberos] or dragoman-trino[gssapi].",
        ) from None


def _show(url: str) -> None:
    _log.warning("sign in to Trino in a browser: %s", url)
