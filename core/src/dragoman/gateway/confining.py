"""Confines callers to their part of relations: their statements are rewritten by the dialect before they are sent."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.access import as_conditions, value_of
from dragoman.catalog import NO_PARTS, Catalog, GrantedCatalog, Parts, Snapshot
from dragoman.dialect import Confined, Dialect, NamedPart
from dragoman.errors import (
    ColumnNotFound,
    DragomanError,
    InvalidSql,
    NotFound,
    ParameterError,
    PermissionDenied,
    QueryError,
    QueryTimeout,
    Refused,
    Unsupported,
)
from dragoman.gateway.checks import OwnChecks, States
from dragoman.gateway.failures import Source, not_there
from dragoman.gateway.resolving import Resolver
from dragoman.model import Claims, ConfinedRelation, Confinement, Database, Principal, Relation, Request, Table
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement
from dragoman.sql.text import MOST_MADE
from dragoman.validators import ReadOnly, read_query

PartOf = Callable[[Relation], ConfinedRelation | None]
Prepare = Callable[[Request], Awaitable[None]]
ValueOf = Callable[[str, Principal], Any]
"""Returns a value of a policy, by the name that an expression has for it."""
_FAILS = (
    "The query fails on a value that it computes with. "
    "For tables with filtered rows or masked columns, and views of what you do not see, the value is not shown."
)
_GUARD = "Guard divisions, casts and function arguments, for instance with NULLIF or CASE."
REMEMBERED = 512
"""The number of statements whose confined form is kept for a set of roles. The least recently used is dropped first."""
UNFIT = (InvalidSql, NotFound, QueryError, Refused, Unsupported)
"""Errors of a database for a statement with a filter or a mask that it cannot compile."""
UNCOMPILED = (*UNFIT, ParameterError)
"""The same of a trial, where every value is one of the filter or mask."""
_log = logging.getLogger(__name__)


class TooLong(Unsupported):
    """The filters and masks of a statement's tables make too many bytes of SQL."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"With the filters and masks of its tables the statement has {size} bytes; at most {MOST_MADE} are sent.",
            suggestion="Read fewer of these tables in one statement. "
            "The server's administrator can write shorter masks, or put them into a view of the database.",
        )


@dataclass(slots=True)
class Sent:
    """What the dialect made of a statement. `passed`: the states under which the dialect's own checks let it pass."""

    statement: Statement
    parsed: ParsedStatement
    passed: States | None = None


@dataclass(frozen=True, slots=True)
class ConfinedStatement:
    """The statement that is sent instead of a caller's, and the parts of relations that it reads."""

    confined: Confined
    parts: tuple[ConfinedRelation, ...]
    value_of: ValueOf
    sent: Sent | None = None

    def request(self, request: Request) -> Request:
        """Return a request that reads only the parts that its principal may see.

        Raises `PermissionDenied` for callers who lack a claim, `DialectError` for a policy, and `ParameterError`.
        """
        confinement = self.confinement(request.principal)
        return replace(
            request,
            statement=self.confined.text,
            parameters=_bind(self.confined, request.parameters, confinement.values),
            confinement=confinement,
            reads=None,
            types=None,
        )

    def confinement(self, principal: Principal) -> Confinement:
        """Return the parts with the values of a principal. Raises what `request` raises, except `ParameterError`."""
        names = dict.fromkeys(name for part in self.parts for name in part.values)
        values = {name: _value(name, principal, self.value_of) for name in names}
        return Confinement(relations=self.parts, values=Claims(values), lead=self.confined.lead)

    @property
    def computes(self) -> bool:
        """Return whether filters or masks are computed, which may fail on what callers do not see."""
        return not all(part.whole for part in self.parts)

    def parts_with(self, error: DragomanError) -> list[Relation]:
        """Return the relations that, as far as is known, have the column that the database does not find.

        The SQL that replaces them names all of their columns. So nothing of them can be read until the lost column is
        known.
        """
        if not isinstance(error, ColumnNotFound):
            return []
        return [part.relation for part in self.parts if any(each.name == error.identifier for each in part.columns)]

    def error(self, error: DragomanError) -> DragomanError:
        """Translate an error about the sent statement to one about the caller's statement.

        Which visible row fails first, and how, may depend on hidden rows, as plans do. A filter or mask may fail on a
        hidden value. So the error does not show it.
        """
        if error.offset is not None:
            error = error.replace(offset=self.confined.original(error.offset))
        elif isinstance(error, QueryError) and self.computes:
            return fails()
        if isinstance(error, QueryTimeout) and self.confined.slow:
            return error.replace(suggestion=f"{error.suggestion} {self.confined.slow}")
        if isinstance(error, ParameterError) and self.confined.parameters is not None:
            return _of_value(error, self.confined.parameters)
        return error


