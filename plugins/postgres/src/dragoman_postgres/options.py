"""The options of a PostgreSQL database beside those of every database, with libpq's names where it has one."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from dragoman import ConfigurationError

_SIZE = re.compile(r"[1-9]\d{0,9}(kB|MB|GB|TB)")
SslMode = Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a PostgreSQL database.

    - `connect_timeout`: seconds.
    - `timezone`: of every timestamp with a time zone.
    - `pgbouncer`: whether there is a pooler. None: find out.
    - `work_mem`: of each step of a query; by default the server's own.
    - `temp_file_limit`: the disk space that a query may use, if the role has no limit of its own and may set one.
    - `outdb_rasters`: whether rasters of PostGIS may have their pixels outside the database.
    - `embedded`: the folder of the demo's server, which is started when it is needed.
    """

    sslmode: SslMode | None = None
    sslcert: str | None = None
    sslkey: str | None = None
    sslpassword: str | None = None
    sslrootcert: str | None = None
    sslcrl: str | None = None
    sslnegotiation: Literal["postgres", "direct"] | None = None
    ssl_min_protocol_version: str | None = None
    ssl_max_protocol_version: str | None = None
    passfile: str | None = None
    service: str | None = None
    servicefile: str | None = None
    target_session_attrs: Literal["any", "primary", "standby", "read-write", "read-only", "prefer-standby"] | None = (
        None
    )
    krbsrvname: str | None = None
    gsslib: str | None = None
    application_name: str = "dragoman"
    connect_timeout: float = 10.0
    timezone: str = "UTC"
    pgbouncer: bool | None = None
    work_mem: str | None = None
    temp_file_limit: str = "1GB"
    outdb_rasters: bool = False
    embedded: str | None = None

    def __post_init__(self) -> None:
        for name in ("work_mem", "temp_file_limit"):
            value = getattr(self, name)
            if value is not None and not _SIZE.fullmatch(value):
                raise ConfigurationError(
                    f"The option {name} must be a size.", suggestion="Write it as PostgreSQL does: 64MB, 1GB."
                )

    def libpq(self) -> dict[str, str]:
        """Return the options that the driver takes as the query of a URL."""
        given = {name: getattr(self, name) for name in _URL_OPTIONS}
        return {name: value for name, value in given.items() if value is not None}


_URL_OPTIONS = (
    "sslmode",
    "sslcert",
    "sslkey",
    "sslpassword",
    "sslrootcert",
    "sslcrl",
    "sslnegotiation",
    "ssl_min_protocol_version",
    "ssl_max_protocol_version",
    "target_session_attrs",
    "krbsrvname",
    "gsslib",
)
OPEN_OPTIONS = frozenset(
    {
        "sslmode",
        "sslnegotiation",
        "ssl_min_protocol_version",
        "ssl_max_protocol_version",
        "target_session_attrs",
        "application_name",
        "connect_timeout",
        "timezone",
        "pgbouncer",
        "work_mem",
        "temp_file_limit",
    }
)
"""Options that name no file, no ticket and no program of this machine."""
