"""Functions that the role may call and that do more than compute.

Also differences between the shipped lists and the server's functions.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import asyncpg
from dragoman import Finding

from dragoman_postgres.doctor.grants import some
from dragoman_postgres.doctor.roles import Examined, Severity
from dragoman_postgres.rules import inventory, load_allowed
from dragoman_postgres.rules.policy import fits, read_policy


@dataclass(frozen=True, slots=True)
class Acting:
    """Functions that act: patterns of their names, their extension ('' is the server itself), and what they do."""

    severity: Severity
    subject: str
    extension: str
    names: str
    does: str


_FILES = "read and write files of the server's machine"
_ELSEWHERE = "reach other servers"
_LATER = "run statements in sessions of their own, which no transaction of the gateway bounds"

# What everybody may call on a fresh server is a warning. Anything else was granted or installed by somebody.
_ACTING = (
    Acting(
        "danger",
        "server_files",
        "",
        "pg_read_file pg_read_binary_file pg_ls_dir pg_stat_file lo_import lo_export",
        _FILES,
    ),
    Acting(
        "danger",
        "administration",
        "",
        "pg_reload_conf pg_rotate_logfile pg_promote pg_switch_wal pg_create_restore_point pg_backup_start"
        " pg_start_backup pg_wal_replay_* pg_stat_reset*",
        "administer the server",
    ),
    Acting("danger", "server_files", "adminpack", "*", _FILES),
    Acting(
        "danger",
        "other_servers",
        "dblink",
        "dblink dblink_connect* dblink_exec dblink_open dblink_send_query",
        _ELSEWHERE,
    ),
    Acting("danger", "other_servers", "http", "http*", _ELSEWHERE),
    Acting("danger", "other_servers", "pg_net", "http*", _ELSEWHERE),
    Acting("danger", "other_servers", "aws_s3", "*", _ELSEWHERE),
    Acting("danger", "other_servers", "aws_lambda", "*", _ELSEWHERE),
    Acting("danger", "other_servers", "azure_storage", "*", _ELSEWHERE),
    Acting("danger", "other_sessions", "pg_background", "*", _LATER),
    Acting("danger", "other_sessions", "pg_cron", "schedule* unschedule alter_job", _LATER),
    Acting(
        "warning",
        "large_objects",
        "",
        "lo_creat lo_create lo_from_bytea lo_put lo_unlink lowrite lo_truncate lo_truncate64",
        "store large objects, before PostgreSQL 16 even in a read-only transaction",
    ),
    Acting(
        "warning",
        "advisory_locks",
        "",
        "pg_advisory_lock* pg_advisory_xact_lock* pg_try_advisory_*",
        "take locks that applications wait for, and that a rollback does not always end",
    ),
    Acting(
        "warning",
        "log_messages",
        "",
        "pg_logical_emit_message",
        "write to the server's write-ahead log, even in a read-only transaction",
    ),
)

_CALLABLE = """
SELECT format('%I.%I(%s)', n.nspname, p.proname, pg_get_function_identity_arguments(p.oid)) AS signature,
  n.nspname::text AS schema, p.proname::text AS name, coalesce(e.extname::text, '') AS extension,
  p.prosecdef AS definer, p.proowner = ANY ($1) AS own, l.lanname::text AS language, l.lanpltrusted AS trusted,
  p.provolatile = 'v' AS volatile,
  ARRAY(SELECT a.grantee FROM aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
        WHERE a.grantee = ANY ($1) AND a.grantee <> p.proowner AND a.privilege_type = 'EXECUTE') AS grantees
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace JOIN pg_language l ON l.oid = p.prolang
LEFT JOIN pg_depend d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND d.deptype = 'e'
LEFT JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass
WHERE has_function_privilege(session_user, p.oid, 'EXECUTE') AND has_schema_privilege(session_user, n.oid, 'USAGE')
  AND p.prorettype <> ALL ('{internal,trigger,event_trigger,fdw_handler,language_handler,index_am_handler}'::regtype[])
  AND CASE WHEN $2 THEN n.nspname = 'pg_catalog' OR e.oid IS NOT NULL
      ELSE n.nspname NOT IN ('pg_catalog', 'information_schema') AND e.oid IS NULL
        -- What CREATE TYPE ... AS RANGE makes beside the type.
        AND (l.lanname <> 'internal' OR p.prosrc !~ '^(multi)?range_constructor[0-3]$')
        -- An aggregate does what its functions do, with its owner's right to call them. Those of the server and of
        -- extensions that the role may call itself are found as such.
        AND (p.prokind <> 'a' OR EXISTS (
          SELECT FROM pg_aggregate g JOIN pg_proc s ON s.oid = ANY (ARRAY[g.aggtransfn, g.aggfinalfn, g.aggcombinefn,
            g.aggserialfn, g.aggdeserialfn, g.aggmtransfn, g.aggminvtransfn, g.aggmfinalfn]::oid[])
          JOIN pg_language sl ON sl.oid = s.prolang
          WHERE g.aggfnoid = p.oid AND (s.prosecdef OR NOT sl.lanpltrusted)
            AND NOT (has_function_privilege(session_user, s.oid, 'EXECUTE') AND (s.oid < 16384 OR EXISTS (
              SELECT FROM pg_depend m
              WHERE m.classid = 'pg_proc'::regclass AND m.objid = s.oid AND m.deptype = 'e'))))) END
