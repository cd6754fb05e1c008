"""The executor of a dialect whose statements run in worker processes. Their rows arrive encoded."""

from __future__ import annotations

import abc
from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, cast

import msgspec

from dragoman import errors
from dragoman.dialect import Executor
from dragoman.errors import ConnectionFailed, DragomanError, InternalError, ParameterError, ResultTooLarge
from dragoman.model import Column, Database, Encoded, Request, RowStream
from dragoman.pool import Pool
from dragoman.workers.frames import Columns, Failed, Report, Rows, Run
from dragoman.workers.process import TooLong, Worker, WorkerDied, Workers


class WorkerExecutor(Executor):
    """Runs statements in processes of `module` and sends each of them `setup` first.

    Starts none before the first statement.
    """

    def __init__(self, database: Database, module: str, setup: msgspec.Struct) -> None:
        self.database = database
        self._pool = Pool(
            Workers(module, setup, self.unreachable, self.unstartable),
            database.pool_size,
            "processes for queries of this database",
        )

    @abc.abstractmethod
    def check(self) -> None:
        """Raise `ConnectionFailed` if no process can read the database. Called before each statement."""

    @abc.abstractmethod
    def columns(self, report: Columns) -> list[Column]:
        """Return columns from a process's report."""

    def order(self, request: Request, **more: Any) -> Run:
        """Return the order to send to a process. `more`: further fields of it."""
        limits = request.limits
        reads = None if request.reads is None else [relation.parts for relation in request.reads]
        return Run(
            request.statement,
            self.parameters(request.parameters) if request.parameters else [],
            limits.max_rows,
            limits.max_bytes,
            limits.timeout,
            reads=reads,
            types=request.types,
            **more,
        )

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        """Return a statement's parameters as they are sent: by default unchanged.

        Raises `ParameterError` for an integer that cannot be sent.
        """
        _check_integers(values)
        return list(values)

    @asynccontextmanager
    async def open(self, request: Request) -> AsyncGenerator[RowStream]:
        """Run a statement in a process. Leaving interrupts it, and kills the process if that does not help."""
        self.check()
        order = self.order(request)
        async with self._pool.lend(order.timeout) as worker:
            worker.send(order)
            report = await self.next(worker)
            assert isinstance(report, Columns)  # a process reports the columns first
            columns = self.columns(report)
            async with aclosing(self._batches(worker, columns)) as batches:
                yield RowStream(columns, batches)

    async def _batches(self, worker: Worker, columns: list[Column]) -> AsyncGenerator[Encoded]:
        """Yield rows as they arrive. Types that only the rows show are set just before them."""
        while not worker.idle:
            match await self.next(worker):
                case Rows(json, count, notices, oversized, octets):
                    yield Encoded(json, count, notices, oversized, octets)
                case Columns() as seen:
                    columns[:] = self.columns(seen)
                case _:
                    pass

    async def describe(self, request: Request) -> Sequence[Column]:
        """Return the columns of a query."""
        report = await self.ask(self.order(request, task="columns"))
        assert isinstance(report, Columns)
        return self.columns(report)

    async def ask(self, order: Run) -> Report:
        """Return the single report that a process sends in answer to an order."""
        self.check()
        async with self._pool.lend(order.timeout) as worker:
            worker.send(order)
            report = await self.next(worker)
            await self.next(worker)
            return report

    async def next(self, worker: Worker) -> Report:
        """Return the next report of a process. Raises the error that occurred there."""
        try:
            report = await worker.next()
        except WorkerDied:
            raise ResultTooLarge(
                "The query's process ended, most likely because it took more memory than a query may take.",
                suggestion="Make its values or intermediate results smaller.",
            ) from None
        except TooLong:
            raise ResultTooLarge("The answer is far larger than it may be; it was not read.") from None
        if isinstance(report, Failed):
            raise self._error(report)
        return report

    def _error(self, failed: Failed) -> DragomanError:
        kind: type[DragomanError] = getattr(errors, failed.error, InternalError)
        message = failed.message
        if kind is ConnectionFailed:
            message = f"The database {self.database.name!r} cannot be read: {message}."
        error = kind(message, suggestion=failed.suggestion, identifier=failed.identifier, offset=failed.offset)
        if isinstance(error, ConnectionFailed):
            error.reached = failed.reached
        return error

    def unstartable(self) -> InternalError:
        """Return the error for a process that ends before it is ready."""
        dialect = self.database.dialect
        return InternalError(
            f"The process that runs queries of {dialect} does not start.", suggestion=f"Reinstall dragoman-{dialect}."
        )

    def unreachable(self, why: str, remedy: str) -> ConnectionFailed:
        """Return the error for a database that cannot be read. `why` holds no path."""
        return ConnectionFailed(f"The database {self.database.name!r} cannot be read: {why}.", suggestion=remedy)

    async def aclose(self) -> None:
        """End the processes."""
        await self._pool.aclose()


def _check_integers(values: Iterable[Any]) -> None:
    """Raise `ParameterError` for an integer of more than 64 bits, which cannot be sent to a process."""
    for value in values:
        if isinstance(value, int) and not -(2**63) <= value < 2**64:
            raise ParameterError(
                "An integer parameter has more than 64 bits.",
                suggestion="Send it as a text and cast it in the statement, for instance CAST($1 AS DECIMAL(38, 0)).",
            )
        if isinstance(value, list | tuple):
            _check_integers(cast(Iterable[Any], value))
        elif isinstance(value, Mapping):
            _check_integers(value.values())  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
