"""Runs callers' SQL in worker processes that can be killed, and hands their rows on as they come: already encoded."""

from __future__ import annotations

import stat
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Any

import dragoman
from dragoman import (
    Column,
    ConnectionFailed,
    Database,
    DragomanError,
    Encoded,
    Executor,
    ExplainOptions,
    Finding,
    InternalError,
    Plan,
    Request,
    ResultTooLarge,
    RowStream,
)

from dragoman_sqlite.doctor import examine
from dragoman_sqlite.frames import Columns, Failed, Report, Rows, Run, Setup, Told
from dragoman_sqlite.options import Options
from dragoman_sqlite.pool import NoWorker, Pool, TooLong, Worker, WorkerDied
from dragoman_sqlite.values import storable

MEBIBYTE = 1024 * 1024


class SQLiteExecutor(Executor):
    """Reads one database file; starts no process before the first statement."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._path = file_of(database)
        options = Options(**database.options)
        setup = Setup(
            path=str(self._path),
            functions=sorted(database.allow_functions),
            memory=options.memory_mb * MEBIBYTE,
            length=options.max_value_kb * 1024,
        )
        self._pool = Pool(setup, database.pool_size)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncGenerator[RowStream]:
        """Run a statement in a worker; leaving interrupts it, and kills the worker when that does not help."""
        order = _order(request)
        async with self._worker(order) as worker:
            worker.send(order)
            columns = _columns(await self._next(worker))
            async with aclosing(self._batches(worker, columns)) as batches:
                yield RowStream(columns, batches)

    async def _batches(self, worker: Worker, columns: list[Column]) -> AsyncGenerator[Encoded]:
        """Rows as they come; types that are only seen in them come just before."""
        while not worker.idle:
            match await self._next(worker):
                case Rows(json, count, notices, oversized):
                    yield Encoded(json, count, notices, oversized)
                case Columns() as seen:
                    columns[:] = _columns(seen)
                case _:
                    pass

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return a query's columns: SQLite knows the types of those that are a table's."""
        return _columns(await self._ask(_order(request, task="columns")))

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return EXPLAIN QUERY PLAN, with the bytecode when verbose; SQLite estimates neither cost nor rows."""
        report = await self._ask(_order(request, task="plan", analyze=options.analyze, verbose=options.verbose))
        assert isinstance(report, Told)
        text = options.format == "text"
        return Plan(
            plan=plan_text(report) if text else plan_tree(report),
            format=options.format,
            actual_time_ms=report.elapsed_ms,
            warnings=tuple(report.warnings),
            notices=("SQLite does not count buffers.",) if options.buffers else (),
        )

    async def doctor(self) -> Sequence[Finding]:
        """Return what could happen to the file if every guard failed; nothing is opened for it but the file."""
        check_file(self._path, self._database.name)
        return examine(self._database, self._path)

    async def aclose(self) -> None:
        """End the workers."""
        await self._pool.aclose()

    async def _ask(self, order: Run) -> Report:
        async with self._worker(order) as worker:
            worker.send(order)
            report = await self._next(worker)
            await self._next(worker)
            return report

    @asynccontextmanager
    async def _worker(self, order: Run) -> AsyncGenerator[Worker]:
        name = self._database.name
        check_file(self._path, name)
        try:
            async with self._pool.worker(order.timeout) as worker:
                yield worker
        except NoWorker:
            raise _unreachable(
                name, "no process that reads it can be started", "Raise the limits of processes, files and memory."
            ) from None

    async def _next(self, worker: Worker) -> Report:
        try:
            report = await worker.next()
        except WorkerDied:
            raise _explain_death(worker) from None
        except TooLong:
            raise ResultTooLarge("The answer is far larger than it may be; it was not read.") from None
        if isinstance(report, Failed):
            raise self._error(report)
        return report

    def _error(self, failed: Failed) -> DragomanError:
        kind: type[DragomanError] = getattr(dragoman, failed.error, InternalError)
        message = failed.message
        if kind is ConnectionFailed:
            message = f"The database {self._database.name!r} cannot be read: {message}."
        return kind(message, suggestion=failed.suggestion, identifier=failed.identifier, offset=failed.offset)


def _order(request: Request, **more: Any) -> Run:
    limits = request.limits
    parameters = storable(request.parameters)
    return Run(request.statement, parameters, limits.max_rows, limits.max_bytes, limits.timeout, **more)


def _columns(report: Report) -> list[Column]:
    assert isinstance(report, Columns)
    return [Column(name, type or "any") for name, type in zip(report.names, report.types, strict=True)]


def plan_text(told: Told) -> str:
    """The steps as an indented tree, as SQLite's shell prints them, and the bytecode below."""
    depth = {0: -1}
    lines: list[str] = []
    for step, parent, detail in told.steps:
        depth[step] = depth.get(parent, -1) + 1
        lines.append("  " * depth[step] + detail)
    bytecode = ["", "addr opcode p1 p2 p3 p4 p5 comment", *(" ".join(map(str, row)) for row in told.bytecode)]
    return "\n".join(lines + (bytecode if told.bytecode else []))


def plan_tree(told: Told) -> list[dict[str, Any]] | dict[str, Any]:
    """The steps as nested objects with `detail` and `steps`; with bytecode, an object of both."""
    nodes: dict[int, dict[str, Any]] = {0: {"steps": []}}
    for step, parent, detail in told.steps:
        nodes[step] = {"detail": detail}
        nodes.get(parent, nodes[0]).setdefault("steps", []).append(nodes[step])
    tree: list[dict[str, Any]] = nodes[0]["steps"]
    return {"plan": tree, "bytecode": told.bytecode} if told.bytecode else tree


def file_of(database: Database) -> Path:
    """The database's file: relative paths start at the configuration's folder."""
    return Path(database.folder, database.database or "").absolute()


def check_file(path: Path, name: str) -> None:
    """Raise `ConnectionFailed`, which never shows the path, unless `path` is a file: opening a pipe would block."""
    try:
        str(path).encode()  # SQLite takes names in UTF-8 alone
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise _unreachable(
            name, "its file does not exist", "Check `url`; a relative path starts at the configuration's folder."
        ) from None
    except OSError:
        raise _unreachable(
            name, "its file may not be read", "Check the permissions of the file and its folders."
        ) from None
    except ValueError:
        raise _unreachable(name, "its path holds what no path of SQLite's can", "Check `url`.") from None
    if not stat.S_ISREG(mode):
        raise _unreachable(name, "its path is not a file", "Check `url`.")


def _explain_death(worker: Worker) -> DragomanError:
    if not worker.proven:
        return InternalError(
            "The process that runs SQLite queries does not start.", suggestion="Reinstall dragoman-sqlite."
        )
    return ResultTooLarge(
        "The query's process ended; most likely it took more memory than a query may take.",
        suggestion="Make its values or intermediate results smaller.",
    )


def _unreachable(name: str, why: str, remedy: str) -> ConnectionFailed:
    return ConnectionFailed(f"The database {name!r} cannot be read: {why}.", suggestion=remedy)
