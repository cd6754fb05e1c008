"""Connects to a host that an administrator chose: sends only what its address contains, and nothing of this machine.

The driver looks for passwords, certificates and tickets in the environment and in files of the server's user. The
arguments built here leave it nothing to look for.
"""

from __future__ import annotations

import ssl
import sys
from collections.abc import Callable
from typing import Any

import asyncpg
from dragoman import ConfigurationError, Database

from dragoman_postgres.options import Options

NOBODY = "dragoman"
"""The user if the address names none. The driver would send the name of this machine's user."""
REFUSES_TLS = "rejected SSL upgrade"
"""The driver's error for a server without TLS."""


def check_host(database: Database) -> None:
    """Raise `ConfigurationError` for a socket of this machine: a server may trust everybody who reaches it there."""
    if not database.host or any(host.startswith("/") for host in database.host.split(",")):
        raise ConfigurationError(
            f"databases.{database.name}: its URL names no host, or a folder of sockets, and "
            "administrators may not use those.",
            suggestion="Name the host: postgresql://USER:PASSWORD@HOST/DATABASE. Only the configuration file may name a"
            " socket.",
        )


def build_arguments(database: Database) -> dict[str, Any]:
    """Return arguments with which the driver looks for nothing itself."""
    user = database.user or NOBODY
    return {
        "user": user,
        "password": database.password.reveal() if database.password else "",
        "database": database.database or user,
        # A library that this system does not have, so that no ticket goes to that host.
        "gsslib": "gssapi" if sys.platform == "win32" else "sspi",
    }


def list_ways(options: Options, roots: Callable[[], str]) -> list[ssl.SSLContext | bool]:
    """Return the ways to connect, the best first. The next one is for a server without TLS.

    `roots`: returns the file of the root certificates. Raises `asyncpg.ClientConfigurationError`.
    """
    mode = options.sslmode or "prefer"
    if mode == "disable":
        return [False]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = mode == "verify-full"
    context.verify_mode = ssl.CERT_REQUIRED if mode.startswith("verify") else ssl.CERT_NONE
    if context.verify_mode is ssl.CERT_REQUIRED:
        context.load_verify_locations(cafile=roots())
    context.minimum_version = _version(options.ssl_min_protocol_version or "TLSv1.2")
    if options.ssl_max_protocol_version:
        context.maximum_version = _version(options.ssl_max_protocol_version)
    context.set_alpn_protocols(["postgresql"])
    return [context, False] if mode in ("allow", "prefer") else [context]


def _version(name: str) -> ssl.TLSVersion:
    try:
        return ssl.TLSVersion[name.replace(".", "_")]
    except KeyError:
        raise asyncpg.ClientConfigurationError("No such TLS version.") from None
