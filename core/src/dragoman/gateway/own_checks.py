"""The dialect's own checks of statements that the gateway made: filters and masks name what users may have made."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from dragoman.dialect import Call, Dialect, Resolution, Validator
from dragoman.gateway.failures import Source
from dragoman.gateway.resolving import Resolver
from dragoman.gateway.tasks import within
from dragoman.model import LOCAL, Database
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement

_TOOL = "execute_query"
States = tuple[object, ...]
"""What the verdict on a statement depends on."""


class OwnChecks:
    """Has the dialect's validators check statements. Those of policies judge what callers send."""

    def __init__(
        self,
        validators: Sequence[Validator],
        dialect: Dialect,
        database: Database,
        source: Source,
        resolver: Resolver,
    ) -> None:
        self._validators = validators
        self._changing = [each for each in validators if type(each).state is not Validator.state]
        self._dialect = dialect
        self._database = database
        self._source = source
        self._resolver = resolver

    async def check(self, statement: Statement, parsed: ParsedStatement, passed: States | None) -> States:
        """Return the states under which a statement passes. Raises the refusal.

        `passed`: those under which it passed before. As long as they stay the same, nothing is checked again.
        """
        states = tuple([await self._state(each) for each in self._changing])
        if states != passed:
            call = self._call(statement, parsed)
            for validator in self._validators:
                with self._source.ours(f"{type(validator).__name__}.check"):
                    async with within(self._database.timeout):
                        await validator.check(statement, call)
        return states

    async def _state(self, validator: Validator) -> object:
        with self._source.ours(f"{type(validator).__name__}.state"):
            async with within(self._database.timeout):
                return await validator.state()

    def _call(self, statement: Statement, parsed: ParsedStatement) -> Call:
        async def resolve() -> Resolution:
            return await self._resolver.resolution(statement, parsed)

        return Call(
            principal=LOCAL,
            tool=_TOOL,
            database=self._database,
            dialect=self._dialect,
            resolve=resolve,
            relations=partial(self._resolver.relations, parsed),
            parsed=parsed,
        )
