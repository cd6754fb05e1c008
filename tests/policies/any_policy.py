"""Behaviours of policies, good and bad, put together at random. Laid out as the module of an installed policy."""

import random
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from dragoman import (
    Column,
    Executor,
    Inspection,
    Inspector,
    InvalidSql,
    Names,
    Plan,
    PolicyPlugin,
    Relation,
    Restriction,
    Restrictor,
    RowStream,
    Schema,
    Table,
    TableColumn,
    TableNotFound,
    Validator,
    WrappedExecutor,
    WrappedInspector,
)

reached: list[str] = []
"""The statements that came to an executor of this policy's: what was refused never does."""


class Noting(WrappedExecutor):
    def open(self, request):
        reached.append(request.statement)
        return super().open(request)

    async def describe(self, request):
        reached.append(request.statement)
        return await super().describe(request)

    async def prepare(self, request):
        reached.append(request.statement)
        await super().prepare(request)

    async def explain(self, request, options):
        reached.append(request.statement)
        return await super().explain(request, options)

    async def estimate_cost(self, request):
        reached.append(request.statement)
        return await super().estimate_cost(request)


class Silent(Noting):
    async def aclose(self):
        pass

    async def doctor(self):
        return ()


class Agreeable(Noting):
    """Says that everything compiles and costs nothing."""

    async def describe(self, request):
        reached.append(request.statement)
        return [Column("x", "text")]

    async def prepare(self, request):
        reached.append(request.statement)

    async def estimate_cost(self, request):
        reached.append(request.statement)
        return 0.0


async def nothing():
    """Batches of no rows."""
    return
    yield


class Own(Executor):
    """Asks no database."""

    def __init__(self, inner):
        pass

    @asynccontextmanager
    async def open(self, request):
        reached.append(request.statement)
        yield RowStream([Column("x", "text")], nothing())

    async def explain(self, request, options):
        reached.append(request.statement)
        return Plan(plan="nothing", format="text")


class Blind(Inspector):
    def __init__(self, inner):
        pass

    async def version(self):
        return "0"

    async def schemas(self):
        return ()

    async def tables(self, scope):
        return Inspection(())


class Harmless(WrappedInspector):
    """Calls every relation a plain table without a definition, and of no system."""

    async def tables(self, scope):
        told = await super().tables(scope)
        plain = (replace(each, type="table", definition=None, system=False) for each in told.tables)
        return replace(told, tables=tuple(plain))


class Nameless(WrappedInspector):
    async def tables(self, scope):
        told = await super().tables(scope)
        return replace(told, tables=tuple(replace(each, columns=()) for each in told.tables))


class Inventive(WrappedInspector):
    """Tells of relations that are not there, named as those that are closed."""

    async def schemas(self):
        return [replace(each, system=False) for each in await super().schemas()] + [Schema(name="pg_catalog")]

    async def tables(self, scope):
        told = await super().tables(scope)
        columns = (TableColumn(name="x", type="text"),)
        names = ("pg_authid", "pg_shadow", "sqlite_master", "hidden")
        schemas = ("pg_catalog", "public", "main")
        more = (Table(relation=Relation(name, schema), columns=columns) for name in names for schema in schemas)
        return replace(told, tables=(*told.tables, *more))

    async def names(self, scope):
        return [Names(names=("pg_authid", "hidden"), schema="pg_catalog")]


class Failing(WrappedInspector):
    async def tables(self, scope):
        raise TableNotFound("nothing is here")

    async def version(self):
        raise InvalidSql("no version")


class Lenient(Validator):
    async def check(self, statement, call):
        pass


class Meddling(Validator):
    """Tries to change what the others judge."""

    async def check(self, statement, call):
        for value in (statement, call, call.parsed, call.database):
            for name in ("text", "calls", "relations", "refusals", "allow_functions"):
                try:
                    setattr(value, name, ())
                except (AttributeError, TypeError):
                    pass


class Unsteady(Validator):
    count = 0

    async def state(self):
        type(self).count += 1
        return self.count % 3

    async def check(self, statement, call):
        pass


class Resolving(Validator):
    async def check(self, statement, call):
        await call.relations()
        await call.resolve()


@dataclass(frozen=True)
class Generous(Restrictor):
    def restrict(self, table, dialect):
        return Restriction()


@dataclass(frozen=True)
class Indifferent(Restrictor):
    def restrict(self, table, dialect):
        return None


INSPECTORS = [None, Blind, Harmless, Nameless, Inventive, Failing, WrappedInspector]
EXECUTORS = [Noting, Silent, Agreeable, Own]
VALIDATORS = [Lenient, Meddling, Unsteady, Resolving]
RESTRICTORS = [None, None, Generous, Indifferent]


class AnyPolicy(PolicyPlugin):
    """A policy of parts that a number chooses."""

    def __init__(self, seed):
        chance = random.Random(seed)
        self.inspector, self.executor = chance.choice(INSPECTORS), chance.choice(EXECUTORS)
        self.validators = chance.sample(VALIDATORS, chance.randint(0, len(VALIDATORS)))
        self.left = chance.choice(RESTRICTORS)

    def wrap_executor(self, executor, database, dialect):
        return self.executor(executor)

    def wrap_inspector(self, inspector, database, dialect):
        return inspector if self.inspector is None else self.inspector(inspector)

    def further_validators(self, database, executor, inspector):
        return [each() for each in self.validators]

    def restrictor(self, database, principal):
        return self.left and self.left()
