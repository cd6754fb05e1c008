"""The reports of a Postgres server about itself, as far as a plain role may read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dragoman import Report

_SYSTEM_INFO = """
SELECT current_setting('server_version') AS version, current_database() AS database, current_user AS role,
    pg_catalog.pg_encoding_to_char(d.encoding) AS encoding, d.datcollate AS collation,
    current_setting('TimeZone') AS time_zone, pg_catalog.pg_postmaster_start_time() AS started,
    pg_catalog.pg_is_in_recovery() AS is_replica, pg_catalog.pg_database_size(d.oid) AS size_bytes,
    current_setting('max_connections')::int AS max_connections,
    (SELECT count(*) FROM pg_catalog.pg_stat_activity AS a WHERE a.datid = d.oid) AS connections
FROM pg_catalog.pg_database AS d WHERE d.datname = current_database()
"""
# Paths of files, commands, and addresses between servers are left out.
_SETTINGS = """
SELECT name, setting, unit, category, source <> 'default' AS changed
FROM pg_catalog.pg_settings
WHERE name !~ 'file|director|command|conninfo|passphrase|librar|socket|listen_|krb|ident|secret|password|_path|slot'
    AND category !~ 'Preset|Customized'
ORDER BY name
"""
_ACTIVITY = """
SELECT pid, usename AS role, application_name AS application, backend_type AS kind, state,
    wait_event_type, wait_event, state_change AS since, pg_catalog.left(query, 500) AS query
FROM pg_catalog.pg_stat_activity
WHERE datname = current_database() AND pid <> pg_catalog.pg_backend_pid()
ORDER BY state_change DESC NULLS LAST
"""
_REPLICATION = """
SELECT application_name AS application, state, sync_state, sent_lsn::text AS sent, replay_lsn::text AS replayed,
    pg_catalog.pg_wal_lsn_diff(sent_lsn, replay_lsn) AS behind_bytes, replay_lag::text AS replay_lag
FROM pg_catalog.pg_stat_replication
ORDER BY application_name
"""

REPORTS: Final[Mapping[str, Report]] = {
    "system_info": Report(description="The server's version, encoding, start, size and connections.", sql=_SYSTEM_INFO),
    "settings": Report(description="The server's settings, without paths and addresses.", sql=_SETTINGS),
    "replication": Report(description="The state of the server's replicas.", sql=_REPLICATION),
    "activity": Report(
        description="What runs on the database now, with the SQL of others.", sql=_ACTIVITY, opt_in=True
    ),
}
