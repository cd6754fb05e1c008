"""Statements without blocking the event loop."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from dragoman import Database, QueryTimeout

from dragoman_trino.connecting import Connector
from dragoman_trino.failures import translated
from dragoman_trino.protocol import Exchange
from dragoman_trino.workers import Workers

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of one answer to a statement of ours."""


class Client:
    """Statements of ours to one server: what the catalog is read with. Callers' run in the executor."""

    def __init__(self, database: Database) -> None:
        self._name = database.name
        self._connector = Connector(database)
        self._workers = Workers()

    async def rows(self, sql: str, *, timeout: float = 30.0) -> list[list[Any]]:
        """Run a trusted statement and return its rows: raw values of the protocol, text, bool, int, float or lists.

        Raises `DragomanError`s; whatever ends it early ends it in the server too.
        """
        exchange: list[Exchange] = []

        def read() -> list[list[Any]]:
            with translated(self._name):
                seconds = str(max(1, round(timeout)))
                session = self._connector.session({"query_max_run_time": f"{seconds}s"})
                exchange.append(Exchange(session, f"{self._connector.origin}/v1/statement", sql, MOST_BYTES))
                rows: list[list[Any]] = []
                while (page := exchange[0].page()) is not None:
                    rows += page.rows
                return rows

        try:
            async with asyncio.timeout(timeout + 1):
                return await self._workers.start(read)
        except TimeoutError:
            await self._cancel(exchange)
            raise QueryTimeout("The server did not answer a question about its catalog in time.") from None
        except asyncio.CancelledError:
            await self._cancel(exchange)
            raise

    async def _cancel(self, exchanges: list[Exchange]) -> None:
        for exchange in exchanges:
            await asyncio.shield(self._workers.start(exchange.cancel))

    async def aclose(self) -> None:
        """Close the connections."""
        self._connector.close()
        self._workers.stop()
