"""The sinks of the audit's records: files, a table of a database, both or none."""

from __future__ import annotations

import asyncio
import logging

from dragoman.audit import AuditFile, StoredAudit
from dragoman.config import Audit
from dragoman.dialect import AuditStore
from dragoman.errors import ConfigurationError, DragomanError

_log = logging.getLogger(__name__)


class Sinks:
    """The audit's `file` and table (`stored`); None where the settings name none.

    `store`: the table in the audit's database. Raises `ConfigurationError` if the files cannot be written.
    """

    def __init__(self, audit: Audit, store: AuditStore | None = None) -> None:
        self.audit = audit
        self.file = _open_file(audit)
        self.stored = StoredAudit(store) if store is not None else None
        self.notes: set[asyncio.Task[str]] = set()

    async def open(self) -> None:
        """Open the database.

        Raises `ConfigurationError` if it cannot hold every record, or if the audit is required and it cannot be used.
        """
        if self.stored is None:
            return
        try:
            await self.stored.open()
        except DragomanError as error:
            if self.audit.required or isinstance(error, ConfigurationError):
                raise ConfigurationError(f"audit.url: {error.message}", suggestion=error.suggestion) from None
            _log.error("the audit's database cannot be used: %s", error.message)

    async def aclose(self) -> None:
        """Write waiting records, and close both."""
        if self.file is not None:
            self.file.close()
        if self.stored is None:
            return
        await asyncio.gather(*self.notes)
        try:
            await self.stored.aclose()
        except DragomanError as error:
            _log.error("closing the audit's database failed: %s", error.message)


def _open_file(audit: Audit) -> AuditFile | None:
    if audit.path is None:
        return None
    try:
        file = AuditFile(audit.path)
        file.open()
    except OSError as error:
        raise ConfigurationError(
            f"audit.path: {audit.path} cannot be written ({error.strerror}).",
            suggestion="Name a folder that only the gateway's user may write to.",
        ) from None
    return file
