"""How validators are asked about a statement: what callers send, and what the gateway made of it."""

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


class Checks:
    """Asks the validators of a database, each until the database's deadline.

    `changing`: those whose verdicts depend on a state.
    """

    def __init__(self, validators: Sequence[Validator], database: Database, source: Source) -> None:
        self.validators = validators
        self.changing = [each for each in validators if type(each).state is not Validator.state]
        self._seconds = database.timeout
        self._source = source

    async def state(self, validator: Validator) -> object:
        """Return the state that its verdicts depend on. It may query the database."""
        with self._source.ours(f"{type(validator).__name__}.state"):
            return await within(self._seconds, validator.state())

    async def ask(self, validator: Validator, statement: Statement, call: Call) -> None:
        """Have a plugin's validator check a statement. Raises the refusal."""
        method = f"{type(validator).__name__}.check"
        answer: object = None
        with self._source.ours(method):
            answer = await within(self._seconds, validator.check(statement, call))
        self._source.check_nothing(answer, validator, method)  # False would not refuse, which its author may think


class OwnChecks(Checks):
    """Has the dialect's validators check what the gateway made of a statement.

    Its filters and masks name what users may have made. Validators of policies judge what callers send.
    """

    def __init__(
        self,
        validators: Sequence[Validator],
        dialect: Dialect,
        database: Database,
        source: Source,
        resolver: Resolver,
    ) -> None:
        super().__init__(validators, database, source)
        self._dialect = dialect
        self._database = database
        self._resolver = resolver

    async def check(self, statement: Statement, parsed: ParsedStatement, passed: States | None) -> States:
        """Return the states under which a statement passes. Raises the refusal.

        `passed`: those under which it passed before. As long as they stay the same, nothing is checked again.
        """
        states = tuple([await self.state(each) for each in self.changing])
        if states != passed:
            call = self._call(statement, parsed)
            for validator in self.validators:
                await self.ask(validator, statement, call)
        return states

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
