"""What was learned of a database, kept over restarts: one file per database, readable only by the gateway's user."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from dragoman._version import VERSION
from dragoman.model import ColumnProfile, Database, Relation, Table
from dragoman.private import write_private

FORMAT = 1
"""The version of the files. Files of another version are ignored."""
_log = logging.getLogger(__name__)


class Learned(msgspec.Struct, array_like=True):
    """What was learned of one relation. `mark`: its columns then. `at`: the time, in seconds since 1970.

    `profiles` stay encoded until the relation is used: a start must not wait for those of 1,000 others.
    """

    relation: tuple[str | None, str | None, str]
    mark: str
    profiles: msgspec.Raw
    at: float

    def decode(self) -> tuple[ColumnProfile, ...]:
        """Return the profiles; none if they are damaged."""
        try:
            return msgspec.msgpack.decode(self.profiles, type=tuple[ColumnProfile, ...])
        except msgspec.DecodeError:
            return ()


class _File(msgspec.Struct):
    format: int
    key: str
    learned: list[Learned]


class KnowledgeFile:
    """The file of one database in a folder. What cannot be read or written is left out and logged."""

    def __init__(self, folder: Path, database: Database) -> None:
        self._key = key_of(database)
        self._path = folder / f"{self._key[:32]}.knowledge"
        self._name = database.name

    def read(self) -> dict[Relation, Learned]:
        """Return what was learned before; nothing if another gateway, role or gate has learned it."""
        try:
            file = msgspec.msgpack.decode(self._path.read_bytes(), type=_File)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.DecodeError) as error:
            _log.warning("what was learned of %s could not be read: %s", self._name, type(error).__name__)
            return {}
        if (file.format, file.key) != (FORMAT, self._key):
            return {}
        return {_relation(each.relation): each for each in file.learned}

    def write(self, learned: Iterable[Learned]) -> None:
        """Replace the file atomically."""
        replace_file(self._path, msgspec.msgpack.encode(_File(FORMAT, self._key, list(learned))), self._name)


def replace_file(path: Path, content: bytes, database: str) -> None:
    """Write a file atomically, readable only by the gateway's user. A failure is logged."""
    try:
        write_private(path, content)
    except OSError as error:
        _log.warning("what was learned of %s could not be kept: %s", database, error.strerror)


def make_learned(table: Table, profiles: Mapping[str, ColumnProfile], age: float) -> Learned:
    """Return the entry to write for a relation that was learned `age` seconds ago."""
    name = (table.relation.catalog, table.relation.schema, table.relation.name)
    encoded = msgspec.Raw(msgspec.msgpack.encode(tuple(profiles.values())))
    return Learned(name, mark(table), encoded, time.time() - age)


def mark(table: Table) -> str:
    """Return a text that changes when the columns, keys or value types of a relation change."""
    facts: Sequence[object] = (table.columns, table.constraints, table.foreign_keys)
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:32]


def _relation(name: tuple[str | None, str | None, str]) -> Relation:
    catalog, schema, relation = name
    return Relation(relation, schema, catalog)


def key_of(database: Database) -> str:
    """Return a hash of the database's address, the reader, and what may be shown. Others may not use what is kept."""
    facts = (
        *(VERSION, database.name, database.dialect, str(database.folder), database.host, database.port),
        *(database.database, database.schema, database.user, database.schemas, database.knowledge, database.keys),
        sorted((name, repr(value)) for name, value in database.options.items()),
    )
    return hashlib.sha256(repr(facts).encode()).hexdigest()
