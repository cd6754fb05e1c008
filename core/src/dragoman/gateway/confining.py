"""Holds callers to the part of relations that they have: their statements are sent in the way their dialect does it."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dragoman.access import as_conditions, value_of
from dragoman.catalog import GrantedCatalog
from dragoman.dialect import Confined, Dialect, NamedPart
from dragoman.errors import (
    ColumnNotFound,
    DragomanError,
    InvalidSql,
    NotFound,
    ParameterError,
    PermissionDenied,
    QueryError,
    Refused,
    Unsupported,
)
from dragoman.gateway.failures import Source, not_there
from dragoman.gateway.resolving import Resolver
from dragoman.model import Claims, ConfinedRelation, Confinement, Database, Principal, Relation, Request
from dragoman.parsed import ParsedStatement
from dragoman.sql import Statement
from dragoman.validators import ReadOnly, read_query

PartOf = Callable[[Relation], ConfinedRelation | None]
Prepare = Callable[[Request], Awaitable[None]]
ValueOf = Callable[[str, Principal], Any]
"""Returns a value of a policy's, by the name an expression has for it."""
_FAILS = "The query fails on a value that it computes with; of tables whose rows are filtered it is not told which."
_GUARD = "Guard divisions, casts and what functions are given, for instance with NULLIF or CASE."
REMEMBERED = 512
"""Statements whose confined form is kept for a set of roles, the least recently used forgotten first."""
UNFIT = (InvalidSql, NotFound, QueryError, Refused, Unsupported)
"""What a database says of a filter or a mask that it cannot compile."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ConfinedStatement:
    """What is sent in place of a statement, and the parts of relations that it reads."""

    confined: Confined
    parts: tuple[ConfinedRelation, ...]
    value_of: ValueOf

    def request(self, request: Request) -> Request:
        """Return a request that reads only the parts that its principal may see.

        Raises `PermissionDenied` for those who lack a claim, `DialectError` for a policy, and `ParameterError`.
        """
        confinement = self.confinement(request.principal)
        return replace(
            request,
            statement=self.confined.text,
            parameters=_bind(self.confined, request.parameters, confinement.values),
            confinement=confinement,
        )

    def confinement(self, principal: Principal) -> Confinement:
        """Return the parts with the values of a principal. Raises what `request` does, but no `ParameterError`."""
        names = dict.fromkeys(name for part in self.parts for name in part.values)
        values = {name: _value(name, principal, self.value_of) for name in names}
        return Confinement(relations=self.parts, values=Claims(values), lead=self.confined.lead)

    def parts_with(self, error: DragomanError) -> list[Relation]:
        """Return the relations that have, as far as was known, the column that the database does not find.

        What stands for them names all of their columns: nothing of them can be read until it is known that one is gone.
        """
        if not isinstance(error, ColumnNotFound):
            return []
        return [part.relation for part in self.parts if any(each.name == error.identifier for each in part.columns)]

    def error(self, error: DragomanError) -> DragomanError:
        """Return an error about what was sent as one about what was written.

        Which row of those left by a filter fails first, and how, may depend on rows that it leaves out, as plans do.
        """
        if error.offset is not None:
            error = error.replace(offset=self.confined.original(error.offset))
        elif isinstance(error, QueryError) and any(part.filter is not None for part in self.parts):
            return QueryError(_FAILS, suggestion=_GUARD)
        if isinstance(error, ParameterError) and self.confined.parameters is not None:
            return _of_value(error, self.confined.parameters)
        return error


class Confiner:
    """Confines the statements of those who have a part; remembers how, as long as the catalog stays the same.

    `value_of`: tells the values of policies. `compile`: has the database compile each part before it is first read,
    where nobody did at the start: an error of its own would tell a caller of it.
    """

    def __init__(
        self,
        dialect: Dialect,
        database: Database,
        catalog: GrantedCatalog,
        whole: Resolver,
        source: Source,
        value_of: ValueOf,
        compile: Prepare | None = None,
    ) -> None:
        self._value_of = value_of
        self._compile = compile
        self._compiled: set[ConfinedRelation] = set()
        self._dialect = dialect
        self._catalog = catalog
        self._whole = whole
        self._source = source
        # What a filter names is the administrator's; what a statement may do at all is for the rules.
        self._read_only = ReadOnly(dialect, replace(database, schemas=()))
        self._known: OrderedDict[str, ConfinedStatement | None] = OrderedDict()
        self.compiling: set[str] = set()
        """Texts of saved queries that the database compiled, as long as the catalog stays the same."""
        self._permissions: object = None

    async def confine(self, statement: Statement) -> ConfinedStatement | None:
        """Return what is sent in place of a judged statement; None: itself, as nothing of what it reads is hidden.

        Raises `Unsupported` for what nothing holds to a part.
        """
        permissions = await self._catalog.permissions()
        if permissions is not self._permissions:
            self._known.clear()
            self._compiled.clear()
            self.compiling.clear()
            self._permissions = permissions
        if statement.text not in self._known:
            made = await self._confine(statement)
            for part in made.parts if made and self._compile else ():
                await self._try(part)
            self._known[statement.text] = made
            if len(self._known) > REMEMBERED:
                self._known.popitem(last=False)
        self._known.move_to_end(statement.text)
        return self._known[statement.text]

    async def trial(self, *parts: ConfinedRelation) -> Request:
        """Return a request that reads parts of relations, without the values of a caller: it can be compiled.

        They are taken as given, whatever the catalog's are. Raises what is wrong with their filters and masks.
        """
        sql = _read_whole([self._dialect.qualify(part.relation) for part in parts])
        statement = Statement.parse(sql, sqlglot=self._dialect.sqlglot, lexicon=self._dialect.lexicon)
        try:
            confined = await self._confine(statement, {part.relation: part for part in parts}.get)
        except Unsupported as error:
            # What was refused is the filter or a mask, not a statement of a caller's.
            raise error.__cause__ or error from None
        if confined is None or {*confined.parts} != {*parts}:
            raise Unsupported(
                "the judge of statements reads another name in place of its own, so that nobody can query it"
            )
        values = Claims(dict.fromkeys(name for part in parts for name in part.values))
        parameters = tuple(None for _ in confined.confined.parameters or ())
        confinement = Confinement(relations=confined.parts, values=values, lead=confined.confined.lead)
        return Request(statement=confined.confined.text, parameters=parameters, confinement=confinement)

    async def _try(self, part: ConfinedRelation) -> None:
        """Have the database compile a part. Raises `PermissionDenied` for one that does not fit."""
        if part in self._compiled or self._compile is None:
            return
        try:
            await self._compile(await self.trial(as_conditions(part)))
        except UNFIT as error:
            _log.error("what a policy leaves of %s does not fit it: %s", part.relation, error.message)
            raise PermissionDenied(
                f"The rules of this server do not fit {part.relation.name}, so it is closed.",
                suggestion="Tell the server's administrator: the log says what is wrong.",
            ) from None
        self._compiled.add(part)

    async def _confine(self, statement: Statement, tried: PartOf | None = None) -> ConfinedStatement | None:
        """As `confine`, anew; `tried`: the parts to hold it to instead of those that the catalog has."""
        parsed = await asyncio.to_thread(read_query, self._dialect, statement)
        if tried is None:
            await self._check_still_there(statement, parsed)
        held = await self._find_held() if tried is None else tried
        named = await self._find_parts(parsed, held)
        parts = tuple(dict.fromkeys(part for _, part in named if part is not None))
        confine = self._dialect.confine
        if not parts or confine is None:
            return None
        with self._source.ours("Dialect.confine"):
            confined = await asyncio.to_thread(confine, statement, named)
        if confined.replaced:
            await self._judge(confined, held)
        return ConfinedStatement(confined, parts, self._value_of)

    async def _find_held(self) -> PartOf:
        permissions = await self._catalog.permissions()

        def part_of(relation: Relation) -> ConfinedRelation | None:
            permission = permissions.get(relation)
            return None if permission is None else permission.confined

        return part_of

    async def _check_still_there(self, statement: Statement, parsed: ParsedStatement) -> None:
        """Raise `NotFound` for a relation that was there when the statement was judged, and now is not."""
        permissions = await self._catalog.permissions()
        for written, table in (await self._whole.find_tables(parsed.names)).items():
            if table is not None and table.relation not in permissions:
                raise await not_there(written, statement, self._catalog)

    async def _find_parts(self, parsed: ParsedStatement, held: PartOf) -> list[NamedPart]:
        tables = await self._whole.find_tables(parsed.names)
        found = [(each, tables[each.relation]) for each in parsed.relations]
        return [(each, held(table.relation) if table else None) for each, table in found]

    async def _judge(self, confined: Confined, held: PartOf) -> None:
        """Judge what a dialect has made, by the rules for every statement; all that is confined must be replaced."""
        try:
            parsed = await asyncio.to_thread(self._read, confined.text)
            self._read_only.judge(parsed)
        except DragomanError as error:
            raise _unheld() from error
        for (_, offset), part in await self._find_parts(parsed, held):
            if part is not None and (offset is None or not confined.is_replaced(offset)):
                raise _unheld()

    def _read(self, text: str) -> ParsedStatement:
        sent = Statement.parse(text, sqlglot=self._dialect.sqlglot, lexicon=self._dialect.lexicon)
        return read_query(self._dialect, sent)


def _read_whole(relations: Sequence[str]) -> str:
    """Return a query of every column of relations, which cannot see each other's: in FROM, a few engines let them."""
    if len(relations) == 1:
        return f"SELECT * FROM {relations[0]}"
    named = {f"dragoman_part_{number}": relation for number, relation in enumerate(relations)}
    queries = ", ".join(f"{name} AS (SELECT * FROM {relation})" for name, relation in named.items())
    return f"WITH {queries} SELECT * FROM {', '.join(named)}"


def _unheld() -> Unsupported:
    return Unsupported(
        "The statement cannot be held to the part of its tables that you may read.",
        suggestion="Name its tables plainly in FROM or JOIN, without TABLESAMPLE or ONLY.",
    )


def _value(name: str, principal: Principal, of_policy: ValueOf) -> Any:
    return of_policy(name, principal) if _is_of_policy(name) else value_of(name, principal)


def _of_value(error: ParameterError, sent: Sequence[int | str]) -> DragomanError:
    """Return an error about values that were sent as one about the caller's own, or about what is known of them."""
    number = error.parameter
    held = sent if number is None else sent[number - 1 : number]
    own = [place + 1 for place in held if isinstance(place, int)]
    if own and number is not None:
        return error.replace(message=error.message.replace(f"Parameter {number}", f"Parameter {own[0]}", 1))
    if own or not held:
        return error
    names = dict.fromkeys(str(name) for name in held)
    whose = "The rules of this server hold" if any(map(_is_of_policy, names)) else "Your sign-in carries"
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
