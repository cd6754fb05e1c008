"""What a client without a token is told: the issuer of this server's tokens (RFC 9728), and the scopes they need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers

from dragoman._version import VERSION
from dragoman.mcp.handshake import NAME

if TYPE_CHECKING:
    from collections.abc import Iterable

    from starlette.types import Scope

    from dragoman.config import Auth

WELL_KNOWN = "/.well-known/oauth-protected-resource"


class ProtectedResource:
    """The server, as its identity provider knows it. `path`: of the MCP endpoint."""

    def __init__(self, settings: Auth, path: str) -> None:
        self._settings = settings
        self._path = path
        self._url = next((name for name in settings.audience if name.startswith(("https://", "http://"))), "")
        outside = urlsplit(self._url).path.rstrip("/") if self._url else path
        self._well_known = WELL_KNOWN + outside
        self.paths = tuple(dict.fromkeys((WELL_KNOWN, WELL_KNOWN + path, self._well_known)))

    @property
    def origin(self) -> str:
        """The scheme, host and port of the audience that is a URL; empty: there is none."""
        split = urlsplit(self._url)
        return f"{split.scheme}://{split.netloc}" if self._url else ""

    def url(self, scope: Scope) -> str:
        """Return this server's own address: the audience that is a URL, else the address of the request."""
        return self._url or _origin(scope) + self._path

    def document(self, scope: Scope) -> dict[str, Any]:
        """Return the metadata, as JSON values."""
        document: dict[str, Any] = {
            "resource": self.url(scope),
            "authorization_servers": [self._settings.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": f"{NAME} {VERSION}",
        }
        return document | ({"scopes_supported": list(self._settings.scopes)} if self._settings.scopes else {})

    def challenge(self, scope: Scope, needed: Iterable[str], error: str = "") -> str:
        """Return the value of `WWW-Authenticate`: the error, where to get a token, and all scopes it needs."""
        split = urlsplit(self.url(scope))
        parts = {"error": error, "scope": " ".join(needed)}
        parts["resource_metadata"] = f"{split.scheme}://{split.netloc}{self._well_known}"
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in parts.items() if value)


def _origin(scope: Scope) -> str:
    return f"{scope.get('scheme', 'http')}://{Headers(scope=scope).get('host', '')}"
