"""A whole schema as one text: annotated SQL for a prompt, or a Mermaid diagram for people."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dragoman.catalog.compact import one_line
from dragoman.catalog.insight import MAX_VALUES, Insight, warning
from dragoman.catalog.names import Namespace
from dragoman.model import ForeignKey, Relation, Table, TableColumn

UNKNOWN = Insight()
_ODD = re.compile(r"\W+")


def as_sql(table: Table, namespace: Namespace, insight: Insight = UNKNOWN) -> str:
    """Return a relation as a CREATE statement, annotated with what is known about its columns."""
    here = namespace.namespace_of(table.relation)
    lines = [_column(table, column, here, insight) for column in table.columns]
    lines += [(_reference(key, here), "") for key in table.foreign_keys if len(key.columns) > 1]
    if len(table.primary_key) > 1:
        lines.append((f"PRIMARY KEY ({_names(table.primary_key, here)})", ""))
    body = [
        f"  {text}{',' if number + 1 < len(lines) else ''}{f' -- {note}' if note else ''}"
        for number, (text, note) in enumerate(lines)
    ]
    kind = "VIEW" if table.type.endswith("view") else "TABLE"
    comment = [f" -- {one_line(table.comment)}"] if table.comment else []
    return "\n".join([f"CREATE {kind} {namespace.name(table.relation)} ({''.join(comment)}", *body, ");"])


def indexes_sql(table: Table, namespace: Namespace) -> list[str]:
    """Return a relation's indexes as CREATE statements, without those of keys."""
    here = namespace.namespace_of(table.relation)
    own = {column.name for column in table.columns}
    lines: list[str] = []
    for index in table.indexes:
        parts = ", ".join(here.dialect.quote(part) if part in own else one_line(part) for part in index.parts)
        where = f" WHERE {one_line(index.predicate)}" if index.predicate else ""
        kind = "UNIQUE INDEX" if index.unique else "INDEX"
        if not index.primary:
            name = here.dialect.quote(index.name)
            lines.append(f"CREATE {kind} {name} ON {namespace.name(table.relation)} ({parts}){where};")
    return lines


def _column(table: Table, column: TableColumn, here: Namespace, insight: Insight) -> tuple[str, str]:
    """Return a column's definition, and its annotation."""
    own = [key for key in table.foreign_keys if key.columns == (column.name,)]
    parts = [here.dialect.quote(column.name), one_line(column.type)]
    parts += ["PRIMARY KEY"] if table.primary_key == (column.name,) else [] if column.nullable else ["NOT NULL"]
    parts += [_target(key, here) for key in own[:1]]
    return " ".join(part for part in parts if part), "; ".join(_notes(column, here, insight))


def _notes(column: TableColumn, here: Namespace, insight: Insight) -> Iterator[str]:
    profile = insight.profiles.get(column.name)
    values = column.enum or (profile.values if profile else ())
    if any(values):
        more = ["..."] if len(values) > MAX_VALUES else []
        yield "|".join([*(one_line(value) for value in values[:MAX_VALUES] if value), *more])
    if profile and (told := warning(profile, column.nullable)):
        yield told
    for key in insight.suggested:
        if key.columns == (column.name,):
            yield f"probably {_target(key, here)} ({key.suggested})"
    if column.comment:
        yield one_line(column.comment)


def _target(key: ForeignKey, here: Namespace) -> str:
    columns = f" ({_names(key.referenced_columns, here)})" if key.referenced_columns else ""
    return f"REFERENCES {here.name(key.references)}{columns}"


def _reference(key: ForeignKey, here: Namespace) -> str:
    return f"FOREIGN KEY ({_names(key.columns, here)}) {_target(key, here)}"


def _names(columns: Sequence[str], here: Namespace) -> str:
    return ", ".join(here.dialect.quote(column) for column in columns)


def as_mermaid(tables: Sequence[Table], namespace: Namespace, insights: Mapping[Relation, Insight]) -> str:
    """Return relations as a Mermaid entity-relationship diagram. Inferred joins are dashed."""
    known = {table.relation for table in tables}
    lines = ["erDiagram", *(line for table in tables for line in _entity(table, namespace))]
    for table in tables:
        suggested = insights.get(table.relation, UNKNOWN).suggested
        for key in (*table.foreign_keys, *suggested):
            if key.references in known:
                line = "||..o{" if key.suggested else "||--o{"
                ends = _entity_name(key.references, namespace), _entity_name(key.relation, namespace)
                label = ", ".join(key.columns).replace('"', "'")
                lines.append(f'  {ends[0]} {line} {ends[1]} : "{label}"')
    return "\n".join(lines)


def _entity(table: Table, namespace: Namespace) -> Iterator[str]:
    keys = {column for key in table.foreign_keys for column in key.columns}
    yield f"  {_entity_name(table.relation, namespace)} {{"
    for column in table.columns:
        marks = [mark for mark, has in (("PK", column.name in table.primary_key), ("FK", column.name in keys)) if has]
        yield " ".join([f"    {_word(column.type)} {_word(column.name)}", *([",".join(marks)] if marks else [])])
    yield "  }"


def _entity_name(relation: Relation, namespace: Namespace) -> str:
    return '"' + namespace.name(relation).replace('"', "") + '"'


def _word(text: str) -> str:
    """Return a text as Mermaid accepts it for a type or an attribute: one word that begins with a letter."""
    word = _ODD.sub("_", text).strip("_")
    return word if word[:1].isalpha() else f"c_{word}"
