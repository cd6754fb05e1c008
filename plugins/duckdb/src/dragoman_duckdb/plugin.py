"""The plugin: describes DuckDB and creates its executor and inspector."""

from __future__ import annotations

from typing import Any

import dragoman
from dragoman import Capability, Database, Executor, Inspector, hookimpl

from dragoman_duckdb.executor import DuckDBExecutor, file_of
from dragoman_duckdb.inspector import DuckDBInspector
from dragoman_duckdb.options import Options
from dragoman_duckdb.rules import MISREAD, RESERVED, RULES


def _rewrite(tree: Any) -> Any:
    from dragoman_duckdb.rewrite import rewrite  # sqlglot is slow to import, and few queries need it

    return rewrite(tree)


class DuckDBPlugin(dragoman.DialectPlugin):
    """DuckDB files, and folders of Parquet and CSV files."""

    dialect = dragoman.Dialect(
        name="duckdb",
        contract=1,
        sqlglot="duckdb",
        driver="duckdb",
        capabilities=frozenset(
            {
                Capability.READ_ONLY_SESSION,
                Capability.CANCEL,
                Capability.PARAMETERS,
                Capability.EXPLAIN,
                Capability.DESCRIBE,
                Capability.PRIMARY_KEYS,
                Capability.FOREIGN_KEYS,
                Capability.INDEXES,
                Capability.COMMENTS,
                Capability.ROW_ESTIMATES,
                Capability.STATISTICS,
                Capability.ARRAYS,
                Capability.NESTED,
            }
        ),
        lexicon=dragoman.Lexicon(
            escape_strings=True,
            dollar_quotes=True,
            nested_comments=True,
            colon_casts=True,
            outer_members=True,
            marks="{}:",
        ),
        rules=RULES,
        rewrite=_rewrite,
        options=Options,
        open_options=frozenset({"memory_mb", "threads"}),
        folding="insensitive",
        ascii_folding=True,
        reserved=RESERVED,
        misread=MISREAD,
        implicit_columns=frozenset({"rowid"}),
        default_schema="main",
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """Return the executor, which uses worker processes."""
        return DuckDBExecutor(database)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector, which asks through the executor."""
        return DuckDBInspector(executor, file_of(database), database)


plugin = DuckDBPlugin()
