"""The contents of a database when it was last read, indexed for finding names."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Self

from dragoman.catalog.joins import Graph
from dragoman.catalog.listing import (
    Listing,
    SchemaKey,
    ambiguous,
    find_schema,
    find_schemas,
    fits,
    list_tables,
    missing_schema,
)
from dragoman.catalog.names import Namespace, Part, interpretations, near, parse_name
from dragoman.catalog.search import Index
from dragoman.dialect import Dialect
from dragoman.errors import NotFound, SchemaNotFound, TableNotFound
from dragoman.model import Relation, Schema, Table
from dragoman.words import close_quotes, display


@dataclass(frozen=True)
class Snapshot:
    """Every visible relation, frozen. `homes`: the schemas in which unqualified names are looked up, in order.

    `told`: the inspector's notices. `unused_keys`: notices about declared keys that name nothing.
    """

    tables: tuple[Table, ...]
    namespace: Namespace
    homes: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    unused_keys: tuple[str, ...] = ()
    version: int = 1
    known_schemas: tuple[Schema, ...] = ()

    def prepare(self) -> Self:
        """Return it with all indexes for names built. With 10,000 relations this belongs in a thread."""
        _ = self.visible, self.parts, self.listed, self.by_relation, self.schemas, self.listing, self.graph
        _ = self._by_name, self._schema_names, self._relations_by_name
        return self

    @property
    def dialect(self) -> Dialect:
        """The dialect names are written in."""
        return self.namespace.dialect

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices about what could not be read or used."""
        return (*self.told, *self.unused_keys)

    @cached_property
    def visible(self) -> tuple[Table, ...]:
        """The relations that are not the system's, ordered by schema and name."""
        return tuple(table for table in self.tables if not table.system)

    @cached_property
    def parts(self) -> dict[Relation, list[Table]]:
        """The partitions and children of the relations in this snapshot."""
        found: dict[Relation, list[Table]] = {}
        for table in self.visible:
            if table.partition_of in self.by_relation:
                found.setdefault(table.partition_of, []).append(table)
        return found

    @cached_property
    def listed(self) -> tuple[Table, ...]:
        """The visible relations without partitions and children, which another relation represents."""
        return tuple(filter(self.lists, self.tables))

    def lists(self, table: Table) -> bool:
        """Return whether a relation is listed: it is not the system's, and no other relation represents it."""
        return not table.system and table.partition_of not in self.by_relation

    @cached_property
    def by_relation(self) -> dict[Relation, Table]:
        """Every relation under its stored name."""
        return {table.relation: table for table in self.tables}

    @cached_property
    def schemas(self) -> dict[SchemaKey, list[Table]]:
        """Every schema, including empty ones, with its relations."""
        found: dict[SchemaKey, list[Table]] = {SchemaKey(s.name, s.catalog): [] for s in self.known_schemas}
        for table in self.tables:
            found.setdefault(SchemaKey(table.relation.schema, table.relation.catalog), []).append(table)
        return found

    @cached_property
    def listing(self) -> Listing:
        """The names of all relations."""
        return list_tables(self.tables, self.by_relation, self.namespace, self.known_schemas, self.notices)

    @cached_property
    def graph(self) -> Graph:
        """The foreign keys between relations."""
        return Graph(self.tables)

    @cached_property
    def index(self) -> Index:
        """The words of names and comments."""
        return Index(self.listed, (self.namespace.schema, self.namespace.catalog))

    @cached_property
    def _by_name(self) -> dict[str, list[Table]]:
        found: dict[str, list[Table]] = {}
        for table in self.tables:
            found.setdefault(table.relation.name.lower(), []).append(table)
        return found

    def find(self, name: str, schema: str | None = None) -> Table:
        """Return the relation that a name means in `schema`, or where the database would look for it.

        `name` is written as in SQL, or exactly as stored. Raises `ParameterError` if several match, `TableNotFound` or
        `SchemaNotFound` otherwise, without similar names.
        """
        if schema is not None:
            self.find_schema(schema)
        candidates = self.candidates(name, schema)
        if len(candidates) > 1:
            raise ambiguous(name, [self.namespace.name(table.relation) for table in candidates])
        return candidates[0]

    def candidates(self, name: str, schema: str | None = None) -> Sequence[Table]:
        """Return the relations that a name may mean: several if nothing says which. Raises `NotFound`, as `find`."""
        keys = None if schema is None else self.find_schemas(schema)
        for parts in interpretations(name, self.dialect):
            candidates = [table for table in self._find_named(parts) if keys is None or _key(table) in keys]
            if candidates:
                return self._narrow(candidates)
        raise self._missing(name, keys[0] if keys else None)

    def find_schema(self, written: str) -> SchemaKey:
        """Return the schema that a plain or dotted name means. Raises as `find` does."""
        return find_schema(written, self.schemas, self.namespace)

    def find_schemas(self, written: str) -> Sequence[SchemaKey]:
        """Return the schemas that a name may mean: several if nothing says which. Raises `SchemaNotFound`."""
        return find_schemas(written, self.schemas, self.namespace)

    def with_near_names(self, error: NotFound) -> NotFound:
        """Return an error of `find` with suggestions of similar names."""
        written = error.identifier or ""
        if isinstance(error, SchemaNotFound):
            return error.replace(suggestion=did_you_mean(near(written, self._schema_names)) or self._few_schemas())
        return error.replace(suggestion=did_you_mean(self.near_relations(written)) or error.suggestion)

    def _few_schemas(self) -> str:
        few = sorted(self._schema_names)[:10]
        return f"Schemas: {', '.join(map(display, few))}." if few else "Use list_schemas."

    @cached_property
    def _schema_names(self) -> tuple[str, ...]:
        return tuple(self.namespace.join(key.catalog, key.name) for key in self.schemas)

    @cached_property
    def _relations_by_name(self) -> dict[str, list[Relation]]:
        found: dict[str, list[Relation]] = {}
        for table in self.visible:
            found.setdefault(table.relation.name, []).append(table.relation)
        return found

    def near_relations(self, name: str, count: int = 3) -> list[str]:
        """Return relations with a name similar to `name`, as in SQL, best first."""
        parts = parse_name(name, self.dialect.lexicon) or (Part(name),)
        by_name = self._relations_by_name
        found = (
            each for stored in near(parts[-1].text, by_name, count) for each in self._nearest(parts, by_name[stored])
        )
        return [self.namespace.name(relation) for relation in itertools.islice(found, count)]

    def _nearest(self, parts: Sequence[Part], relations: Iterable[Relation]) -> list[Relation]:
        """Return relations of one name: first those in the place that was written, then those at home."""
        written, home = tuple(reversed(parts[:-1])), (self.namespace.schema, self.namespace.catalog)

        def distance(relation: Relation) -> tuple[int, int]:
            places = (relation.schema, relation.catalog)
            wrong = [part for part, place in zip(written, places, strict=False) if not part.names(place, self.dialect)]
            return len(wrong), sum(place != own for place, own in zip(places, home, strict=True))

        return sorted(relations, key=distance)

    def near_columns(self, name: str, relations: Iterable[Relation] = ()) -> list[str]:
        """Return columns with a name similar to `name`, of `relations`, or of every relation if there are none."""
        wanted = [self.by_relation[relation] for relation in relations if relation in self.by_relation]
        parts = parse_name(name, self.dialect.lexicon) or (Part(name),)
        names = (column.name for table in wanted or self.visible for column in table.columns)
        return [self.dialect.quote(column) for column in near(parts[-1].text, names)]

    def relations_with(self, column: str, joined: Collection[Relation]) -> list[Relation]:
        """Return the relations that have a column of this name, as in SQL.

        If some of them are among `joined`, return only these; else those that keys join to them, or those in the same
        schemas.
        """
        parts = parse_name(column, self.dialect.lexicon) or (Part(column),)
        found = [
            table
            for table in self._by_column.get(parts[-1].text.lower(), ())
            if any(parts[-1].names(each.name, self.dialect) for each in table.columns)
        ]
        near = {other for each in joined for other in self.graph.neighbours(each)}
        beside = {_key(self.by_relation[each]) for each in joined if each in self.by_relation}
        preferred = (
            [table for table in found if table.relation in joined],
            [table for table in found if table.relation in near],
            [table for table in found if _key(table) in beside],
        )
        return [table.relation for table in next(filter(None, preferred), found)]

    def find_word(self, word: str) -> str | None:
        """Return the name of a relation, or else of a column, that is this word in lower case, as it is stored."""
        relations = (table.relation.name for table in self._by_name.get(word, ()) if not table.system)
        columns = (column.name for table in self._by_column.get(word, ()) for column in table.columns)
        return next(itertools.chain(relations, (name for name in columns if name.lower() == word)), None)

    @cached_property
    def _by_column(self) -> dict[str, list[Table]]:
        found: dict[str, list[Table]] = {}
        for table in self.visible:
            for name in {column.name.lower() for column in table.columns}:
                found.setdefault(name, []).append(table)
        return found

    def _find_named(self, parts: Sequence[Part]) -> Iterator[Table]:
        for table in self._by_name.get(parts[-1].text.lower(), ()):
            relation = table.relation
            stored = (relation.name, relation.schema, relation.catalog)
            if len(parts) <= 3 and all(
                part.names(name, self.dialect) for part, name in zip(reversed(parts), stored, strict=False)
            ):
                yield table

    def _narrow(self, candidates: list[Table]) -> list[Table]:
        for narrow in self._preferences():
            if len(candidates) > 1:
                candidates = [table for table in candidates if narrow(table)] or candidates
        return candidates

    def _preferences(self) -> Iterator[Callable[[Table], bool]]:
        yield lambda table: table.relation.catalog == self.namespace.catalog
        for home in self.homes:
            yield partial(_in_schema, home)
        yield lambda table: not table.system

    def _missing(self, name: str, key: SchemaKey | None) -> NotFound:
        parts = parse_name(name, self.dialect.lexicon)
        if (
            key is None
            and parts is not None
            and len(parts) > 1
            and not any(fits(parts[:-1], key, self.namespace) for key in self.schemas)
        ):
            return missing_schema(self.namespace.join(*(part.text for part in parts[:-1])))
        where = f" in schema {self.namespace.join(key.catalog, key.name)}" if key else ""
        return TableNotFound(
            f"There is no table {display(name)}{where}.",
            suggestion="Use list_tables or search_catalog to see which tables exist.",
            identifier=name,
        )


def _key(table: Table) -> SchemaKey:
    return SchemaKey(table.relation.schema, table.relation.catalog)


def _in_schema(schema: str, table: Table) -> bool:
    return table.relation.schema == schema


def did_you_mean(names: Sequence[str]) -> str:
    """Return names, as in SQL, as a question; empty without any. Foreign names stand in quotes."""
    return f"Did you mean {' or '.join(map(quote_name, names))}?" if names else ""


def quote_name(name: str) -> str:
    """Return a name, as in SQL, in quotes and shortened for a message: it is data, whatever it says."""
    line = close_quotes(display(name))
    return line if any(mark in line for mark in '"`[') else f'"{line}"'
