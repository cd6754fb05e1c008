"""Confines callers to parts of tables: temporary views stand before the tables, and the authorizer protects the tables.

The file is attached under a name of its own to an empty database, so that a name without a schema means the view, if
there is one. A view with a row filter ends with LIMIT, so that SQLite never evaluates a caller's conditions on hidden
rows. Its first half has no rows and a size larger than any table, so that the plan around the view reveals nothing
about the table's size.

A view of all rows has such a first half, too, if it shows a column in some rows only: the first half decides by which
collation its columns compare.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from dragoman import Confined, ConfinedColumn, ConfinedRelation, Confinement, Expression, NamedPart, Statement
from dragoman.words import lower_ascii

from dragoman_sqlite.frames import HASH, NONE, VALUE, View
from dragoman_sqlite.names import names_in
from dragoman_sqlite.rules import LEXICON

SCHEMA = f"f{secrets.token_hex(2)[:3]}"
"""The name of the attached file. It is as long as `main`, which it replaces, so that no place in a statement moves.

Callers cannot know it, and their text is judged before it is inserted.
"""
HIDDEN = f"v{secrets.token_hex(8)}"
"""The prefix of the views that alone may read a confined table."""
_IS_TEXT = "typeof({column}) = 'text'"
MASKS: Mapping[str, str] = {
    "null": "NULL",
    # As bytes: a text that is not valid in its encoding is no value of the driver's.
    "hash": f"{HASH}(iif({_IS_TEXT}, CAST({{column}} AS BLOB), {{column}}), {_IS_TEXT})",
    "partial": "substr({column}, 1, 1) || '***'",
    "year": "strftime('%Y-01-01', {column})",
}
_NAMES = frozenset({"word", "name", "string"})


def confine(statement: Statement, named: Sequence[NamedPart]) -> Confined:
    """Return a statement in which the schema `main` is that of the views, or of the file for other tables."""
    confined = {lower_ascii(part.relation.name) for _, part in named if part is not None}
    text = statement.text
    for start, end, table in _mains(statement, {each.offset for each, _ in named}):
        schema = "temp" if lower_ascii(table) in confined else SCHEMA
        text = text[:start] + text[start:end].replace(plain(text[start:end]), schema) + text[end:]
    return Confined(text)


def _mains(statement: Statement, relations: set[int | None]) -> Iterator[tuple[int, int, str]]:
    """Yield the places where `main` is a schema, and the table after it: in a relation, or before table and column."""
    tokens = statement.tokens
    for index, token in enumerate(tokens[:-2]):
        if token.kind not in _NAMES or lower_ascii(plain(token.text)) != "main" or tokens[index + 1].text != ".":
            continue
        of_column = len(tokens) > index + 3 and tokens[index + 3].text == "."
        if (index == 0 or tokens[index - 1].text != ".") and (tokens[index + 2].start in relations or of_column):
            yield token.start, token.end, plain(tokens[index + 2].text)


def plain(name: str) -> str:
    """Return a name without its quotes."""
    mark = name[0]
    if mark == "[":
        return name[1:-1]
    return name[1:-1].replace(mark * 2, mark) if mark in "\"'`" else name


def views(confinement: Confinement) -> tuple[View, ...]:
    """Return the views of the relations in a confinement."""
    return tuple(_view(part) for part in confinement.relations)


def values(confinement: Confinement) -> dict[str, Any]:
    """Return the values that views bind, as SQLite stores them: lists and objects are their JSON text."""
    return {name: _storable(value) for name, value in confinement.values.items()}


def _storable(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def _view(part: ConfinedRelation) -> View:
    name = _quote(part.relation.name)
    table = f"{SCHEMA}.{name}"
    rows, alike = f"SELECT {_columns(part)} FROM {table}", _columns(_as_stored(part))
    if part.filter is None:
        mixed = any(column.mixed for column in part.columns)
        return View(part.relation.name, f"SELECT {alike} FROM {table} WHERE 0 UNION ALL {rows}" if mixed else rows)
    # SQLite assumes a million rows for a table without statistics, and so a billion for this one, whatever `name` has.
    many = f"{HIDDEN}{NONE} AS {HIDDEN}_a CROSS JOIN {HIDDEN}{NONE} AS {HIDDEN}_b"
    nothing = f"SELECT {alike} FROM {many} CROSS JOIN (SELECT * FROM {table} LIMIT 1) AS {name}"
    return View(
        part.relation.name, f"{nothing} UNION ALL {rows} WHERE (\n{_qualify(part.filter.write(_value))}\n) LIMIT -1"
    )


def _as_stored(part: ConfinedRelation) -> ConfinedRelation:
    """Return a part with its mixed columns as they are stored: a view's first half, which decides their collations."""
    columns = (replace(each, expression=None) if each.mixed else each for each in part.columns)
    return replace(part, columns=tuple(columns))


def _columns(part: ConfinedRelation) -> str:
    typed = replace(part, columns=tuple(map(_keep_type, part.columns)))
    return typed.write_columns(_quote, lambda expression: _qualify(expression.write(_value)))


def _keep_type(column: ConfinedColumn) -> ConfinedColumn:
    """Return a mixed column with the affinity and type of the stored one: those of a subquery, which a CASE has not."""
    if not column.mixed or column.expression is None:
        return column
    shown = f"(SELECT {column.expression.write(_value)} UNION ALL SELECT {_quote(column.name)} WHERE 0)"
    return replace(column, expression=Expression((shown,)))


def _quote(name: str) -> str:
    """Return a name in quotes that SQLite never takes for a text. An unknown name in double quotes would be one."""
    return "`" + name.replace("`", "``") + "`"


def _value(name: str) -> str:
    called = f"{VALUE}('{name.replace(chr(39), chr(39) * 2)}')"
    return f"(SELECT value FROM json_each({called}))" if name == "groups" else called


def _qualify(expression: str) -> str:
    """Return an expression whose tables are those of the file, whatever a view is named, and whose names stay names."""
    before = "SELECT "
    statement = Statement.parse(before + expression, sqlglot="sqlite", lexicon=LEXICON)
    tables = names_in(statement).read(set())
    tokens = statement.tokens
    text, index = statement.text, len(tokens)
    while index:
        index -= 1
        token = tokens[index]
        if token.text.startswith('"'):
            text = f"{text[: token.start]}{_quote(plain(token.text))}{text[token.end :]}"
        if token.start in tables:
            index -= 2 if tokens[index - 1].text == "." else 0
            text = f"{text[: tokens[index].start]}{SCHEMA}.{text[token.start :]}"
    return text.removeprefix(before)
