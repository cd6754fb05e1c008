"""Kept results of callers. Every query is judged before it is kept, and again at every reading."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from dragoman.config import Results
from dragoman.errors import ConfigurationError, ParameterError, ResultNotFound
from dragoman.gateway.exporting import Exports
from dragoman.gateway.kept_database import NAME as RESULTS
from dragoman.gateway.kept_database import ResultsDatabases
from dragoman.gateway.queries import Query, too_late_to_judge
from dragoman.gateway.tasks import within
from dragoman.kept import Bounds, Kept, OpenFile, Owner, Source, Store
from dragoman.model import Acting, Confinement, Limits, Principal, RowStream
from dragoman.results import Collected, truncation
from dragoman.sql import Statement

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.opened import OpenDatabase

_LACKS: Final = " is not the whole answer of its query"
"""What a notice of a result that lacks rows says, so that it is found among the notices of what is made of it."""


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
        self.exports = Exports(gateway, self._store.has_room)
        self.databases = ResultsDatabases(gateway, self._store, self._check)

    def announce_to(self, tell: Callable[[Owner], None]) -> None:
        """Call `tell` with each owner whose results change from now on. It must not raise."""
        self._store.changed = tell

    async def adopt(self, is_own: Callable[[Owner], bool] = lambda owner: True) -> None:
        """Take over what an earlier server kept for callers for whom `is_own` is true, if a folder is configured.

        From now on kept results outlive this server, too. Without a folder nothing does. Raises `ConfigurationError`.
        """
        if self._settings.dir is None:
            return
        try:
            await self._store.adopt(is_own)
        except OSError as error:
            raise ConfigurationError(
                f"results.dir cannot be used ({error.strerror}).",
                suggestion="Name a folder that the server may write to.",
            ) from None
        self._gateway.varies = self._gateway.varies or self.databases.offered

    @property
    def timeout(self) -> float:
        """The seconds that a kept query, or the export of a result, may take."""
        return self._settings.timeout

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
        is_for_file: bool = False,
    ) -> Kept:
        """Start to keep the whole answer of a query. `is_for_file`: it is made for a file alone.

        Return when it is complete, or after a short time with the rows so far.

        It runs for `timeout` seconds at most, or as long as results may take. Half of a pool's slots are reserved for
        others. Raises the refusal of the query, `ParameterError` for the name, and `Busy`.
        """
        gateway = self._gateway
        opened = gateway.for_principal(principal).database(database)
        # Checked before anything is kept, so that this call itself reports a refusal.
        async with gateway.call(tool, principal, database, sql=sql) as record:
            record.sql, record.params = sql, params
            query = await Query.prepare(opened, sql, params, from_dialect=from_dialect, principal=principal, tool=tool)
            query.note(record)
        text = query.statement.text
        settings = self._settings
        size = opened.config.pool_size
        # If there is only one slot, a kept query may not hold it longer than any other.
        longest = settings.timeout if size > 1 else min(settings.timeout, opened.config.timeout)
        seconds = min(timeout or longest, longest)
        most = min(settings.max_rows, opened.role_rows or settings.max_rows)

        def open_stream() -> AbstractAsyncContextManager[RowStream]:
            return gateway.stream(
                opened.config.name,
                text,
                query.parameters,
                ceiling=Limits(most, settings.max_bytes_per_caller, seconds),
                principal=principal,
                tool=tool,
            )

        sources = await self._sources(query, name, principal)
        kept = await self._store.keep(
            principal,
            name,
            opened.config.name,
            sources,
            open_stream,
            max(1, size // 2),
            seconds,
            notices=tuple(query.notices),
            same_as=await self._same_as(query, principal),
            is_for_file=is_for_file,
        )
        gateway.varies = gateway.varies or self.databases.offered
        return kept

    async def reuse(self, query: Query, principal: Principal, seconds: float) -> Collected | None:
        """Return the rows of a judged query from a result that its caller kept in the last seconds, or None.

        The database, statement, parameters, roles and their restrictions must be the same, under today's configuration.
        """
        kept = self._store.latest(principal, await self._same_as(query, principal), seconds)
        if kept is None or query.opened.config.name == RESULTS:  # the kept results may be others by now
            return None
        limits = query.request.limits
        # Without the array's brackets, and with a comma after the last row.
        rows = await asyncio.to_thread(kept.pages.read, 0, limits.max_rows, limits.max_bytes - 1)
        if len(rows.json) + 2 > limits.max_bytes:
            return None
        cut = truncation("rows" if rows.count == limits.max_rows else "bytes", limits)
        told = f"Answered from the kept result {kept.name}: the database was not asked again."
        return Collected(
            columns=kept.columns,
            rows_json=b"[%b]" % rows.json,
            row_count=rows.count,
            truncated=cut if rows.count < kept.pages.rows else None,
            notices=(*(each for each in kept.notices if each not in query.notices), told),
        )

    async def _same_as(self, query: Query, principal: Principal) -> str:
        gateway, request = self._gateway, query.request
        roles = sorted(gateway.roles.of(principal).names) if gateway.has_roles else ()
        part = await _part(query.opened, query.statement, request.confinement, request.acting)
        parts = (query.opened.config.name, query.statement.text, request.parameters, roles, part)
        return _digest(gateway.version, *parts)

    async def _sources(self, query: Query, name: str, principal: Principal) -> tuple[Source, ...]:
        """Return the sources of a result. For kept results that the text may name, these are their sources."""
        database, sql, request = query.opened.config.name, query.statement.text, query.request
        if database != RESULTS or not self.databases.offered:
            part = await _part(query.opened, query.statement, request.confinement, request.acting)
            return ((database, sql, part),)
        meant = [kept for kept in self._store.of(principal) if kept.name.lower() in sql.lower()]
        if any(kept.name.lower() == name.lower() for kept in self._read_by(query)):
            raise ParameterError(
                f"The query reads {name}, which it would replace.", suggestion="Keep it under another name."
            )
        return tuple(dict.fromkeys(source for kept in meant for source in kept.sources))

    def note_parts(self, query: Query) -> Query:
        """Return a query on kept results with a notice of each that it reads and that lacks rows.

        A result that was made of such a one has its notice, too.
        """
        if not self.databases.offered:
            return query
        told = dict.fromkeys(notice for kept in self._read_by(query) for notice in _parts(kept))
        return replace(query, notices=(*query.notices, *told)) if told else query

    def _read_by(self, query: Query) -> list[Kept]:
        """Return the kept results that a query on them reads."""
        names = {relation.name.lower() for relation in query.request.reads or ()}
        return [kept for kept in self._store.of(query.request.principal) if kept.name.lower() in names]

    async def find(self, name: str, principal: Principal) -> Kept:
        """Return a caller's result, if the caller may still run its query and has the same part of its tables.

        Raises `ResultNotFound`, and the refusal of the query today.
        """
        kept = self._store.find(principal, name)
        await self._check(kept, principal)
        return kept

    async def _check(self, kept: Kept, principal: Principal) -> None:
        """Raise what refuses any of the statements a result is made of, `ResultNotFound` where rows may be others."""
        seen = self._gateway.for_principal(principal)
        for database, sql, part in kept.sources:
            opened = seen.database(database)
            now = await within(opened.limits.timeout, _judge_again(opened, sql, principal), too_late_to_judge)
            if now != part:
                raise ResultNotFound(f"What you may read has changed since {kept.name} was kept.")

    async def drop(self, name: str, principal: Principal) -> None:
        """End and remove a caller's result. Raises `ResultNotFound`."""
        await self._store.drop(principal, name)

    def lend(self, file: OpenFile, kept: Kept) -> None:
        """Count an open file of a result in its owner's share until it is closed."""
        self._store.lend(file, kept.owner)

    def of(self, principal: Principal) -> tuple[Kept, ...]:
        """Return a caller's results."""
        return self._store.of(principal)

    def expires_in(self, kept: Kept) -> float:
        """Return the seconds until a result is removed, if nobody reads it."""
        return self._store.expires_in(kept)

    async def tidy(self) -> None:
        """Remove what ended processes left behind."""
        await self._store.tidy()

    async def aclose(self) -> None:
        """End running work and remove every file."""
        await self.databases.aclose()
        await self._store.aclose()


