"""Opens one connection: the address, the user and the settings.

The settings ensure that every value always arrives in the same form.
"""

from __future__ import annotations

import asyncio
import configparser
import logging
import math
import os
import re
import ssl
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import asyncpg
from dragoman import ConnectionFailed, Database

from dragoman_postgres import administered
from dragoman_postgres.driver import Connection, Loop
from dragoman_postgres.embedded import ABSENT, awake
from dragoman_postgres.failures import unreachable
from dragoman_postgres.options import Options
from dragoman_postgres.search_path import SearchPath, one_process

_log = logging.getLogger(__name__)
_UNSUPPORTED = re.compile(r"unsupported startup parameter")
_UNKNOWN = re.compile(r"unrecognized configuration parameter")
_NOT_OURS = re.compile(r"permission denied to set parameter")
_HOST = re.compile(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::(\d+))?")
_FILES = ("sslrootcert", "sslcert", "sslkey", "sslcrl")
_NO_ROOTS = "root certificate file"
"""The subject of the driver's error if no root certificate was configured."""
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",  # Debian, Ubuntu, Arch
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",  # Fedora, RHEL
    "/etc/ssl/ca-bundle.pem",  # SUSE
    "/etc/ssl/cert.pem",  # Alpine, macOS
)
READ_ONLY = {"default_transaction_read_only": "on"}
CHECK_INTERVAL = {"client_connection_check_interval": "500ms"}
"""Seconds in which a backend notices that nobody waits for it any more; for PostgreSQL 14 and later."""

RASTERS = {"postgis.enable_outdb_rasters": "off"}
"""A raster may name a file or an address that holds its pixels. A caller can write such a raster as a text."""

WHOLE_TRANSACTION = {"transaction_timeout": "0"}
"""Of a server or role it would end our sessions, not only their statements; for PostgreSQL 17 and later."""


