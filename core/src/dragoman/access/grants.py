"""What grants say about one relation: whether their holder sees it, and which of its columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dragoman.access.expressions import MASKS, expression
from dragoman.access.generated import leave_out_telling
from dragoman.access.parts import Part, to_read, unite
from dragoman.access.patterns import ByName, ColumnPattern, RelationPattern
from dragoman.config.roles import Grant
from dragoman.dialect import Capability, Dialect
from dragoman.errors import ConfigurationError
from dragoman.model import ConfinedRelation, Database, Expression, Relation, Table, TableColumn

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadGrant:
    """A configured grant with its patterns parsed. `role`: the name of the role that has it."""

    role: str
    key: str
    tables: tuple[RelationPattern, ...]
    deny: tuple[RelationPattern, ...]
    columns: tuple[ColumnPattern, ...]
    deny_columns: tuple[ColumnPattern, ...]
    filter: Expression | None = None
    masks: tuple[tuple[ColumnPattern, str | Expression], ...] = ()

    @property
    def confines(self) -> bool:
        """Whether it filters rows or masks columns."""
        return self.filter is not None or bool(self.masks)

    @classmethod
    def read(cls, role: str, grant: Grant) -> ReadGrant:
        """Return a grant with its patterns parsed. Raises `ConfigurationError` for one that cannot be parsed."""
        return cls(
            role=role,
            key=grant.key,
            tables=tuple(relation_pattern(text, f"{grant.key}.tables") for text in grant.tables),
            deny=tuple(relation_pattern(text, f"{grant.key}.deny") for text in grant.deny),
            columns=tuple(column_pattern(text, f"{grant.key}.columns") for text in grant.columns),
            deny_columns=tuple(column_pattern(text, f"{grant.key}.deny_columns") for text in grant.deny_columns),
            filter=None if grant.filter is None else expression(grant.filter, f"{grant.key}.filter"),
            masks=tuple(_mask(column, shown, f"{grant.key}.masks") for column, shown in grant.masks.items()),
        )


def _mask(column: str, shown: str, key: str) -> tuple[ColumnPattern, str | Expression]:
    return column_pattern(column, key), shown if shown in MASKS else expression(shown, f'{key}."{column}"')


def named_mask(name: str, column: TableColumn, dialect: Dialect) -> Expression:
    """Return one of the dialect's masks for a column."""
    return Expression((dialect.masks[name].format(column=dialect.quote(column.name), type=column.type),))


def relation_pattern(text: str, key: str) -> RelationPattern:
    """Return the pattern of relations in a text. Raises `ConfigurationError`."""
    found = RelationPattern.read(text)
    if found is None:
        raise ConfigurationError(
            f"{key}: {text!r} is not a pattern of tables.",
            suggestion='Write schema.table, such as "sales.orders" or "sales.*", or "*" for all.',
        )
    return found


