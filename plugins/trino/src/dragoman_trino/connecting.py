"""Where a server is, and as whom and with which settings a statement is sent to it."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman import Database

from dragoman_trino.options import Options

if TYPE_CHECKING:
    import requests
    from requests.adapters import HTTPAdapter

IDLE_CONNECTIONS: Final = 10
DEADLINE: Final = "query_max_run_time"
_REFUSALS = frozenset({"PERMISSION_DENIED", "INVALID_SESSION_PROPERTY"})


class Connector:
    """Makes sessions of one server; they share its connections and nothing else. Safe in threads."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.options = Options(**database.options)
        self.secure = self._secure()
        self.host = database.host or "localhost"
        self.port = database.port or (443 if self.secure else 8080)
        self.enforced = True
        """Whether the server lets us set its deadline."""
        self._lock = threading.Lock()
        self._adapter: HTTPAdapter | None = None
        self._environment: Mapping[str, Any] = {}

    def _secure(self) -> bool:
        scheme = self.options.http_scheme
        if scheme is not None:
            return scheme == "https"
        return bool(self.database.password or self.options.token or self.options.cert or self.database.port == 443)

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def session(self, seconds: float, headers: Mapping[str, str], tags: tuple[str, ...] = ()) -> requests.Session:
        """Return a session for one statement: whatever the server answers, the next statement has another one.

        The engine ends the statement after `seconds`; `headers` and `tags` go with it, beside the configured ones.
        """
        import requests
        from trino.client import ClientSession, TrinoRequest
        from trino.constants import HEADER_ENCODING

        session = requests.Session()
        self._connect(session)
        options = self.options
        database = self.database
        TrinoRequest(
            host=self.host,
            port=self.port,
            http_scheme="https" if self.secure else "http",
            http_session=session,
            client_session=ClientSession(
                user=options.session_user or database.user or "dragoman",
                catalog=_part(database.database, 0),
                schema=database.schema or _part(database.database, 1),
                source=options.source,
                client_tags=[*options.client_tags, *tags],
                properties={**options.session_properties, **self._deadline(seconds)},
                extra_credential=[(name, secret.reveal()) for name, secret in options.extra_credentials.items()],
                roles=options.roles,
                timezone=options.timezone,
            ),
        )
        # Results come in the answers themselves, never through a storage of the server's.
        session.headers.pop(HEADER_ENCODING, None)
        session.headers.update(headers)
        return session

    def learned(self, error: Mapping[str, Any]) -> bool:
        """Whether a failure tells that the server does not let us set its deadline; we stop trying."""
        refused = self.enforced and error.get("errorName") in _REFUSALS and DEADLINE in error.get("message", "")
        self.enforced = self.enforced and not refused
        return refused

    def _deadline(self, seconds: float) -> dict[str, str]:
        return {DEADLINE: f"{max(1, round(seconds * 1000))}ms"} if self.enforced else {}

    def _connect(self, session: requests.Session) -> None:
        """Give a session the connections all share, and what the environment says about the way there."""
        from requests.adapters import HTTPAdapter

        with self._lock:
            if self._adapter is None:
                self._adapter = HTTPAdapter(pool_connections=1, pool_maxsize=IDLE_CONNECTIONS)
                self._environment = session.merge_environment_settings(self.origin, {}, None, self.options.verify, None)
        session.trust_env = False
        session.mount(f"{self.origin}/", self._adapter)
        session.proxies = dict(self._environment["proxies"])
        session.verify = self._environment["verify"]

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            adapter, self._adapter = self._adapter, None
        if adapter is not None:
            adapter.close()


def _part(path: str | None, place: int) -> str | None:
    """A part of `catalog/schema`, as a URL has it."""
    parts = path.split("/") if path else []
    return parts[place] if place < len(parts) else None
