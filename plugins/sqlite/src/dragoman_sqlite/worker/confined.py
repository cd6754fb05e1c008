"""A connection on which views replace some tables. Nothing else reaches those tables."""

# pyright: reportUnknownMemberType=false
# (apsw's stubs name a type that Python 3.11 does not have)

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, cast
from urllib.parse import quote

import apsw
from dragoman.words import lower_ascii

from dragoman_sqlite.frames import HASH, NONE, VALUE, Confine
from dragoman_sqlite.quoting import quote_name
from dragoman_sqlite.worker.authorizer import Authorizer

_OWN = frozenset({HASH, VALUE})


class Wall(Authorizer):
    """Allows only its own view to read a confined table, and only there to call our own functions."""

    def __init__(self, functions: Iterable[str], confine: Confine) -> None:
        super().__init__({*functions, *_OWN}, confine.schema)
        self._schema = confine.schema
        self._hidden = confine.hidden
        self._tables = frozenset(lower_ascii(view.name) for view in confine.views)
        self._views = frozenset[str]()

    def guard(self, connection: apsw.Connection) -> None:
        """Set the authorizer, as `Authorizer.guard` does. The views of the file may read what they read."""
        connection.authorizer = None
        views = connection.execute(f"SELECT lower(name) FROM {self._schema}.sqlite_schema WHERE type = 'view'")
        self._views = frozenset(name for (name,) in cast("list[tuple[str]]", views.fetchall()))
        super().guard(connection)

    def _hides(self, action: int, first: str | None, second: str | None, schema: str | None, by: str | None) -> bool:
        if by is not None and by.startswith(self._hidden):
            return False
        if action == apsw.SQLITE_FUNCTION:
            return second is not None and lower_ascii(second) in _OWN
        if action != apsw.SQLITE_READ or schema != self._schema or lower_ascii(first or "") not in self._tables:
            return False
        # If a view was merged into the query around it, SQLite asks for its table again, without a column.
        return second != "" and lower_ascii(by or "") not in self._views


class ConfinedConnection:
    """The file, attached to an empty database, behind views. `values`: what the views bind, set for each statement."""

    def __init__(self, path: str, functions: Iterable[str], confine: Confine) -> None:
        self.values: Mapping[str, Any] = confine.values
        self.connection = connection = apsw.Connection(":memory:", flags=_FLAGS)
        self.authorizer = Wall(functions, confine)
        connection.create_scalar_function(VALUE, self._value, 1, deterministic=True)
        encoding = _read_encoding(path)
        connection.create_scalar_function(HASH, partial(hash_text, encoding), 2, deterministic=True)
        connection.pragma("encoding", encoding)
        connection.execute(f"ATTACH ? AS {confine.schema}", (f"file:{quote(path)}?mode=ro",))
        nothing = f"{confine.hidden}{NONE}"
        connection.execute(f"CREATE TABLE main.{nothing}({nothing})")
        for place, view in enumerate(confine.views):
            hidden = f"{confine.hidden}_{place}"
            shown = _FENCED.format(view.sql) if self._is_virtual(confine.schema, view.name) else view.sql
            connection.execute(f"CREATE TEMP VIEW {hidden} AS {shown}")
            connection.execute(f"CREATE TEMP VIEW {quote_name(view.name)} AS SELECT * FROM temp.{hidden}")

    def _is_virtual(self, schema: str, name: str) -> bool:
        return self.connection.execute(_VIRTUAL.format(schema=schema), (name,)).fetchone() is not None

    def _value(self, *names: Any) -> Any:
        return self.values[names[0]]


_VIRTUAL = "SELECT 1 FROM {schema}.sqlite_schema WHERE lower(name) = lower(?) AND type = 'table' AND rootpage = 0"
_FENCED = "SELECT * FROM ({}) LIMIT -1"
"""A module gets no condition of a caller's: a search of one column may name a hidden one (`title MATCH 'body:x'`)."""
_FLAGS = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_MEMORY


def _read_encoding(path: str) -> str:
    """Return the encoding of a file's texts: SQLite attaches it only to a database of the same one."""
    file = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return str(file.pragma("encoding"))
    finally:
        file.close(True)


def hash_text(encoding: str, *values: Any) -> str | None:
    """Return the SHA-256 of the first value's text, in hexadecimal digits; NULL stays NULL.

    If the second value is true, the first one has the bytes of a text in the file's encoding.
    """
    value, is_text = values
    if value is None:
        return None
    if not isinstance(value, bytes):
        value = str(value).encode()
    elif is_text and encoding != "UTF-8":
        value = value.decode(encoding, "surrogatepass").encode(errors="surrogatepass")
    return hashlib.sha256(value).hexdigest()
