"""The plugin: describes SQLite and creates its executor and inspector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import AuditStore, Capability, Database, Dialect, DialectPlugin, Executor, Inspector, hookimpl

from dragoman_sqlite.confining import MASKS, confine
from dragoman_sqlite.executor import SQLiteExecutor
from dragoman_sqlite.gate import read
from dragoman_sqlite.inspector import SQLiteInspector
from dragoman_sqlite.options import Options
from dragoman_sqlite.reserved import RESERVED
from dragoman_sqlite.rules import LEXICON, RULES

CAPABILITIES = frozenset(
    {
        Capability.READ_ONLY_SESSION,
        Capability.CANCEL,
        Capability.PARAMETERS,
        Capability.EXPLAIN,
        Capability.ANALYZE,
        Capability.DESCRIBE,
        Capability.PRIMARY_KEYS,
        Capability.FOREIGN_KEYS,
        Capability.INDEXES,
        Capability.ROW_ESTIMATES,
        Capability.STATISTICS,
        Capability.GRAMMAR,
    }
)


def _rewrite(tree: Any) -> Any:
    from dragoman_sqlite.rewrite import rewrite  # sqlglot is slow to import, and few queries need it

    return rewrite(tree)


class SQLitePlugin(DialectPlugin):
    """SQLite files, read only."""

    dialect = Dialect(
        name="sqlite",
        contract=1,
        sqlglot="sqlite",
        driver="apsw",
        capabilities=CAPABILITIES,
        lexicon=LEXICON,
        rules=RULES,
        options=Options,
        open_options=frozenset({"memory_mb", "max_value_kb"}),
        folding="insensitive",
        ascii_folding=True,
        reserved=RESERVED,
        implicit_columns=frozenset({"rowid", "oid", "_rowid_"}),
        default_schema="main",
        only_schema=True,
        foreign_tables=False,
        rewrite=_rewrite,
        read=read,
        confine=confine,
        masks=MASKS,
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """Return the executor, which uses worker processes that can be killed."""
        return SQLiteExecutor(database)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector.

        It opens short connections of its own, and asks the executor where Python's SQLite is too old.
        """
        return SQLiteInspector(database, executor)

    def audit_store(self, database: Database) -> AuditStore:
        """Return the table for the audit's records."""
        from dragoman_sqlite.audit import SQLiteAudit

        return SQLiteAudit(database)

    def demo(self, folder: Path) -> Sequence[Database]:
        """Build a shop and its warehouse."""
        from dragoman_sqlite.demo import build

        return build(folder)


plugin = SQLitePlugin()