ORDER BY 1
"""
_C = ("c", "internal")


async def functions_that_act(examined: Examined) -> list[Finding]:
    """Return functions of the server and its extensions that act and that the role may call."""
    rows = await examined.connection.fetch(_CALLABLE, examined.roles.grantees, True)
    found: dict[tuple[Severity, str, str], list[asyncpg.Record]] = defaultdict(list)
    for row in rows:
        for acting in _ACTING:
            if row["extension"] == acting.extension and fits(row["name"], acting.names.split()):
                found[acting.severity, acting.subject, acting.does].append(row)
    me = examined.roles.me.name
    return [
        Finding(
            severity=severity,
            subject=subject,
            message=f"The role {me} may call functions that {does}: {some(row['name'] for row in group)}.",
            remedy=_closing(examined, group),
        )
        for (severity, subject, does), group in found.items()
    ]


def _closing(examined: Examined, functions: Iterable[asyncpg.Record]) -> str:
    """Return one REVOKE statement for each grantee of the functions."""
    by_grantee: dict[int, list[str]] = defaultdict(list)
    for function in functions:
        for grantee in function["grantees"]:
            by_grantee[grantee].append(function["signature"])
    return examined.roles.closing(
        (f"EXECUTE ON ROUTINE {', '.join(signatures)}", grantee) for grantee, signatures in by_grantee.items()
    )


async def functions_with_others_rights(examined: Examined) -> list[Finding]:
    """Return functions of users that run with more rights than the role has, and allowed functions that may act."""
    rows = await examined.connection.fetch(_CALLABLE, examined.roles.grantees, False)
    return [*_borrowing(examined, [row for row in rows if not row["own"]]), *_report_trusted(examined, rows)]


def _borrowing(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[Finding]:
    me = examined.roles.me.name
    for subject, does, group in (
        ("security_definer", "run with their owners' rights", [row for row in rows if row["definer"]]),
        (
            "untrusted_functions",
            "run outside the database's rules",
            [row for row in rows if not row["definer"] and (not row["trusted"] or row["language"] in _C)],
        ),
    ):
        # The administrator has reviewed what the configuration names.
        for named in (False, True):
            if chosen := [row for row in group if _is_allowed(examined, row) == named]:
                yield Finding(
                    severity="warning" if named else "danger",
                    subject=subject,
                    message=f"The role {me} may call functions that {does}: {some(map(_qualify, chosen))}.",
                    remedy=_closing(examined, chosen),
                )


def _report_trusted(examined: Examined, rows: list[asyncpg.Record]) -> Iterator[Finding]:
    acting = [row for row in rows if row["volatile"] and not row["definer"] and _is_allowed(examined, row)]
    if acting:
        yield Finding(
            severity="warning",
            subject="allowed_functions",
            message=f"The configuration allows functions that are declared VOLATILE: {some(map(_qualify, acting))}.",
            remedy="Declare those that only read STABLE or IMMUTABLE, and remove the others from"
            f" databases.{examined.database.name}.allow_functions.",
        )


def _qualify(row: asyncpg.Record) -> str:
    return f"{row['schema']}.{row['name']}"


def _is_allowed(examined: Examined, row: asyncpg.Record) -> bool:
    return bool(examined.database.allow_functions & {row["name"], _qualify(row)})


async def lists_that_differ(examined: Examined) -> list[Finding]:
    """Return functions of this server that the shipped lists lack, and listed ones that are declared VOLATILE here."""
    policy = read_policy()
    shipped = load_allowed()
    here = await inventory.own(examined.connection, policy)
    findings: list[Finding] = []
    if unknown := sorted(here["functions"] - shipped.functions):
        findings.append(
            Finding(
                severity="note",
                subject="unlisted_functions",
                message=f"This server has functions that were not reviewed yet and are refused: {some(unknown)}.",
                remedy="Upgrade dragoman-postgres; until then allow those that are needed by"
                f" databases.{examined.database.name}.allow_functions.",
            )
        )
    if changed := sorted(here["refused"] & shipped.functions - here["types"]):
        findings.append(
            Finding(
                severity="warning",
                subject="changed_functions",
                message=f"The lists allow functions that this server declares VOLATILE: {some(changed)}.",
                remedy="Report it to dragoman-postgres: a later server changed what they do.",
            )
        )
    return findings