def _parts(kept: Kept) -> list[str]:
    """Return what must be told of a result that lacks rows, or that was made of results that do."""
    told = [notice for notice in kept.notices if _LACKS in notice]
    if kept.truncated is not None:
        told.append(f"{kept.name}{_LACKS}: it has the first {kept.pages.rows}. {kept.truncated.hint}".rstrip())
    return told


async def _judge_again(opened: OpenDatabase, sql: str, principal: Principal) -> str:
    """Return the key of `_part` for a statement by what its caller may read now. Raises the refusal."""
    statement = await opened.judge.judge(sql, "get_result", principal)
    confined = await opened.confiner.confine(statement) if opened.confiner else None
    confinement = confined.confinement(principal) if confined else None
    return await _part(opened, statement, confinement, opened.acting(principal))


async def _part(
    opened: OpenDatabase, statement: Statement, confinement: Confinement | None, acting: Acting | None
) -> str:
    """Return a key for where a statement runs, as whom, and on which part of its tables. Equal keys mean equal rows."""
    database = opened.config
    place = database.dialect, database.host, database.port, database.database, database.user, str(database.folder)
    names = database.schema, tuple(database.schemas)  # in their order: what a name without a schema may mean
    # The values are added separately, since neither a confinement nor an identity shows them.
    values = sorted(confinement.values.items()) if confinement else ()
    columns = await _columns(opened, statement) if opened.delegation else ()
    return _digest(place, names, confinement, values, acting, acting and acting.settings, columns)


async def _columns(opened: OpenDatabase, statement: Statement) -> tuple[tuple[str, ...], ...]:
    """Return the columns of a statement's tables that the engine lets its caller read, as far as the catalog knows."""
    tables = await opened.judge.tables(await opened.judge.relations(statement))
    return tuple(tuple(column.name for column in table.columns) for table in tables.values() if table)


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()