class Confiner:
    """Confines the statements of callers who have a part. Remembers the result as long as the catalog stays the same.

    `value_of`: returns the values of policies. `compile`: has the database compile a statement of the gateway's own.
    `own`: the dialect's checks. What users made since may be what a filter or a mask means.
    `untried`: parts are compiled before their first use, since nobody did at the start: an error would reveal them.
    """

    def __init__(
        self,
        dialect: Dialect,
        database: Database,
        catalog: Catalog,
        whole: Resolver,
        source: Source,
        value_of: ValueOf,
        compile: Prepare,
        own: OwnChecks,
        *,
        untried: bool = False,
    ) -> None:
        self._value_of = value_of
        self._compile = compile
        self._own = own
        self._untried = untried
        self._compiled: set[ConfinedRelation] = set()
        self._dialect = dialect
        self._catalog = catalog
        self._whole = whole
        self._source = source
        # The administrator decides what a filter names. The rules decide what a statement may do at all.
        self._read_only = ReadOnly(dialect, replace(database, schemas=()))
        self._known: OrderedDict[str, ConfinedStatement | None] = OrderedDict()
        self.compiling: set[str] = set()
        """The texts of saved queries that the database compiled, as long as the catalog stays the same."""
        self._parts: Parts = NO_PARTS

    async def confine(self, statement: Statement) -> ConfinedStatement | None:
        """Return the statement to send instead of a judged one. None: itself, since nothing that it reads is hidden.

        Raises `Unsupported` if it cannot be confined.
        """
        parts = await self._catalog.parts()
        if parts is not self._parts:
            self._known.clear()
            self._compiled.clear()
            self.compiling.clear()
            self._parts = parts
        if parts is NO_PARTS:
            return None
        if statement.text in self._known:
            self._known.move_to_end(statement.text)
            made = self._known[statement.text]
        else:
            made = await self._make(statement, parts)
        if made is not None:
            await self._check_now(made)
        return made

    async def _make(self, statement: Statement, parts: Parts) -> ConfinedStatement | None:
        made = await self._confine(statement)
        for part in made.parts if made and self._untried else ():
            await self._try(part)
        if parts is self._parts:  # otherwise another call found other parts meanwhile
            self._known[statement.text] = made
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        return made

    async def _check_now(self, made: ConfinedStatement) -> None:
        """Raise `PermissionDenied` if the dialect's own checks refuse what is sent: the caller's statement passed."""
        try:
            await self._check_own(made)
        except UNFIT as error:
            raise _close(made.parts, error) from None

    async def _check_own(self, made: ConfinedStatement) -> None:
        if made.sent is not None:
            made.sent.passed = await self._own.check(made.sent.statement, made.sent.parsed, made.sent.passed)

    async def trial(self, *parts: ConfinedRelation) -> Request:
        """Return a request for the given parts of relations, without a caller's values, that can be compiled.

        Uses these parts, whatever the catalog has. Raises the errors of their filters and masks.
        """
        sql = _read_whole([self._dialect.qualify(part.relation) for part in parts])
        statement = Statement.parse(sql, sqlglot=self._dialect.sqlglot, lexicon=self._dialect.lexicon)
        try:
            confined = await self._confine(statement, {part.relation: part for part in parts}.get)
        except Unsupported as error:
            # The filter or the mask was refused, not a statement of a caller.
            raise error.__cause__ or error from None
        if confined is None or {*confined.parts} != {*parts}:
            raise Unsupported("the judge finds another name in it than its own, so nobody can query it")
        await self._check_own(confined)
        values = Claims(dict.fromkeys(name for part in parts for name in part.values))
        parameters = tuple(None for _ in confined.confined.parameters or ())
        confinement = Confinement(relations=confined.parts, values=values, lead=confined.confined.lead)
        return Request(statement=confined.confined.text, parameters=parameters, confinement=confinement)

    async def check_fit(self, parts: Sequence[ConfinedRelation]) -> None:
        """Raise `PermissionDenied` if parts do not match their relations any more.

        Filters and masks are checked at the start. A column or relation that they name may be gone since, and the
        database's error about a caller's statement names it.
        """
        self._compiled.difference_update(parts)
        for part in parts:
            await self._try(part)

    async def _try(self, part: ConfinedRelation) -> None:
        """Have the database compile a part. Raises `PermissionDenied` for one that does not match the relation."""
        if part in self._compiled:
            return
        try:
            await self._compile(await self.trial(as_conditions(part)))
        except UNCOMPILED as error:
            raise _close([part], error) from None
        self._compiled.add(part)

    async def _confine(self, statement: Statement, tried: PartOf | None = None) -> ConfinedStatement | None:
        """Confine a statement as `confine` does, without its cache.

        `tried`: the parts to use instead of the catalog's.
        """
        parsed = await asyncio.to_thread(read_query, self._dialect, statement)
        tables = await self._whole.find_tables(parsed.names)
        held = await self._find_held(statement, tables) if tried is None else tried
        named = _name_parts(parsed, tables, held)
        parts = tuple(dict.fromkeys(part for _, part in named if part is not None))
        confine = self._dialect.confine
        if not parts or confine is None:
            return None
        with self._source.ours("Dialect.confine"):
            confined = await asyncio.to_thread(confine, statement, named)
        sent = await self._judge(confined, held) if confined.replaced else None
        return ConfinedStatement(confined, parts, self._value_of, sent)

    async def _find_held(self, statement: Statement, tables: Mapping[Relation, Table | None]) -> PartOf:
        """Return what callers have of relations now.

        Raises `NotFound` for a relation that existed when the statement was judged and does not exist now. It may be
        back when the statement runs, as a table is that its owner replaces by another.
        """
        parts = await self._catalog.parts()
        seen = self._catalog.loaded
        for written, table in tables.items():
            if seen is None or not self._is_in(seen, written, table):
                raise await not_there(written, statement, self._catalog)
        return parts.get

    def _is_in(self, seen: Snapshot, written: Relation, table: Table | None) -> bool:
        if table is not None:
            return table.relation in seen.by_relation
        is_aspect = self._dialect.loaded_rules.find_whole(written) is not None
        return is_aspect or not isinstance(self._catalog, GrantedCatalog)

    async def _judge(self, confined: Confined, held: PartOf) -> Sent:
        """Judge the dialect's rewritten statement by the rules for every statement.

        All confined relations must be replaced.
        """
        if (size := len(confined.text.encode())) > MOST_MADE:
            raise TooLong(size)
        try:
            sent = await asyncio.to_thread(self._read, confined.text)
            parsed = sent.parsed
            self._read_only.judge(parsed)
        except DragomanError as error:
            raise _unheld() from error
        for (_, offset), part in _name_parts(parsed, await self._whole.find_tables(parsed.names), held):
            if part is not None and (offset is None or not confined.is_replaced(offset)):
                raise _unheld()
        return sent

    def _read(self, text: str) -> Sent:
        dialect = self._dialect
        statement = Statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon, most=MOST_MADE)
        return Sent(statement, read_query(dialect, statement))


