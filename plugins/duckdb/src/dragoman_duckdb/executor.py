"""Runs statements in worker processes that can be killed: an engine in C++ may ignore an interrupt."""

from __future__ import annotations

from pathlib import Path

import dragoman
from dragoman import Column, Database, ExplainOptions, Plan, Request
from dragoman.workers import Columns, Told, WorkerExecutor

from dragoman_duckdb.frames import Setup
from dragoman_duckdb.options import Options
from dragoman_duckdb.schemas import home_of, open_schemas
from dragoman_duckdb.types import columns


class DuckDBExecutor(WorkerExecutor):
    """Reads one DuckDB file, or the Parquet and CSV files of one folder."""

    def __init__(self, database: Database) -> None:
        self._path = file_of(database)
        options = Options(**database.options)
        setup = Setup(
            path=str(self._path),
            memory=options.memory_mb,
            threads=options.threads,
            home=home_of(database),
            schemas=open_schemas(database),
            functions=tuple(map(str.lower, database.allow_functions)),
        )
        super().__init__(database, "dragoman_duckdb.worker", setup)

    def check(self) -> None:
        """Check that the file or folder exists: opening a pipe would block."""
        try:
            usable = self._path.is_file() or self._path.is_dir()
        except (OSError, ValueError):
            usable = False
        if not usable:
            raise self.unreachable(
                "there is no such file or folder", "Check `url`; a relative path starts at the configuration's folder."
            )

    def columns(self, report: Columns) -> list[Column]:
        """Return columns from a report. DuckDB knows every type."""
        return columns(report.names, report.types)

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return the plan as DuckDB draws it, or as JSON."""
        if options.analyze:
            raise dragoman.Unsupported("This dialect returns plans only without running the query.")
        report = await self.ask(self.order(request, task="plan", verbose=options.format != "text"))
        assert isinstance(report, Told)
        return Plan(plan=report.plan, format=options.format)


def file_of(database: Database) -> Path:
    """Return the database's file or folder. Relative paths start at the configuration's folder."""
    return Path(database.folder, database.database or "").absolute()
