"""DuckDB for dragoman: a file opened read-only, cut off from every other file, from the network and from extensions."""

import re
from dataclasses import dataclass

import dragoman
from dragoman import Capability, Database, Executor, Inspector, hookimpl

from dragoman_duckdb.executor import DuckDBExecutor
from dragoman_duckdb.inspector import DuckDBInspector
from dragoman_duckdb.rules import RESERVED, RULES

_SIZE = re.compile(r"\d+(\.\d+)? ?([KMGT]i?B|%)")


@dataclass(frozen=True)
class Options:
    """What `databases.NAME.options` may hold: the most memory all queries take together, and how many threads."""

    memory_limit: str = "1GB"
    threads: int = 2

    def __post_init__(self) -> None:
        if not _SIZE.fullmatch(self.memory_limit) or self.threads < 1:
            raise dragoman.ConfigurationError(
                "DuckDB's options are memory_limit, such as 500MB or 2GiB, and threads, at least 1."
            )


class DuckDBPlugin(dragoman.DialectPlugin):
    """What dragoman asks for when a DuckDB file is opened."""

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
        lexicon=dragoman.Lexicon(escape_strings=True, dollar_quotes=True, nested_comments=True, colon_casts=True),
        rules=RULES,
        options=Options,
        folding="insensitive",
        ascii_folding=True,
        reserved=RESERVED,
        implicit_columns=frozenset({"rowid"}),
        default_schema="main",
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """As the base class says."""
        return DuckDBExecutor(database)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """As the base class says."""
        return DuckDBInspector(executor)


plugin = DuckDBPlugin()
