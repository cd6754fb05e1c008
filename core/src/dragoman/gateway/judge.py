"""Statements are judged before they run: text, then every validator. What was judged is what is sent."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from dragoman.catalog import Catalog
from dragoman.dialect import Call, Dialect, Resolution, Validator
from dragoman.errors import DragomanError, NotFound
from dragoman.gateway.failures import located
from dragoman.model import Database, Principal, Relation, Table
from dragoman.sql import Statement

REMEMBERED = 1024
"""Verdicts kept per database, the least recently used forgotten first."""

_Key = tuple[str, str, int, str | None]


class Judge:
    """Judges the statements of one database and remembers what it let pass, by everything a verdict depends on."""

    def __init__(self, dialect: Dialect, database: Database, catalog: Catalog, validators: Sequence[Validator]) -> None:
        self._dialect = dialect
        self._database = database
        self._catalog = catalog
        self._validators = validators
        self._personal = any(validator.depends_on_principal for validator in validators)
        self._passed: OrderedDict[_Key, Statement] = OrderedDict()

    async def judge(self, sql: str, tool: str, principal: Principal) -> Statement:
        """Return the statement to send. Raises `InvalidSql`, `WriteDenied` or `UnsafeSql`."""
        key = (sql, tool, self._catalog.version, principal.name if self._personal else None)
        if key in self._passed:
            self._passed.move_to_end(key)
            return self._passed[key]
        try:
            statement = await self._checked(sql, tool, principal)
        except DragomanError as error:
            raise located(error, sql) from None
        self._passed[key] = statement
        if len(self._passed) > REMEMBERED:
            self._passed.popitem(last=False)
        return statement

    async def _checked(self, sql: str, tool: str, principal: Principal) -> Statement:
        statement = Statement.parse(sql, sqlglot=self._dialect.sqlglot, lexicon=self._dialect.lexicon)
        call = Call(principal=principal, tool=tool, database=self._database, resolve=lambda: self._resolve(statement))
        for validator in self._validators:
            await validator.check(statement, call)
        return statement

    async def _resolve(self, statement: Statement) -> Resolution:
        """The relations a statement names, as the catalog knows them; one it does not know stays as written."""
        judge = self._dialect.judge
        written = judge(statement, self._database).relations if judge else statement.relations()
        known = [await self._known(relation) for relation in written]
        return Resolution(
            tuple(table.relation for table in known),
            foreign=tuple(table.relation for table in known if table.type == "foreign table"),
        )

    async def _known(self, written: Relation) -> Table:
        schema = ".".join(self._dialect.quote(part) for part in (written.catalog, written.schema) if part)
        try:
            return await self._catalog.find(self._dialect.quote(written.name), schema or None)
        except NotFound:
            return Table(relation=written)
