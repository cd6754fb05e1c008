"""The audit's record of a call, written before its answer leaves."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from dragoman.audit import AuditFile, Record, encode, moment
from dragoman.config import Audit
from dragoman.errors import ConfigurationError, InternalError, Refused

if TYPE_CHECKING:
    from dragoman.gateway.calls import CallRecord

_log = logging.getLogger(__name__)
_SQL = ("sql", "params")
_VALUES = ("params", "key")
_LONGEST = 65536
"""Characters of a statement that are kept: what is longer is never run."""
_LARGEST = 8 * _LONGEST
_REFUSED = frozenset(
    {kind.code for kind in Refused.__subclasses__()} | {"PERMISSION_DENIED", "QUOTA_EXCEEDED", "COST_EXCEEDED"}
)


class Recorder:
    """Writes the audit as it is configured. Raises `ConfigurationError` when its files cannot be written at all."""

    def __init__(self, audit: Audit) -> None:
        self._audit = audit
        self._file = _opened(audit)
        self._calls = count(1)
        self._process = os.urandom(6).hex()

    def close(self) -> None:
        """Close the files."""
        if self._file is not None:
            self._file.close()

    def record(self, call: CallRecord) -> None:
        """Record a call that is over. Raises `InternalError` when that fails and the audit is required."""
        if self._file is None:
            return
        try:
            call.audit = str(self._file.append(_encoded(self._told(call))))
        except OSError as error:
            _log.error("the audit record of a call could not be written: %s", error.strerror)
            if self._audit.required:
                call.outcome = InternalError.code
                raise InternalError(
                    "The call could not be recorded, and so is not answered.",
                    suggestion="Tell the administrator that the audit cannot be written.",
                ) from None

    def _told(self, call: CallRecord) -> Record:
        who, full = call.principal, self._audit.text == "full"
        return Record(
            ts=moment(time.time()),
            call=f"{self._process}-{next(self._calls)}",
            principal=who.name,
            issuer=who.issuer,
            subject=who.subject,
            client=who.client,
            token=who.token,
            database=call.database or "",
            tool=call.tool,
            hash=(call.hash or _hash(call.sql)) if self._audit.text != "off" else "",
            sql=call.sql[:_LONGEST] if full else "",
            params=list(call.params) if self._audit.values and call.params else None,
            arguments=self._arguments(call) if full else None,
            relations=tuple(dict.fromkeys(call.relations)),
            columns=tuple(dict.fromkeys(call.columns)),
            verdict="refused" if call.outcome in _REFUSED else "allowed",
            rows=call.rows,
            bytes=call.bytes,
            ms=call.ms,
            outcome=call.outcome,
            trace=call.trace,
        )

    def _arguments(self, call: CallRecord) -> dict[str, Any] | None:
        hidden = _SQL if self._audit.values else (*_SQL, *_VALUES)
        given = call.arguments if isinstance(call.arguments, Mapping) else {}
        return {name: value for name, value in given.items() if name not in hidden and value is not None} or None


def _encoded(record: Record) -> bytes:
    """Return a record as JSON; what a caller sent and JSON cannot hold, or is too long, is kept as plain text, cut."""
    try:
        body = encode(record)
        if len(body) < _LARGEST:
            return body
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    record.sql, record.params = ascii(record.sql)[:_LONGEST], None
    record.arguments = {"text": _plain(record.arguments)[:_LONGEST]}
    for name in ("principal", "issuer", "subject", "client", "database", "tool", "trace"):
        setattr(record, name, ascii(getattr(record, name))[1:-1])
    return encode(record)


def _plain(arguments: Any) -> str:
    try:
        return ascii(arguments)
    except RecursionError:
        return "..."


def _opened(audit: Audit) -> AuditFile | None:
    if audit.path is None:
        return None
    try:
        file = AuditFile(audit.path)
        file.open()
    except OSError as error:
        raise ConfigurationError(
            f"audit.path: {audit.path} cannot be written ({error.strerror}).",
            suggestion="Name a folder that only the gateway's user may write.",
        ) from None
    return file


def _hash(sql: str) -> str:
    return hashlib.sha256(sql.encode(errors="surrogatepass")).hexdigest()[:16] if sql else ""