def column_pattern(text: str, key: str) -> ColumnPattern:
    """Return the pattern of columns in a text. Raises `ConfigurationError`."""
    found = ColumnPattern.read(text)
    if found is None:
        raise ConfigurationError(
            f"{key}: {text!r} is not a pattern of columns.",
            suggestion='Write a column, such as "email", or schema.table.column, such as "sales.customers.email".',
        )
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a caller may read of a relation.

    - `columns`: in the table's order.
    - `whole`: every column of every row.
    - `always`: the same of every column that it had before, or may get.
    - `named`: a grant names the relation itself, not by a pattern.
    - `keys`: where the grants are configured.
    - `confined`: what statements read in its place, if that is not what is stored and the dialect can confine callers.
    """

    columns: tuple[str, ...]
    whole: bool
    named: bool
    always: bool = False
    keys: tuple[str, ...] = ()
    confined: ConfinedRelation | None = None

    @property
    def filtered(self) -> bool:
        """Whether some of its rows may be missing."""
        return self.confined is not None and self.confined.filter is not None

    @property
    def changed(self) -> frozenset[str]:
        """The columns whose shown values differ from the stored ones."""
        columns = self.confined.columns if self.confined else ()
        return frozenset(column.name for column in columns if column.mask is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseAccess:
    """What the holders of some roles may do in one database. `roles`: the names of all these roles.

    `max_rows`, `timeout` (seconds) and `max_cost` (in the database's unit): None where no role sets a limit.
    """

    roles: tuple[str, ...]
    grants: tuple[ReadGrant, ...]
    max_rows: int | None = None
    timeout: float | None = None
    max_cost: float | None = None


def _speaks_of_columns(grant: ReadGrant) -> bool:
    return bool(grant.columns or grant.deny_columns or grant.masks)


def _lists_columns(grant: ReadGrant) -> bool:
    """Return whether a grant gives only columns that it names."""
    return bool(grant.columns) and all(pattern.column.exact for pattern in grant.columns)


class _Narrow:
    """Narrows a grant to what it says about the columns of one relation."""

    def __init__(self, grant: ReadGrant, dialect: Dialect) -> None:
        self._grant = grant
        self._bare = replace(grant, deny_columns=(), masks=())
        self._columns = ByName(dialect, [(each.relation, each) for each in grant.columns])
        self._denied = ByName(dialect, [(each.relation, each) for each in grant.deny_columns])
        self._masks = ByName(dialect, [(each[0].relation, each) for each in grant.masks])

    def to(self, relation: Relation) -> ReadGrant:
        columns = self._columns.find(relation.name)
        denied = self._denied.find(relation.name)
        masks = self._masks.find(relation.name)
        if not (columns or denied or masks):
            return self._bare
        return replace(
            self._grant,
            # Without any pattern it would give all of them.
            columns=tuple(columns) or self._grant.columns,
            deny_columns=tuple(denied),
            masks=tuple(masks),
        )


class Grants:
    """Grants on a database of a dialect. Decides about its relations."""

    def __init__(self, grants: Iterable[ReadGrant], dialect: Dialect, database: Database) -> None:
        self._grants = tuple(grants)
        self._dialect = dialect
        self._home = database.database if Capability.CATALOGS in dialect.capabilities else None
        # Where the engine knows the callers, it may hide a column from some of them.
        self._sees_all_columns = database.identity == "gateway"
        tables = [(pattern, grant) for grant in self._grants for pattern in grant.tables]
        denied = [(pattern, f"{grant.key}.deny") for grant in self._grants for pattern in grant.deny]
        self._granting = ByName(dialect, [(each[0].parts[-1], each) for each in tables])
        self._denying = ByName(dialect, [(each[0].parts[-1], each) for each in denied])
        self._narrow = {id(grant): _Narrow(grant, dialect) for grant in self._grants if _speaks_of_columns(grant)}

    def reaches(self, schema: str | None, catalog: str | None) -> bool:
        """Return whether something in a schema may be granted."""
        patterns = (pattern for grant in self._grants for pattern in grant.tables)
        return any(pattern.reaches(schema, catalog, self._dialect, self._home) for pattern in patterns)

    def on(self, table: Table) -> Permission | None:
        """Return what may be read of a relation. None: for the caller, it does not exist."""
        if table.system or self.find_denials(table.relation):
            return None
        naming = list(self.granting(table.relation))
        confines = any(grant.confines for grant in naming)
        if confines and self._dialect.confine is None:
            return None  # the dialect could not confine callers to a part of it
        granting = [self._of_relation(grant, table.relation) for grant in naming]
        if self._is_given_as_stored(granting, table):
            return self._whole(granting, table)
        if self._lost_hidden_column(granting, table):
            return None
        columns = self._columns(granting, table)
        if not granting or (table.columns and not columns):
            return None
        if not table.columns and any(map(_speaks_of_columns, granting)):
            return None  # its columns are not known, as those of a view that the engine hides
        if confines and not columns:
            return None
        parts = [self._part(grant, table.relation, columns) for grant in granting]
        confined = unite(table.relation, columns, parts, self._dialect)
        whole = len(columns) == len(table.columns) and confined.whole
        return Permission(
            columns=tuple(column.name for column in columns),
            whole=whole,
            named=self._names_relation(granting, table.relation),
            always=whole and self._hides_nothing(granting, table.relation),
            keys=tuple(grant.key for grant in granting),
            confined=to_read(confined, table, self._dialect),
        )

    def _is_given_as_stored(self, granting: Sequence[ReadGrant], table: Table) -> bool:
        """Return whether one grant gives all of a relation, and none hides a column: the case of most relations."""
        return (
            bool(table.columns)
            and any(grant.filter is None and not grant.columns for grant in granting)
            and not any(grant.deny_columns or grant.masks for grant in granting)
            and not any(column.names_objects for column in table.columns)
        )

    def _whole(self, granting: Sequence[ReadGrant], table: Table) -> Permission:
        return Permission(
            columns=tuple([column.name for column in table.columns]),
            whole=True,
            named=self._names_relation(granting, table.relation),
            always=True,
            keys=tuple([grant.key for grant in granting]),
        )

    def _names_relation(self, granting: Sequence[ReadGrant], relation: Relation) -> bool:
        exact = (pattern for grant in granting for pattern in grant.tables if pattern.exact)
        return any(self.fits(pattern, relation) for pattern in exact)

    def _of_relation(self, grant: ReadGrant, relation: Relation) -> ReadGrant:
        narrow = self._narrow.get(id(grant))
        return narrow.to(relation) if narrow else grant

    def _lost_hidden_column(self, granting: Sequence[ReadGrant], table: Table) -> bool:
        """Return whether a relation lacks a column that a grant hides or masks by its whole name.

        It may have another name now, under which nothing hides it.
        """
        if not self._sees_all_columns or all(map(_lists_columns, granting)):
            return False
        for grant in granting:
            for pattern in (*grant.deny_columns, *(each for each, _ in grant.masks)):
                if self._names_column_of(pattern, table.relation) and not self._hides_any(pattern, table):
                    _log.error("%s is closed: it lacks the column of %s: %s", table.relation, grant.key, pattern.text)
                    return True
        return False

    def _names_column_of(self, pattern: ColumnPattern, relation: Relation) -> bool:
        return pattern.exact and self.fits(RelationPattern(pattern.relations), relation)

    def _hides_any(self, pattern: ColumnPattern, table: Table) -> bool:
        columns = [column.name for column in table.columns]
        return not columns or any(pattern.hides(table.relation, name, self._dialect) for name in columns)

    def _columns(self, granting: Sequence[ReadGrant], table: Table) -> list[TableColumn]:
        """Return the granted columns of a relation, without those computed from hidden or masked columns."""
        relation = table.relation
        given = [column for column in table.columns if self._has(granting, relation, column.name)]
        if not any(column.generated for column in given):
            return given
        parts = [self._part(grant, relation, given) for grant in granting]
        masked = {name for part in parts for name in part.masks}
        own = {column.name for column in given if all(column.name in part.masks for part in parts)}
        hidden = {column.name for column in table.columns} - {column.name for column in given} | masked
        if not hidden and self._hides_nothing(granting, relation):
            return given
        named = {column.name for column in given if self._names(granting, relation, column)}
        return leave_out_telling(given, hidden, own | named)

    def _hides_nothing(self, granting: Sequence[ReadGrant], relation: Relation) -> bool:
        """Return whether grants would give a relation whole, whatever its columns were."""
        denied = (pattern for grant in granting for pattern in grant.deny_columns)
        if any(pattern.fits_relation(relation, self._dialect) for pattern in denied):
            return False
        return any(not grant.columns and not self._masks_any(grant, relation) for grant in granting)

    def _masks_any(self, grant: ReadGrant, relation: Relation) -> bool:
        return any(pattern.fits_relation(relation, self._dialect) for pattern, _ in grant.masks)

    def _names(self, granting: Sequence[ReadGrant], relation: Relation, column: TableColumn) -> bool:
        """Return whether a grant names a column itself, not by a pattern."""
        exact = (pattern for grant in granting for pattern in grant.columns if pattern.column.exact)
        return any(pattern.fits(relation, column.name, self._dialect) for pattern in exact)

    def _part(self, grant: ReadGrant, relation: Relation, columns: Sequence[TableColumn]) -> Part:
        """Return what one grant gives of some columns of a relation."""
        given = [column for column in columns if self._gives(grant, relation, column.name)]
        masks = {column.name: shown for column in given if (shown := self._mask(grant, relation, column))}
        return Part(grant.filter, frozenset(column.name for column in given), masks)

    def _mask(self, grant: ReadGrant, relation: Relation, column: TableColumn) -> Expression | None:
        fitting = (shown for pattern, shown in grant.masks if pattern.hides(relation, column.name, self._dialect))
        shown = next(fitting, None)
        return named_mask(shown, column, self._dialect) if isinstance(shown, str) else shown

    def granting(self, relation: Relation) -> Iterator[ReadGrant]:
        """Yield the grants that name a relation."""
        last = None
        for pattern, grant in self._granting.find(relation.name):
            if grant is not last and self.fits(pattern, relation):
                last = grant
                yield grant

    def find_denials(self, relation: Relation) -> list[str]:
        """Return the keys that deny a relation. No role can give back what another denies."""
        found = self._denying.find(relation.name)
        return list(dict.fromkeys(key for pattern, key in found if self.fits(pattern, relation)))

    def _has(self, granting: Sequence[ReadGrant], relation: Relation, column: str) -> bool:
        if any(pattern.hides(relation, column, self._dialect) for grant in granting for pattern in grant.deny_columns):
            return False
        return any(self._gives(grant, relation, column) for grant in granting)

    def _gives(self, grant: ReadGrant, relation: Relation, column: str) -> bool:
        return not grant.columns or any(pattern.fits(relation, column, self._dialect) for pattern in grant.columns)

    def is_open(self, found: Mapping[Relation, Permission], tables: Sequence[Table]) -> bool:
        """Return False: relations behind views must always be checked, since grants may leave out the engine's own."""
        return False

    def fits(self, pattern: RelationPattern, relation: Relation) -> bool:
        """Return whether a pattern matches a relation of this database."""
        return pattern.fits(relation, self._dialect, self._home)
