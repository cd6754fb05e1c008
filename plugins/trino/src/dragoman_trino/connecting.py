"""The server's address, and the user and settings with which a statement is sent to it."""

from __future__ import annotations

import threading
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

from dragoman import ConfigurationError, Database

from dragoman_trino import embedded
from dragoman_trino.options import Options
from dragoman_trino.signing_in import method_of, sign_in, way_of

if TYPE_CHECKING:
    import requests
    from requests.adapters import HTTPAdapter
    from trino.auth import Authentication

IDLE_CONNECTIONS: Final = 10
NOBODY: Final = "dragoman"
"""The user if nobody signs in and none is configured: the server requires a name."""
DEADLINE: Final = "query_max_run_time"
STATISTICS: Final = "enable_stats_calculator"
PUSHDOWN: Final = "allow_pushdown_into_connectors"
OURS: Final = (DEADLINE, STATISTICS, PUSHDOWN)
_REFUSALS = frozenset({"PERMISSION_DENIED", "INVALID_SESSION_PROPERTY"})


class Connector:
    """Creates sessions for one server, which share only its connections. Thread-safe.

    Raises `ConfigurationError` for settings that contradict each other.
    """

    def __init__(self, database: Database) -> None:
        self.database = database
        self.options = Options(**database.options)
        self.way = way_of(database, self.options)
        self._acting = database.acting.user if database.acting else None
        if database.identity == "user" and self.options.session_user:
            raise ConfigurationError(
                f"databases.{database.name}: statements run as the caller and as options.session_user.",
                suggestion="Remove session_user: the user who signs in impersonates the callers.",
            )
        self.secure = self._secure()
        if not (self.options.transactions or database.accept_unenforced):
            raise ConfigurationError(
                f"databases.{database.name}: without transactions nothing but the gate keeps the server from writing.",
                suggestion=f"Set databases.{database.name}.accept_unenforced = true, with a user who may only read.",
            )
        self.host = database.host or "localhost"
        self.port = database.port or (443 if self.secure else 8080)
        self.refused: set[str] = set()
        """Our session properties that the server does not allow us to set."""
        self._lock = threading.Lock()
        self._adapter: HTTPAdapter | None = None
        self._method: Authentication | None = None
        self._environment: Mapping[str, Any] = {}

    def _secure(self) -> bool:
        secret = self.way != "none" or bool(self.options.extra_credentials)
        scheme = self.options.http_scheme or ("https" if secret or self.database.port == 443 else "http")
        if scheme == "http" and secret:
            raise ConfigurationError(
                f"databases.{self.database.name}: a password, token or credential is not sent over plain http.",
                suggestion="Set options.http_scheme = 'https' and the port of https.",
            )
        return scheme == "https"

    @property
    def origin(self) -> str:
        """The scheme, host and port."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.secure else 'http'}://{host}:{self.port}"

    def session(
        self,
        seconds: float,
        headers: Mapping[str, str],
        tags: tuple[str, ...] = (),
        user: str | None = None,
        *,
        off: Collection[str] = (),
    ) -> requests.Session:
        """Return a session for one statement: whatever the server answers, the next statement gets another one.

        The engine ends the statement after `seconds`. `headers` and `tags` are sent beside the configured ones. It runs
        as `user`, if given. `off`: which of `OURS` it switches off.
        """
        import requests

        if self.options.embedded:
            embedded.wake(self.database.name, self.port, seconds)
        session = requests.Session()
        self._connect(session)
        sign_in(session, self._method)
        session.headers.update(self._headers(tags, user or self._acting, self._properties(seconds, off)))
        # For its small pages, the server takes longer to compress than a good network takes to send them.
        session.headers.update({"Accept-Encoding": "identity", **headers})
        return session

    def _headers(self, tags: tuple[str, ...], user: str | None, properties: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that name the user and the settings."""
        from trino.client import ClientSession, TrinoRequest
        from trino.constants import HEADER_ENCODING, HEADER_USER

        options, database = self.options, self.database
        user = user or options.session_user or database.user
        session = ClientSession(
            user=user or NOBODY,
            catalog=_part(database.database, 0),
            schema=database.schema or _part(database.database, 1),
            source=options.source,
            client_tags=[*options.client_tags, *tags],
            properties={**options.properties(), **properties},
            extra_credential=[(name, secret.reveal()) for name, secret in options.extra_credentials.items()],
            roles=options.roles,
            timezone=options.timezone,
        )
        told: Mapping[str, str | None] = TrinoRequest(self.host, self.port, session).http_headers
        # Results come in the answers themselves, never through a storage of the server. A user who signs in without a
        # configured name gets the name that the server gives.
        left_out = {HEADER_ENCODING, "" if user or self.way == "none" else HEADER_USER}
        return {name: value for name, value in told.items() if value and name not in left_out}

    def learn(self, error: Mapping[str, Any]) -> bool:
        """Return whether a failure shows that the server refuses one of our properties. We then stop setting it."""
        message = error.get("message", "") if error.get("errorName") in _REFUSALS else ""
        refused = {name for name in OURS if name in message}
        self.refused |= refused
        return bool(refused)

    def _properties(self, seconds: float, off: Collection[str]) -> dict[str, str]:
        """Return our session properties, which are sent beside the configured ones."""
        wanted = {DEADLINE: f"{max(1, round(seconds * 1000))}ms", **dict.fromkeys(off, "false")}
        return {name: value for name, value in wanted.items() if name not in self.refused}

    def _connect(self, session: requests.Session) -> None:
        """Give a session the shared connections, and the environment's settings such as proxies."""
        from requests.adapters import HTTPAdapter

        with self._lock:
            if self._adapter is None:
                self._adapter = HTTPAdapter(pool_connections=1, pool_maxsize=IDLE_CONNECTIONS)
                self._method = method_of(self.database, self.options)
                self._environment = session.merge_environment_settings(self.origin, {}, None, self._verify(), None)
        session.trust_env = False
        session.mount(f"{self.origin}/", self._adapter)
        if self.secure:
            del session.adapters["http://"]  # whatever the server answers, nothing is sent without https
        session.proxies = dict(self._environment["proxies"])
        session.verify = self._environment["verify"]
        if self.options.cert:
            session.cert = (self._path(self.options.cert), self._path(self.options.key or self.options.cert))

    def _verify(self) -> bool | str:
        verify = self.options.verify
        return self._path(verify) if isinstance(verify, str) else verify

    def _path(self, given: str) -> str:
        return str(self.database.folder / given)

    def close(self) -> None:
        """Close the connections."""
        with self._lock:
            adapter, self._adapter = self._adapter, None
        if adapter is not None:
            adapter.close()


def _part(path: str | None, place: int) -> str | None:
    """Return a part of `catalog/schema`, as a URL has it."""
    parts = path.split("/") if path else []
    return parts[place] if place < len(parts) else None
