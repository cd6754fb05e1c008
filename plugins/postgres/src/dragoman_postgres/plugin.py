"""The plugin: creates PostgreSQL's executor, inspector and validators. `dialect` describes it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from dragoman import AuditStore, Database, DialectPlugin, Executor, Inspector, Validator, hookimpl

from dragoman_postgres.connecting import Cluster
from dragoman_postgres.dialect import DIALECT
from dragoman_postgres.executor import PostgresExecutor
from dragoman_postgres.gate import PostgresGate
from dragoman_postgres.inspector import PostgresInspector
from dragoman_postgres.pool import Connections
from dragoman_postgres.search_path import SearchPath

CATALOG_CONNECTIONS = 2
"""Connections for reading the catalog: callers' slow queries must not delay it."""


class CatalogReader(PostgresInspector):
    """The inspector, with connections of its own, which look names up as the executor's do, in the same cluster."""

    def __init__(self, database: Database, path: SearchPath, cluster: Cluster) -> None:
        self.connections = Connections(database, CATALOG_CONNECTIONS, path=path, cluster=cluster)
        super().__init__(database, self.connections)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.connections.aclose()


class PostgresPlugin(DialectPlugin):
    """PostgreSQL 13 and later, read only."""

    dialect = DIALECT

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """Return the executor: a pool of connections."""
        return PostgresExecutor(database)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector, with connections of its own."""
        assert isinstance(executor, PostgresExecutor)  # the core passes each plugin what it returned
        return CatalogReader(database, executor.path, executor.cluster)

    @hookimpl
    def validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return the gate, which asks the catalog over the connections of the inspector made above."""
        assert isinstance(inspector, CatalogReader)  # as above
        return (PostgresGate(database, inspector),)

    def audit_store(self, database: Database) -> AuditStore:
        """Return the table of the audit's records."""
        from dragoman_postgres.audit import PostgresAudit

        return PostgresAudit(database)

    def demo(self, folder: Path) -> Sequence[Database]:
        """Build a shop's support desk on the embedded server; nothing if that is not installed."""
        from dragoman_postgres.demo import build

        return build(folder)


plugin = PostgresPlugin()
