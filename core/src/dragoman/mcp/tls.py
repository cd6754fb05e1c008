"""TLS of the server itself: its certificate and key, read again at every reload for later connections."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Callable
from datetime import UTC, datetime
from errno import EINVAL
from typing import TYPE_CHECKING

from dragoman.errors import ConfigurationError

if TYPE_CHECKING:
    from pathlib import Path

    from dragoman.config import Configuration, Server

LOGGER = logging.getLogger("dragoman.mcp")


def tls_context(settings: Server) -> ssl.SSLContext | None:
    """Return the context of a server with TLS; None: it has none. An expired certificate gives a warning.

    Raises `ConfigurationError` for files that cannot be read or do not belong together.
    """
    if settings.tls_cert is None:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _load(context, settings)
    _warn_of_dates(settings.tls_cert)
    return context


def renewing(context: ssl.SSLContext) -> Callable[[Configuration], Callable[[], None]]:
    """Return the function that reads the files again at a reload: later connections get the new certificate."""

    def prepare(configuration: Configuration) -> Callable[[], None]:
        tls_context(configuration.server)  # a wrong file changes nothing
        return lambda: _load(context, configuration.server)

    return prepare


def _load(context: ssl.SSLContext, settings: Server) -> None:
    assert settings.tls_cert is not None
    try:
        for file in filter(None, (settings.tls_cert, settings.tls_key)):
            if file.exists() and not file.is_file():  # a pipe or a device may keep the whole server waiting
                raise OSError(EINVAL, "it is no file")
        context.load_cert_chain(settings.tls_cert, settings.tls_key, password=_no_password)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else "they are not a pair of PEM files"
        raise ConfigurationError(
            f"server.tls_cert, server.tls_key: the certificate cannot be used ({why}).",
            suggestion="Name a PEM file with the certificate and its chain, and one with its key without a password.",
        ) from None


def _warn_of_dates(file: Path) -> None:
    from cryptography.x509 import load_pem_x509_certificates  # only a server with TLS pays for its import

    certificate = load_pem_x509_certificates(file.read_bytes())[0]
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    if not begins <= datetime.now(UTC) < ends:
        LOGGER.warning("server.tls_cert: clients refuse the certificate, which is valid from %s to %s.", begins, ends)


def _no_password() -> str:
    # Otherwise OpenSSL would ask at the terminal.
    raise ValueError
