"""Judges statements before they run: the text, then every validator. What was judged is what is sent."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from dragoman.catalog import Catalog
from dragoman.dialect import Call, Dialect, Resolution, Validator
from dragoman.errors import DragomanError
from dragoman.gateway.checks import Checks
from dragoman.gateway.failures import Source, locate
from dragoman.gateway.granted import Granting
from dragoman.gateway.offload import SHORT, Offload
from dragoman.gateway.resolving import Resolver
from dragoman.gateway.tasks import within
from dragoman.gateway.visible import Visible
from dragoman.model import Database, Principal, Relation, Table
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement
from dragoman.validators import ReadOnly, read

REMEMBERED = 1024
"""The number of verdicts kept per database. The least recently used is dropped first."""
LONGEST = 4096
"""The most characters of a statement whose verdict is kept. Repeated statements are short, and memory stays bounded."""

_Key = tuple[str, str | None, Principal | None]
_WATCHED = frozenset({"tool", "principal"})


class _WatchedCall(Call):
    """A call that records which parts of it are read. Verdicts depend on these parts only."""

    __slots__ = ("read",)
    read: set[str]

    def __getattribute__(self, name: str) -> Any:
        if name in _WATCHED:
            object.__getattribute__(self, "read").add(name)
        return object.__getattribute__(self, name)


@dataclass(frozen=True, slots=True)
class _Verdict:
    """The verdict on an allowed statement.

    - `version`: of the catalog, if a validator read it.
    - `states`: of the validators that have one.
    - `read`: the parts of the call that the validators read.
    """

    statement: Statement
    read: frozenset[str]
    version: int | None
    states: tuple[object, ...]


class _Lookup:
    """What the judgement of one statement takes from the catalog, on first use.

    - `version`: the catalog's; None: nothing was taken from it.
    - `resolved`: what a validator was told.
    """

    def __init__(self, statement: Statement, parsed: ParsedStatement, catalog: Catalog, whole: Resolver) -> None:
        self._statement = statement
        self._parsed = parsed
        self._catalog = catalog
        self._whole = whole
        self.version: int | None = None
        self.resolved: Resolution | None = None

    async def look(self) -> None:
        """Make the verdict depend on the catalog."""
        # The first of several versions: if the catalog changes meanwhile, the verdict must become invalid.
        if self.version is None:
            self.version = (await self._catalog.snapshot()).version

    async def resolve(self) -> Resolution:
        """Return the relations and columns; see `Call.resolve`."""
        self._whole.watch()
        await self.look()
        self.resolved = await self._whole.resolution(self._statement, self._parsed)
        return self.resolved

    async def relations(self) -> tuple[Relation, ...]:
        """Return only the relations."""
        self._whole.watch()
        await self.look()
        return await self._whole.relations(self._parsed)


class Judge:
    """Judges the statements of one database. Remembers what it allowed, with everything the verdict depends on."""

    def __init__(
        self,
        dialect: Dialect,
        database: Database,
        catalog: Catalog,
        validators: Sequence[Validator],
        source: Source,
        offload: Offload,
        granting: Granting | None = None,
        whole: Resolver | None = None,
    ) -> None:
        self._dialect = dialect
        self._database = database
        self._catalog = catalog
        self._checks = Checks(validators, database, source)
        self._source = source
        self._offload = offload
        self._always = frozenset({"principal"} if any(each.depends_on_principal for each in validators) else ())
        # The combinations of parts that verdicts depended on so far. There are four, and usually one or two occur.
        self._dependences: set[frozenset[str]] = set()
        self._resolver = Resolver(dialect, database, catalog, self._offload)
        # Validators see what the database has, not only what is granted.
        self._whole = whole or self._resolver
        self._granting = granting
        self._narrowed = catalog.places.narrowed
        self._read_only = ReadOnly(dialect, database)
        self._visible = Visible(dialect, database, catalog, self._resolver)
        self._passed: OrderedDict[_Key, _Verdict] = OrderedDict()

    async def judge(self, sql: str, tool: str, principal: Principal) -> Statement:
        """Return the statement to send. Raises `InvalidSql`, `WriteDenied` or `UnsafeSql`."""
        for watched in tuple(self._dependences):
            key = sql, tool if "tool" in watched else None, principal if "principal" in watched else None
            verdict = self._passed.get(key)
            if verdict is None:
                continue
            # Asking takes a deadline, which takes longer than all the rest of this.
            lasts = not verdict.states and verdict.version is None
            if lasts or await self._holds(verdict):
                if key in self._passed:  # it is still remembered
                    self._passed.move_to_end(key)
                return verdict.statement
        try:
            verdict = await self._check(sql, tool, principal)
        except DragomanError as error:
            raise locate(error, sql) from None
        if len(sql) <= LONGEST:
            self._dependences.add(verdict.read)
            read = verdict.read
            key = sql, tool if "tool" in read else None, principal if "principal" in read else None
            self._passed[key] = verdict
            if len(self._passed) > REMEMBERED:
                self._passed.popitem(last=False)
        return verdict.statement

    async def relations(self, statement: Statement) -> tuple[Relation, ...]:
        """Return the relations a statement names, as the catalog knows them; unknown ones stay as written."""
        return await self._resolver.relations(await self._read(statement))

    async def tables(self, written: Sequence[Relation]) -> Mapping[Relation, Table | None]:
        """Return what the catalog knows about the names that a statement reads."""
        return await self._resolver.find_tables(written)

    async def _read(self, statement: Statement) -> ParsedStatement:
        """Parse a statement. A long one is parsed in a process that can be killed."""
        with self._source.ours("Dialect.read"):
            return await self._offload.call(len(statement.text), read, self._dialect, statement)

    async def _holds(self, verdict: _Verdict) -> bool:
        for validator, state in zip(self._checks.changing, verdict.states, strict=True):
            try:  # as `Checks.state` does, with fewer calls: each repeated statement comes here
                now = await within(self._database.timeout, validator.state())
            except DragomanError:
                raise
            except Exception as error:
                raise self._source.translate(error, f"{type(validator).__name__}.state") from None
            if now != state:
                return False
        return verdict.version is None or verdict.version == (await self._catalog.snapshot()).version

    async def _split_off(self, sql: str) -> Statement:
        """Return the statement in a text. A long text is tokenized in a thread, so that the event loop goes on."""
        parse = partial(Statement.parse, sql, sqlglot=self._dialect.sqlglot, lexicon=self._dialect.lexicon)
        return parse() if len(sql) <= SHORT else await asyncio.to_thread(parse)

    async def _check(self, sql: str, tool: str, principal: Principal) -> _Verdict:
        statement = await self._split_off(sql)
        parsed = await self._read(statement)
        lookup = _Lookup(statement, parsed, self._catalog, self._whole)
        call = _WatchedCall(
            principal=principal,
            tool=tool,
            database=self._database,
            dialect=self._dialect,
            resolve=lookup.resolve,
            relations=lookup.relations,
            parsed=parsed,
        )
        object.__setattr__(call, "read", set(self._always))
        if self._narrowed or self._database.acting is not None:
            await self._check_visible(statement, parsed, lookup)
        states = [state async for state in self._validate(statement, call)]
        # Another object, without the trees that the check has built.
        plain = Statement(sql, statement.text, sqlglot=statement.sqlglot, lexicon=statement.lexicon)
        plain.note_judged(parsed.names, _name_columns(lookup.resolved), (each.dotted for each in parsed.types))
        return _Verdict(plain, frozenset(call.read), lookup.version, tuple(states))

    async def _check_visible(self, statement: Statement, parsed: ParsedStatement, lookup: _Lookup) -> None:
        """Raise a refusal unless the caller may see all that it names."""
        self._read_only.judge(parsed)
        await lookup.look()
        if not self._narrowed:
            return await self._visible.check_relations(statement, parsed)
        await self._visible.check_types(parsed)
        # Before anything looks at the whole catalog: it finds a hidden relation without asking the database.
        await self._visible.check_relations(statement, parsed)
        if self._granting is not None:
            await self._granting.check(statement, parsed)
        self._visible.check(statement, parsed)

    async def _validate(self, statement: Statement, call: Call) -> AsyncIterator[object]:
        """Have each validator check it, and yield the states of those that have one. Raises a refusal."""
        for validator in self._checks.validators:
            if validator in self._checks.changing:
                # Read before the check: a change meanwhile must make the verdict invalid.
                yield await self._checks.state(validator)
            if isinstance(validator, ReadOnly):
                await validator.check(statement, call)
            else:
                await self._checks.ask(validator, statement, call)


def _name_columns(resolved: Resolution | None) -> Iterator[str]:
    for relation, column in resolved.columns if resolved is not None else ():
        yield f"{relation}.{column}"
