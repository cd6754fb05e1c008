"""The contents of a database: schemas, relations, their columns, keys and indexes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal


@dataclass(frozen=True, slots=True)
class Relation:
    """The name of a table, a view or anything else with columns."""

    name: str
    schema: str | None = None
    catalog: str | None = None

    @property
    def parts(self) -> tuple[str, ...]:
        """The names that it has, the outermost first."""
        return tuple(part for part in (self.catalog, self.schema, self.name) if part is not None)

    def __str__(self) -> str:
        return ".".join(self.parts)


@dataclass(frozen=True, slots=True)
class Scope:
    """What an inspector is asked about, in bulk. Empty fields do not restrict; several fields restrict together.

    `catalogs` and `schemas` are stored names; `names` are the relations' own names.
    """

    catalogs: frozenset[str] = frozenset()
    schemas: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()

    def __contains__(self, relation: Relation) -> bool:
        """Return whether a relation is in the scope: `relation in scope`."""
        return (
            (not self.catalogs or relation.catalog in self.catalogs)
            and (not self.schemas or relation.schema in self.schemas)
            and (not self.names or relation.name in self.names)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """A schema. `system` ones are shown only on request.

    `search_order`: its place, from 0, among the schemas where names without a schema are looked up. None: it is not one
    of them, or the database does not report it.
    """

    name: str
    catalog: str | None = None
    owner: str | None = None
    comment: str | None = None
    system: bool = False
    search_order: int | None = None


RelationType = Literal["table", "view", "materialized view", "foreign table", "partitioned table", "virtual table"]


UNKNOWN_EXPRESSION: Final = "*"
"""`TableColumn.generated` of a column that is computed in a way that could not be read, or that callers may not see."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableColumn:
    """A column of a relation. `type`: the shortest spelling the database accepts. `enum`: its only values, in order.

    `default`, `generated` and `identity` are SQL text as the database reports it (`identity`: ALWAYS or BY DEFAULT).
    Where tables whose rows are its rows compute a column otherwise, their expressions follow in `generated`, separated
    by commas. `UNKNOWN_EXPRESSION` counts as made of every column.
    `names_objects`: numbers that a query mixes with its values become names of the database's objects, as those of
    Postgres' type `regclass` do.
    """

    name: str
    type: str
    nullable: bool = True
    default: str | None = None
    comment: str | None = None
    generated: str | None = None
    identity: str | None = None
    enum: tuple[str, ...] = ()
    names_objects: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Constraint:
    """A primary key, unique, check or exclusion constraint.

    - `definition`: the database's text. Always set for check and exclusion constraints, for others if it says more than
      the columns.
    - `proven`: whether the database ensures it for all rows that queries of the relation read. False for a key that
      only the configuration declares, and in Postgres for a key of a table from which others inherit.
    """

    type: Literal["PRIMARY KEY", "UNIQUE", "CHECK", "EXCLUDE"]
    name: str | None = None
    columns: tuple[str, ...] = ()
    definition: str | None = None
    proven: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignKey:
    """A foreign key: `columns` of `relation` reference `referenced_columns` of `references`, in this order.

    - `definition`: the database's text, if it says more than the other fields (DEFERRABLE, MATCH FULL, ...).
    - `suggested`: the evidence for a key that nobody declared, in words; empty for every other key.
    """

    relation: Relation
    columns: tuple[str, ...]
    references: Relation
    referenced_columns: tuple[str, ...]
    name: str | None = None
    on_update: str | None = None
    on_delete: str | None = None
    declared: bool = False
    definition: str | None = None
    suggested: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Index:
    """An index. `parts`: column names or expressions as SQL text, in order. `predicate`: of a partial index.

    `included`: columns that the index holds beside its parts.
    """

    name: str
    parts: tuple[str, ...]
    unique: bool = False
    primary: bool = False
    method: str | None = None
    predicate: str | None = None
    included: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """All facts that an inspector reports about one relation. `row_estimate` and `size_bytes`: None if unknown.

    - `partitioned_by`: the columns or expressions, as SQL text, whose values decide where rows are stored.
    - `partition_of`: the relation whose rows these are a part of. Lists and searches show only that one.
    - `shows`: the relation whose rows or words a virtual table shows, such as an index of another's text. Callers who
      may not read all of that relation see neither.
    """

    relation: Relation
    type: RelationType = "table"
    columns: tuple[TableColumn, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    indexes: tuple[Index, ...] = ()
    comment: str | None = None
    owner: str | None = None
    row_estimate: int | None = None
    size_bytes: int | None = None
    definition: str | None = None
    system: bool = False
    partitioned_by: tuple[str, ...] = ()
    partition_of: Relation | None = None
    shows: Relation | None = None

    @property
    def primary_key(self) -> tuple[str, ...]:
        """The primary key's columns in key order; empty without a primary key."""
        return next((c.columns for c in self.constraints if c.type == "PRIMARY KEY"), ())

    @property
    def proven_key(self) -> tuple[str, ...]:
        """The primary key's columns, if the database ensures that no two rows agree in them; else empty."""
        return next((c.columns for c in self.constraints if c.type == "PRIMARY KEY" and c.proven), ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """Relations of one schema and type by their names alone. `partition_of`: as in `Table`, of all of them."""

    names: tuple[str, ...]
    schema: str | None = None
    catalog: str | None = None
    type: RelationType = "table"
    system: bool = False
    partition_of: Relation | None = None


@dataclass(frozen=True, slots=True)
class Inspection:
    """An inspector's bulk answer. `notices` name what could not be read, so that one fault does not spoil the rest."""

    tables: tuple[Table, ...]
    notices: tuple[str, ...] = ()
