"""Kept results on behalf of callers: what is kept was judged, and every reading is judged again."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from dragoman.config import Results
from dragoman.errors import ParameterError
from dragoman.gateway.kept_database import NAME as RESULTS
from dragoman.gateway.kept_database import ResultsDatabases
from dragoman.gateway.queries import Query
from dragoman.kept import Bounds, Kept, Store
from dragoman.model import Limits, Principal, RowStream

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway


class Keeper:
    """The kept results of a gateway's callers."""

    def __init__(self, gateway: Gateway, settings: Results) -> None:
        self._gateway = gateway
        self._settings = settings
        bounds = Bounds(
            max_bytes=settings.max_bytes,
            max_bytes_per_caller=settings.max_bytes_per_caller,
            ttl=settings.ttl,
        )
        self._store = Store(settings.dir, bounds)
        self.databases = ResultsDatabases(gateway, self._store, self._check)

    async def keep(
        self,
        name: str,
        database: str | None,
        sql: str,
        params: Sequence[Any] = (),
        *,
        principal: Principal,
        tool: str,
        from_dialect: str | None = None,
        timeout: float | None = None,
    ) -> Kept:
        """Begin to keep the whole answer of a query; return when it is there, or soon with what has come.

        It runs for `timeout` seconds at most, or as long as results may take; half of a pool's places are for others.

        Raises what refuses the query, `ParameterError` for the name, and `Busy`.
        """
        gateway = self._gateway
        opened = gateway.seen_by(principal).database(database)
        # Before anything is kept, so that a refusal is this call's own.
        query = await Query.prepare(opened, sql, params, from_dialect=from_dialect, principal=principal, tool=tool)
        text = query.statement.text
        settings = self._settings
        size = opened.config.pool_size
        # Where there is one place only, a query that is kept may not keep it longer than any other.
        longest = settings.timeout if size > 1 else min(settings.timeout, opened.config.timeout)
        seconds = min(timeout or longest, longest)
        most = min(settings.max_rows, opened.role_rows or settings.max_rows)

        def open_stream() -> AbstractAsyncContextManager[RowStream]:
            return gateway.stream(
                opened.config.name,
                text,
                query.request.parameters,
                ceiling=Limits(most, settings.max_bytes_per_caller, seconds),
                principal=principal,
                tool=tool,
            )

        sources = self._sources(opened.config.name, text, name, principal)
        kept = await self._store.keep(
            principal, name, opened.config.name, sources, open_stream, max(1, size // 2), seconds
        )
        gateway.varies = gateway.varies or self.databases.offered
        kept.notices = (*query.notices, *kept.notices)
        return kept

    def _sources(self, database: str, sql: str, name: str, principal: Principal) -> tuple[tuple[str, str], ...]:
        """Return what a result is made of: of kept results, whatever those are made of that the text may mean."""
        if database != RESULTS or not self.databases.offered:
            return ((database, sql),)
        meant = [kept for kept in self._store.of(principal) if kept.name.lower() in sql.lower()]
        if any(kept.name == name for kept in meant):
            raise ParameterError(f"The query reads {name}, which it would replace.", suggestion="Keep it as another.")
        return tuple(dict.fromkeys(source for kept in meant for source in kept.sources))

    async def find(self, name: str, principal: Principal) -> Kept:
        """Return a caller's result, if the caller may still run its query.

        Raises `ResultNotFound`, and what refuses the query now.
        """
        kept = self._store.find(principal, name)
        await self._check(kept, principal)
        return kept

    async def _check(self, kept: Kept, principal: Principal) -> None:
        """Raise what refuses any of the statements a result is made of."""
        seen = self._gateway.seen_by(principal)
        for database, sql in kept.sources:
            await seen.database(database).judge.judge(sql, "get_result", principal)

    async def drop(self, name: str, principal: Principal) -> None:
        """End and forget a caller's result. Raises `ResultNotFound`."""
        await self._store.drop(principal, name)

    def of(self, principal: Principal) -> tuple[Kept, ...]:
        """Return a caller's results."""
        return self._store.of(principal)

    def expires_in(self, kept: Kept) -> float:
        """Return the seconds until a result goes, if nobody reads it."""
        return self._store.expires_in(kept)

    async def aclose(self) -> None:
        """End what runs and remove every file."""
        await self.databases.aclose()
        await self._store.aclose()
