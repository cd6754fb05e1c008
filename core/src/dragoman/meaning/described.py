"""An inspector that adds descriptions from files to relations, where the database itself has none."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from dataclasses import replace

from dragoman.dialect import Inspector, WrappedInspector
from dragoman.meaning.values import ColumnText, Meaning, TableText, WrittenKey
from dragoman.model import Constraint, ForeignKey, Inspection, Names, Relation, Scope, Table, TableColumn

NOTHING = ColumnText()
_log = logging.getLogger(__name__)


class DescribedInspector(WrappedInspector):
    """Adds descriptions, values and keys to what `inner` reports. Whatever the database reports itself wins."""

    def __init__(self, inner: Inspector, meaning: Meaning, database: str) -> None:
        super().__init__(inner)
        self._database = database
        self._texts: dict[str, list[TableText]] = {}
        for text in meaning.tables:
            self._texts.setdefault(text.name[-1].casefold(), []).append(text)
        self._seen: dict[str, dict[Relation, Table]] = {}
        self._checked = False

    async def names(self, scope: Scope) -> Sequence[Names] | None:
        """Return `Inspector.names` of the wrapped inspector."""
        return await self.inner.names(scope)

    async def tables(self, scope: Scope) -> Inspection:
        """Return `Inspector.tables`, with the descriptions added."""
        seen = await self.inner.tables(scope)
        self._remember(scope, seen.tables)
        if not self._checked:
            self._checked = True
            self._tell_unused()
        return replace(seen, tables=tuple(map(self._describe, seen.tables)))

    async def details(self, tables: Sequence[Table]) -> Sequence[Table]:
        """Return `Inspector.details`, with the descriptions added."""
        return [self._describe(table) for table in await self.inner.details(tables)]

    def _remember(self, scope: Scope, tables: Iterable[Table]) -> None:
        """Replace what was remembered of a scope by these tables: some may no longer exist."""
        kept = [table for same in self._seen.values() for table in same.values() if table.relation not in scope]
        self._seen = {}
        for table in (*kept, *tables):
            self._seen.setdefault(table.relation.name.casefold(), {})[table.relation] = table

    def _tell_unused(self) -> None:
        """Warn about descriptions of missing relations.

        For a whole project, warn only if none of its relations exists.
        """
        unused = [text for texts in self._texts.values() for text in texts if not self._find(text.name)]
        for text in unused:
            if not text.optional:
                _log.warning("%s: %s has no table %s", text.place, self._database, ".".join(text.name))
        by_file = {text.place for texts in self._texts.values() for text in texts if text.optional}
        used = {text.place for texts in self._texts.values() for text in texts if text not in unused}
        for file in sorted(by_file - used):
            _log.warning("%s: %s has none of its tables", file, self._database)

    def _find(self, name: tuple[str, ...], near: Relation | None = None) -> list[Relation]:
        """Return the relations that a written name may mean, those of a schema first."""
        found = [each for each in self._seen.get(name[-1].casefold(), ()) if fits(name, each)]
        return sorted(
            found, key=lambda each: near is None or (each.schema, each.catalog) != (near.schema, near.catalog)
        )

    def _describe(self, table: Table) -> Table:
        for text in self._texts.get(table.relation.name.casefold(), ()):
            if fits(text.name, table.relation):
                table = self._add(table, text)
        return table

    def _add(self, table: Table, text: TableText) -> Table:
        columns = tuple(
            _describe(column, text.columns.get(column.name.casefold(), NOTHING)) for column in table.columns
        )
        key = _names(table, text.primary_key)
        own = (Constraint(type="PRIMARY KEY", columns=key, proven=False),) if key and not table.primary_key else ()
        return replace(
            table,
            comment=table.comment or text.description or None,
            columns=columns,
            constraints=(*own, *table.constraints),
            foreign_keys=(*table.foreign_keys, *self._keys(table, text.keys)),
        )

    def _keys(self, table: Table, keys: Iterable[WrittenKey]) -> Iterable[ForeignKey]:
        """Yield the keys between existing relations that the database does not report itself."""
        known = {(key.columns, key.references) for key in table.foreign_keys}
        for key in keys:
            columns = _names(table, key.columns)
            for target in self._find(key.references, table.relation)[:1]:
                there = _names(self._seen[target.name.casefold()][target], key.referenced_columns)
                if columns and there and (columns, target) not in known:
                    yield ForeignKey(
                        relation=table.relation,
                        columns=columns,
                        references=target,
                        referenced_columns=there,
                        declared=True,
                    )


def fits(name: tuple[str, ...], relation: Relation) -> bool:
    """Return whether a written name, which may lack parts, can mean a relation, regardless of case."""
    own = (relation.name, relation.schema, relation.catalog)
    pairs = zip(reversed(name), own, strict=False)
    return all(part is None or written.casefold() == part.casefold() for written, part in pairs)


def _names(table: Table, written: Sequence[str]) -> tuple[str, ...]:
    """Return the stored names of these columns; none if one of them does not exist."""
    stored = {column.name.casefold(): column.name for column in table.columns}
    found = tuple(stored[name.casefold()] for name in written if name.casefold() in stored)
    return found if len(found) == len(written) else ()


def _describe(column: TableColumn, text: ColumnText) -> TableColumn:
    if text is NOTHING:
        return column
    return replace(column, comment=column.comment or text.description or None, enum=column.enum or text.values)
