"""An inspector that keeps the gateway's rules: raises only our errors, ends in time, and ends if nobody waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from dragoman.dialect import Inspector, WrappedInspector
from dragoman.errors import ConnectionFailed
from dragoman.gateway.breaker import Breaker
from dragoman.gateway.failures import Source
from dragoman.gateway.tasks import Work
from dragoman.model import ColumnProfile, Database, Inspection, Names, ProfileBudget, Relation, Schema, Scope, Table
from dragoman.shapes import check_sequence

T = TypeVar("T")


class GuardedInspector(WrappedInspector):
    """Calls `inner` as part of the database's work, unless the breaker is open. Always calls its `version`."""

    def __init__(self, inner: Inspector, database: Database, work: Work, source: Source, breaker: Breaker) -> None:
        super().__init__(inner)
        self._database = database
        self._work = work
        self._source = source
        self._breaker = breaker

    async def version(self) -> str:
        """Return `Inspector.version`."""
        return await self._call("version", str, self.inner.version)

    async def schemas(self) -> Sequence[Schema]:
        """Return `Inspector.schemas`."""
        return await self._call("schemas", Sequence, self.inner.schemas, of=Schema)

    async def tables(self, scope: Scope) -> Inspection:
        """Return `Inspector.tables`."""
        return await self._call("tables", Inspection, partial(self.inner.tables, scope))

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return `Inspector.names`."""
        told: Any = await self._call("names", object, partial(self.inner.names, scope))
        if told is not None:
            self._source.check(told, Sequence, "Inspector.names")
            with self._source.ours("Inspector.names"):
                await asyncio.to_thread(check_sequence, Names, told, "what it told")
        answer: Sequence[Names] | None = told
        return answer

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return `Inspector.details`."""
        told: Sequence[Table] = await self._call("details", Sequence, partial(self.inner.details, tables), of=Table)
        if [table.relation for table in told] != [table.relation for table in tables]:
            raise self._source.fault("Inspector.details", "returned other relations than those asked for")
        return told

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Return `Inspector.profiles`. They must be about the given relations."""
        told: Mapping[Relation, tuple[ColumnProfile, ...]] = await self._call(
            "profiles", Mapping, partial(self.inner.profiles, tables, budget)
        )
        if told.keys() - {table.relation for table in tables}:
            raise self._source.fault("Inspector.profiles", "returned other relations than those asked for")
        return told

    async def fingerprint(self) -> str | None:
        """Return `Inspector.fingerprint`."""
        told: Any = await self._call("fingerprint", object, self.inner.fingerprint)
        if told is None or isinstance(told, str):
            return told
        raise self._source.fault("Inspector.fingerprint", f"returned {type(told).__name__}, not str")

    async def _call(
        self, method: str, kind: type[Any], ask: Callable[[], Coroutine[Any, Any, T]], of: type[Any] | None = None
    ) -> T:
        """Return the inspector's answer if it is a `kind`. `of`: it must be a sequence of these.

        Checks its fields too.
        """
        answer = await self._try(method, ask)
        self._source.check(answer, kind, f"Inspector.{method}")
        with self._source.ours(f"Inspector.{method}"):
            # In a thread: there may be 10,000 relations.
            await asyncio.to_thread(check_sequence, of or kind, answer if of else [answer], "what it told")
        return answer

    async def _try(self, method: str, ask: Callable[[], Coroutine[Any, Any, T]]) -> T:
        if method != "version":
            await self._breaker.check(self._database.timeout)
        try:
            with self._source.ours(f"Inspector.{method}"):
                answer = await self._work.do(self._database.timeout, ask)
        except ConnectionFailed as error:
            if not error.reached:
                self._breaker.fail(error)
            raise
        self._breaker.reset()
        return answer