def bound_times(seconds: float) -> dict[str, str]:
    """Return the settings that end work that takes longer than a statement's `seconds`."""
    milliseconds = max(1, round(seconds * 1000))
    return {
        "statement_timeout": str(milliseconds),
        "lock_timeout": str(milliseconds * 9 // 10 or 1),
        "idle_in_transaction_session_timeout": str(milliseconds + 10_000),
    }


@dataclass(slots=True)
class Cluster:
    """The cluster that all sessions of a database must belong to: those that judge, and those that run what was judged.

    `now`: its identifier, as the newest connection found it. None: it is not known, or the server does not tell.
    """

    now: str | None = None


class Connector:
    """Opens connections to one database, and remembers which settings its server refuses.

    `bounded`: sessions have deadlines of ours, which override those that the server sets. `path` and `cluster`: shared
    with another connector. Raises `ConfigurationError` for a host that administrators may not use.
    """

    def __init__(
        self,
        database: Database,
        *,
        bounded: bool = True,
        path: SearchPath | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        self._database = database
        self.cluster = cluster or Cluster()
        self._times = bound_times(database.timeout) if bounded else {}
        if database.administered:
            administered.check_host(database)
        self.options = Options(**database.options)
        self._checks = True
        self._closes_rasters = False if self.options.outdb_rasters else None
        self._may_end_transactions = False
        self._files = {name: _path(getattr(self.options, name), database.folder) for name in _FILES}
        if self.options.sslrootcert == "system":
            self._files["sslrootcert"] = _system_roots()
        # This setting, among others, decides whether a host is a writer, so it must not be ours there.
        self._told_later = self.options.target_session_attrs in ("read-write", "read-only")
        self._may_bound = True
        self.path = path or SearchPath.of(database)
        self.pooled = self.options.pgbouncer
        """Whether a pooler between us and the server shares sessions among transactions. None: not known yet."""

    @property
    def settings(self) -> dict[str, str]:
        """Return the settings of a session, so that values are exact and read the same everywhere."""
        return {
            "DateStyle": "ISO",
            "IntervalStyle": "iso_8601",
            "TimeZone": self.options.timezone,
            "extra_float_digits": "1",
            "bytea_output": "hex",
            "standard_conforming_strings": "on",
            # Otherwise `x = NULL` means `x IS NULL`, if a database or role sets it so.
            "transform_null_equals": "off",
            # Otherwise types are named `"uuid"[]`, and definitions and plans have quotes around every name.
            "quote_all_identifiers": "off",
            # Otherwise '{NULL}' is an array of one word.
            "array_nulls": "on",
            "xmlbinary": "base64",
            "xmloption": "content",
            **READ_ONLY,
            **({"search_path": self.path.text} if self.path.text else {}),
            **({"work_mem": self.options.work_mem} if self.options.work_mem else {}),
        }

    @property
    def prelude(self) -> list[str]:
        """Return the commands that each transaction needs at its beginning: none, unless sessions are shared."""
        if not self.pooled:
            return []
        settings = {**self.settings, **(WHOLE_TRANSACTION if self._may_end_transactions else {})}
        return [f"SET LOCAL {name} = {_literal(name, value)}" for name, value in settings.items()]

    async def connect(self, seconds: float = math.inf) -> Connection:
        """Open a connection within `seconds`, and within the configured times.

        Raises the driver's errors, which `failures` translates.
        """
        seconds = min(seconds, self._database.timeout, self.options.connect_timeout)
        connection = await self._connect(seconds)
        try:
            if self.pooled is None:
                self.pooled = await _is_pooled(connection)
            if self._closes_rasters is None and not self.pooled and await self._learn_rasters(connection):
                connection.abort()
                connection = await self._connect(seconds)
            await self._set_up(connection)
        except BaseException:
            connection.abort()
            raise
        return connection

    async def _learn_rasters(self, connection: Connection) -> bool:
        """Learn whether sessions switch rasters off, and do so here. Return whether only a new session can.

        They do not where somebody else has: the setting of a role that may not change it would take the place of a
        superuser's, and would then be dropped for the server's default.
        """
        found = await _show_rasters(connection)
        self._closes_rasters = found != "off"
        if not found:
            await connection.execute("; ".join(f"SET {name} = {value}" for name, value in RASTERS.items()))
        return found == "on"

    async def _set_up(self, connection: Connection) -> None:
        self.cluster.now = connection.cluster = await _identify(connection, pooled=bool(self.pooled))
        self._may_end_transactions = connection.get_server_version() >= (17,)
        await self.path.learn(connection, self._database.name)
        connection.path = self.path.text
        if not self.pooled:
            if commands := [f"SET {name} = {value}" for name, value in self._later_settings().items()]:
                await connection.execute("; ".join(commands))
            if self._may_bound:
                self._may_bound = await _bound_temporary_files(connection, self.options.temp_file_limit)

    def _later_settings(self) -> dict[str, str]:
        """Return the settings of a session that are known, or that the server knows, only once it is connected."""
        return {
            **({"search_path": self.path.text} if self.path.text else {}),
            **(READ_ONLY if self._told_later else {}),
            **(WHOLE_TRANSACTION if self._times and self._may_end_transactions else {}),
        }

    async def _connect(self, timeout: float) -> Connection:
        woken = False
        while True:
            startup = self._startup_settings()
            try:
                return await self._open(startup, timeout)
            except ABSENT:
                if self.options.embedded is None or woken or not await awake(self.options.embedded):
                    raise
                woken = True
            except asyncpg.InvalidPasswordError:
                if self._database.password is None:
                    raise self._no_password() from None
                raise
            except asyncpg.ClientConfigurationError as error:
                if _NO_ROOTS not in str(error) or self._files["sslrootcert"]:
                    raise
                self._files["sslrootcert"] = self._roots()
            except asyncpg.PostgresError as error:
                if not self._learn(str(error), startup):
                    raise
            except (configparser.Error, ValueError):
                if self.options.service is None:
                    raise
                raise self._no_service() from None  # the error quotes a line, which may be a password

    def _no_password(self) -> ConnectionFailed:
        return unreachable(
            self._database.name,
            "the server asks for a password, and no matching one is configured",
            "Give one in the URL."
            if self._database.administered
            else "Give one in the URL or as password, best as ${NAME}, or the file that holds it as passfile.",
        )

    def _no_service(self) -> ConnectionFailed:
        return unreachable(
            self._database.name,
            "its service file cannot be parsed",
            "It has a [SECTION] for each service, with lines KEY=VALUE; % is written %%. Check the option servicefile.",
        )

    def _roots(self) -> str:
        """Return the system's root certificates.

        Without configured ones, the hosts that a browser trusts are trusted.
        """
        roots = _system_roots()
        if roots is None:
            raise unreachable(
                self._database.name,
                "its certificate cannot be verified: this system has no root certificates in the usual places",
                "Name the file of the server's authority with the option sslrootcert.",
            )
        return roots

    def _check_files(self) -> None:
        for name, path in self._files.items():
            if path and not Path(path).is_file():
                raise unreachable(
                    self._database.name,
                    f"the certificate or key in its option {name} does not exist",
                    f"Check {name} in the configuration; a path is relative to the configuration's folder.",
                )

    def _startup_settings(self) -> dict[str, str]:
        if self.pooled:
            return {}
        rasters = RASTERS if self._closes_rasters else {}
        settings = {**self.settings, **self._times, **(CHECK_INTERVAL if self._checks else {}), **rasters}
        settings.pop("search_path", None)
        return {name: value for name, value in settings.items() if not (self._told_later and name in READ_ONLY)}

    def _learn(self, message: str, startup: Mapping[str, str]) -> bool:
        """Return whether the refusal of a startup setting shows what to leave out next time."""
        if startup and _UNSUPPORTED.search(message):
            self.pooled = True
        elif CHECK_INTERVAL.keys() <= startup.keys() and _UNKNOWN.search(message):
            self._checks = False
        elif RASTERS.keys() <= startup.keys() and _NOT_OURS.search(message):
            self._closes_rasters = False
        else:
            return False
        return True

    async def _open(self, startup: dict[str, str], timeout: float) -> Connection:
        if not self._database.administered:
            return await self._dial(startup, timeout, {})
        own = administered.build_arguments(self._database)
        *better, last = administered.list_ways(self.options, self._roots)
        for way in better:
            try:
                return await self._dial(startup, timeout, own | {"ssl": way})
            except ConnectionError as error:
                if administered.REFUSES_TLS not in str(error):
                    raise
        return await self._dial(startup, timeout, own | {"ssl": last})

    async def _dial(self, startup: dict[str, str], timeout: float, own: Mapping[str, Any]) -> Connection:
        """Open a connection. `own`: replaces what the configuration or the machine has."""
        options = self.options
        self._check_files()
        files = {name: path for name, path in self._files.items() if path}
        loop: Any = Loop(asyncio.get_running_loop())
        return await asyncpg.connect(
            f"postgresql://?{urlencode(options.libpq() | files)}",
            **{**self._address(), **own},
            passfile=_path(options.passfile, self._database.folder),
            service=options.service,
            servicefile=_path(options.servicefile, self._database.folder),
            timeout=timeout,
            statement_cache_size=0,
            connection_class=Connection,
            loop=loop,
            server_settings={"application_name": options.application_name, **startup},
        )

    def _address(self) -> dict[str, Any]:
        database = self._database
        password = database.password.reveal() if database.password else None
        address: dict[str, Any] = {"user": database.user, "password": password, "database": database.database}
        if database.host:
            hosts = [_host(host, database.port) for host in database.host.split(",")]
            address |= {"host": [host for host, _ in hosts], "port": [port for _, port in hosts]}
        elif database.port:
            address["port"] = database.port
        return {name: value for name, value in address.items() if value is not None}


async def _is_pooled(connection: Connection) -> bool:
    """Return whether another process than the session's answers: a pooler is in between."""
    async with one_process(connection):
        return bool(await connection.fetchval("SELECT pg_catalog.pg_backend_pid()") != connection.get_server_pid())


async def _identify(connection: Connection, *, pooled: bool) -> str | None:
    """Return the identifier of the cluster, which standbys have from their primary. None: it is not told.

    Raises `asyncpg.OperatorInterventionError` where the server had no time to tell it.
    """
    try:
        async with one_process(connection) if pooled else nullcontext():
            told = await connection.fetchval("SELECT system_identifier FROM pg_catalog.pg_control_system()")
    except asyncpg.exceptions.OperatorInterventionError:
        raise
    except asyncpg.PostgresError:  # some services do not let everybody call it
        return None
    return str(int(told))


async def _bound_temporary_files(connection: Connection, temporary: str) -> bool:
    """Limit the role's temporary files, unless they are limited already. Return whether it may. Calls no function."""
    try:
        if await connection.fetchval("SHOW temp_file_limit") == "-1":
            await connection.execute(f"SET temp_file_limit = '{temporary}'")
    except asyncpg.PostgresError:  # few roles may, and not every server with this protocol has the setting
        return False
    return True


async def _show_rasters(connection: Connection) -> str:
    """Return whether rasters may have their pixels outside the database, "on" or "off"; empty if nobody says so."""
    try:
        return str(await connection.fetchval("SHOW postgis.enable_outdb_rasters"))
    except asyncpg.PostgresError:
        return ""


def _host(text: str, port: int | None) -> tuple[str, int]:
    """Return one of several hosts, which may have a port of its own. A path is a folder of Unix sockets."""
    found = None if text.startswith("/") else _HOST.fullmatch(text)
    if found is None:
        return text, port or 5432
    return found[1] or found[2] or "localhost", int(found[3] or port or 5432)


def _path(given: str | None, folder: Path) -> str | None:
    return str(folder / os.path.expanduser(given)) if given else None


def _system_roots() -> str | None:
    """Return the file of the system's trusted certificates, from OpenSSL or its distribution; None: there is none."""
    known = (ssl.get_default_verify_paths().cafile, *_BUNDLES)
    return next((path for path in known if path and Path(path).is_file()), None)


def _literal(name: str, value: str) -> str:
    # A list of schemas is not a text.
    return value if name == "search_path" else "'" + value.replace("'", "''") + "'"
