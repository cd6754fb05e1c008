"""Documentation of a database as plain values, whatever file it comes from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Literal

NoteKind = Literal["term", "metric", "convention"]


class WrongFile(ValueError):
    """A problem in a file, and its line, from 1."""

    def __init__(self, line: int, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.remedy = line, message, remedy


@dataclass(frozen=True, slots=True)
class ColumnText:
    """The description of a column. `values`: the only values it has, according to its owners."""

    description: str = ""
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """A foreign key from a file. `references`: a table's name, as in `TableText`."""

    columns: tuple[str, ...]
    references: tuple[str, ...]
    referenced_columns: tuple[str, ...]


def _no_columns() -> Mapping[str, ColumnText]:
    return MappingProxyType({})


@dataclass(frozen=True, slots=True)
class TableText:
    """The description of a relation. `name`: as many parts as the file gives, the relation's own name last.

    Columns are keyed by their names in lower case, since files seldom keep the database's case. `optional`: the
    relation may be elsewhere, as most relations of a dbt project are.
    """

    name: tuple[str, ...]
    description: str = ""
    columns: Mapping[str, ColumnText] = field(default_factory=_no_columns)
    primary_key: tuple[str, ...] = ()
    keys: tuple[WrittenKey, ...] = ()
    place: str = ""
    optional: bool = False

    def merge(self, other: TableText) -> TableText:
        """Return this description, completed by what only `other` has."""
        columns = dict(other.columns)
        for name, text in self.columns.items():
            more = columns.get(name, ColumnText())
            columns[name] = ColumnText(text.description or more.description, text.values or more.values)
        return replace(
            self,
            description=self.description or other.description,
            columns=MappingProxyType(columns),
            primary_key=self.primary_key or other.primary_key,
            keys=tuple(dict.fromkeys((*self.keys, *other.keys))),
            optional=self.optional and other.optional,
        )


@dataclass(frozen=True, slots=True)
class Note:
    """A term of the glossary, a metric with its formula, or a convention, which has no name."""

    kind: NoteKind
    text: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.text}" if self.name else f"{self.kind}: {self.text}"


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the query that answers it. `place`: the file and the line."""

    question: str
    sql: str
    place: str = ""

    def __str__(self) -> str:
        return f"example {self.question}: {' '.join(self.sql.split())}"


@dataclass(frozen=True, slots=True)
class Meaning:
    """The contents of all files about one database. `about`: a description of the database in a sentence or two."""

    about: str = ""
    tables: tuple[TableText, ...] = ()
    notes: tuple[Note, ...] = ()
    examples: tuple[Example, ...] = ()

    @classmethod
    def join(cls, parts: Sequence[Meaning]) -> Meaning:
        """Return the contents of several files together. If two describe the same thing, the first counts."""
        return cls(
            about=next((part.about for part in parts if part.about), ""),
            tables=_merge(table for part in parts for table in part.tables),
            notes=tuple(
                {(note.kind, note.name or note.text): note for part in parts[::-1] for note in part.notes}.values()
            ),
            examples=tuple({each.question: each for part in parts[::-1] for each in part.examples}.values()),
        )


def _merge(tables: Iterable[TableText]) -> tuple[TableText, ...]:
    found: dict[tuple[str, ...], TableText] = {}
    for table in tables:
        name = tuple(part.casefold() for part in table.name)
        found[name] = found[name].merge(table) if name in found else table
    return tuple(found.values())
