"""The names of relations without their contents, from which lists of relations are made."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Literal, NamedTuple

import msgspec

from dragoman.catalog.names import Namespace, Part, interpretations
from dragoman.collection import pause_collection
from dragoman.dialect import Dialect, quote_all
from dragoman.errors import ParameterError, SchemaNotFound
from dragoman.model import Names, Relation, Schema, Table
from dragoman.words import display

_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class SchemaKey:
    """A schema by its stored names."""

    name: str | None
    catalog: str | None = None


class Entry(NamedTuple):
    """A relation in a list. `part`: another listed relation represents it. `written`: its name as SQL.

    `cost`: the bytes of the name in a list of minified JSON, with a comma.
    """

    name: str
    kind: Literal["table", "view"]
    system: bool
    part: bool
    written: str
    cost: int

    @property
    def is_listed(self) -> bool:
        """Whether it is listed: it is not the system's, and no other relation represents it."""
        return not (self.system or self.part)


@dataclass(frozen=True)
class Listing:
    """Every visible relation by name: the entries of each schema, including empty schemas, ordered by name."""

    namespace: Namespace
    schemas: dict[SchemaKey, list[Entry]]
    known: tuple[Schema, ...] = ()
    notices: tuple[str, ...] = ()

    def list_shown(self) -> Iterator[Entry]:
        """Yield the relations that are not the system's and that no other relation represents."""
        return (each for entries in self.schemas.values() for each in entries if each.is_listed)

    def find_schema(self, written: str) -> SchemaKey:
        """Return the schema that a plain or dotted name means. Raises `ParameterError` and `SchemaNotFound`."""
        return find_schema(written, self.schemas, self.namespace)


def list_groups(groups: Sequence[Names], namespace: Namespace, known: tuple[Schema, ...]) -> Listing:
    """Return the listing of groups of names. `known`: the visible schemas."""
    parents = {group.partition_of for group in groups} - {None}
    there = {parent for parent in parents if parent is not None and any(_holds(group, parent) for group in groups)}
    schemas: dict[SchemaKey, list[Entry]] = {SchemaKey(each.name, each.catalog): [] for each in known}
    with pause_collection():
        for group in groups:
            key, part = SchemaKey(group.schema, group.catalog), group.partition_of in there
            schemas.setdefault(key, []).extend(_entries(group, part, namespace.dialect))
        return Listing(namespace, _in_order(schemas), known)


def list_tables(
    tables: Iterable[Table],
    known_relations: Collection[Relation],
    namespace: Namespace,
    known: tuple[Schema, ...],
    notices: tuple[str, ...],
) -> Listing:
    """Return the listing of relations that are fully known."""
    schemas: dict[SchemaKey, list[Entry]] = {SchemaKey(each.name, each.catalog): [] for each in known}
    for table in tables:
        relation, part = table.relation, table.partition_of in known_relations
        entry = _entry(relation.name, kind_of(table.type), table.system, part, namespace)
        schemas.setdefault(SchemaKey(relation.schema, relation.catalog), []).append(entry)
    return Listing(namespace, _in_order(schemas), known, notices)


def kind_of(type_: str) -> Literal["table", "view"]:
    """Return whether relations of a type are stored or computed, in the words that agents use."""
    return "view" if type_.endswith("view") else "table"


def _holds(group: Names, relation: Relation) -> bool:
    return (group.schema, group.catalog) == (relation.schema, relation.catalog) and relation.name in group.names


def _entries(group: Names, part: bool, dialect: Dialect) -> Iterable[Entry]:
    names = sorted(group.names)  # faster than entries are, which come in order so
    written = quote_all(dialect, names)
    costs = [len(text) + 1 for text in map(_encode, written)]
    alike = (repeat(fact, len(names)) for fact in (kind_of(group.type), group.system, part))
    return map(Entry._make, zip(names, *alike, written, costs, strict=True))


def _entry(name: str, kind: Literal["table", "view"], system: bool, part: bool, namespace: Namespace) -> Entry:
    written = namespace.dialect.quote(name)
    return Entry(name, kind, system, part, written, len(_encode(written)) + 1)


def _in_order(schemas: dict[SchemaKey, list[Entry]]) -> dict[SchemaKey, list[Entry]]:
    for entries in schemas.values():
        entries.sort()
    return schemas


def find_schema(written: str, keys: Collection[SchemaKey], namespace: Namespace) -> SchemaKey:
    """Return the schema that a plain or dotted name means. Raises `ParameterError` and `SchemaNotFound`."""
    fitting = find_schemas(written, keys, namespace)
    if len(fitting) > 1:
        raise ambiguous(written, [namespace.join(key.catalog, key.name) for key in fitting])
    return fitting[0]


def find_schemas(written: str, keys: Collection[SchemaKey], namespace: Namespace) -> Sequence[SchemaKey]:
    """Return the schemas that a name may mean: several if nothing says which. Raises `SchemaNotFound`."""
    for parts in interpretations(written, namespace.dialect):
        fitting = [key for key in keys if fits(parts, key, namespace)]
        if len(fitting) > 1:
            fitting = [key for key in fitting if key.catalog == namespace.catalog] or fitting
        if fitting:
            return fitting
    raise missing_schema(written)


def fits(parts: Sequence[Part], key: SchemaKey, namespace: Namespace) -> bool:
    """Return whether the parts of a name mean a schema."""
    stored = (key.name, key.catalog)
    return len(parts) <= 2 and all(
        part.names(name, namespace.dialect) for part, name in zip(reversed(parts), stored, strict=False)
    )


def missing_schema(written: str) -> SchemaNotFound:
    """Return the error for a name that means no schema."""
    return SchemaNotFound(f"There is no schema {display(written)}.", identifier=written)


def ambiguous(written: str, candidates: Sequence[str]) -> ParameterError:
    """Return the error for a name that several candidates match."""
    return ParameterError(
        f"{display(written)} is ambiguous: {', '.join(map(display, sorted(candidates)[:10]))}.",
        suggestion="Write it with its schema.",
        identifier=written,
    )