def _name_parts(parsed: ParsedStatement, tables: Mapping[Relation, Table | None], held: PartOf) -> list[NamedPart]:
    """Return each place where a statement reads a relation, with the part of it that callers have, if any."""
    found = [(each, tables[each.relation]) for each in parsed.relations]
    return [(each, held(table.relation) if table else None) for each, table in found]


def fails() -> QueryError:
    """Return the error of a statement that fails on a value that may be hidden."""
    return QueryError(_FAILS, suggestion=_GUARD)


def _read_whole(relations: Sequence[str]) -> str:
    """Return a query of every column of relations.

    They are separate queries, since in FROM a few engines let one see another.
    """
    if len(relations) == 1:
        return f"SELECT * FROM {relations[0]}"
    named = {f"dragoman_part_{number}": relation for number, relation in enumerate(relations)}
    queries = ", ".join(f"{name} AS (SELECT * FROM {relation})" for name, relation in named.items())
    return f"WITH {queries} SELECT * FROM {', '.join(named)}"


def _close(parts: Sequence[ConfinedRelation], error: DragomanError) -> PermissionDenied:
    """Log what does not match relations, and return the error that names nothing of it."""
    for part in parts:
        _log.error("what callers may see of %s does not match it: %s", part.relation, error.message)
    return PermissionDenied(
        f"The rules of this server do not match {', '.join(part.relation.name for part in parts)}, so it is closed.",
        suggestion="Tell the server's administrator: the log says what is wrong.",
    )


def _unheld() -> Unsupported:
    return Unsupported(
        "The statement cannot be confined to the part of its tables that you may read.",
        suggestion="Name its tables plainly in FROM or JOIN, without TABLESAMPLE or ONLY.",
    )


def _value(name: str, principal: Principal, of_policy: ValueOf) -> Any:
    return of_policy(name, principal) if _is_of_policy(name) else value_of(name, principal)


def _of_value(error: ParameterError, sent: Sequence[int | str]) -> DragomanError:
    """Translate an error about sent values to one about the caller's values.

    These are the values that the caller sent, or those known of the caller.
    """
    number = error.parameter
    held = sent if number is None else sent[number - 1 : number]
    own = [place + 1 for place in held if isinstance(place, int)]
    if own and number is not None:
        return error.replace(message=error.message.replace(f"Parameter {number}", f"Parameter {own[0]}", 1))
    if own or not held:
        return error
    names = dict.fromkeys(str(name) for name in held)
    whose = "The rules of this server use" if any(map(_is_of_policy, names)) else "Your sign-in carries"
    return PermissionDenied(
        f"{whose} a value of a wrong type or range, and what you may read here depends on it: {', '.join(names)}.",
        suggestion="Ask the server's administrator.",
    )


def _is_of_policy(name: str) -> bool:
    return name.startswith("value.")


def _bind(confined: Confined, given: Sequence[Any], values: Mapping[str, Any]) -> tuple[Any, ...]:
    if confined.parameters is None:
        return tuple(given)
    wanted = {place for place in confined.parameters if isinstance(place, int)}
    if len(wanted) != len(given):
        raise ParameterError(
            f"The statement uses {len(wanted)} values; {len(given)} came.",
            suggestion="Give one value for each parameter.",
        )
    return tuple(given[place] if isinstance(place, int) else values[place] for place in confined.parameters)
