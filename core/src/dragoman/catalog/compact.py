"""A relation in the shortest form that an agent can read: one line per column."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dragoman.catalog.insight import Insight, format_list, is_complete, warning
from dragoman.catalog.names import Namespace
from dragoman.model import Constraint, ForeignKey, Index, Table, TableColumn

ESTIMATE_FROM = 10_000
MAX_VALUES = 12
UNKNOWN = Insight()
_BREAKS = re.compile(r"\s*[\r\n]\s*")
_CHECK = re.compile(r"CHECK\s*\(", re.IGNORECASE)


def compact(
    table: Table,
    namespace: Namespace,
    *,
    indexes: bool = False,
    constraints: bool = False,
    insight: Insight = UNKNOWN,
) -> list[str]:
    """Return the lines of a relation. Names are qualified only if they are in another schema."""
    here = namespace.namespace_of(table.relation)
    lines = [*_header(table, insight), *(_column_line(table, column, here, insight) for column in table.columns)]
    lines += [_foreign_key_line(key, here) for key in table.foreign_keys if len(key.columns) > 1]
    if indexes:
        lines += [_index_line(table, index, here) for index in table.indexes if not index.primary]
    if constraints:
        lines += [line for constraint in table.constraints for line in _constraint_lines(constraint, here)]
    return lines


def is_unique(table: Table, column: str, namespace: Namespace) -> bool:
    """Return whether the column alone identifies a row, by a constraint or an index, and is not the primary key."""
    if table.primary_key == (column,):
        return False
    if any(c.type == "UNIQUE" and c.columns == (column,) for c in table.constraints):
        return True
    spellings = {(column,), (namespace.dialect.quote(column),)}
    return any(i.unique and i.predicate is None and i.parts in spellings for i in table.indexes)


def one_line(text: str) -> str:
    """Return text with each line break and its indentation replaced by one space."""
    return _BREAKS.sub(" ", text.strip())


def check_definition(definition: str) -> str:
    """Return a check constraint as SQL. Some databases report only the bare condition."""
    text = one_line(definition)
    if _CHECK.match(text):
        return text
    return f"CHECK {text}" if _is_wrapped(text) else f"CHECK ({text})"


def _is_wrapped(text: str) -> bool:
    """Return whether the first parenthesis closes at the very end."""
    if not (text.startswith("(") and text.endswith(")")):
        return False
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False


def _header(table: Table, insight: Insight) -> list[str]:
    said = [one_line(table.comment)] if table.comment else []
    if table.row_estimate is not None and table.row_estimate >= ESTIMATE_FROM:
        said.append(f"~{table.row_estimate} rows")
    if table.partitioned_by:
        said.append(f"partitioned by {', '.join(one_line(part) for part in table.partitioned_by)}")
    if insight.parts:
        named = insight.parts if len(insight.parts) <= 2 else (insight.parts[0], "..", insight.parts[-1])
        said.append(f"{len(insight.parts)} part{'s' * (len(insight.parts) > 1)}: {' '.join(named)}")
    return [f"-- {'; '.join(said)}"] if said else []


def _column_line(table: Table, column: TableColumn, here: Namespace, insight: Insight) -> str:
    words = [here.dialect.quote(column.name), one_line(column.type), *_flags(table, column, here)]
    profile = insight.profiles.get(column.name)
    words += _list_suggested(column, here, insight)
    if profile and any(profile.values) and not column.enum:
        words.append("~" + format_list(profile.values, is_complete(profile)))
    said = [one_line(column.comment)] if column.comment else []
    said += [warning(profile, column.nullable)] if profile else []
    told = "; ".join(each for each in said if each)
    return " ".join(word for word in (*words, f"-- {told}" if told else "") if word)


def _list_suggested(column: TableColumn, here: Namespace, insight: Insight) -> Iterator[str]:
    """Yield joins that nobody declared."""
    targets = dict.fromkeys(_target(key, here) for key in insight.suggested if key.columns == (column.name,))
    if targets:
        yield "~> " + ", ".join(targets)


def _flags(table: Table, column: TableColumn, here: Namespace) -> Iterator[str]:
    key = table.primary_key
    if column.nullable:
        yield "NULL"
    if column.name in key:
        yield "PK" if len(key) == 1 else f"PK{key.index(column.name) + 1}"
    if is_unique(table, column.name, here):
        yield "UNIQUE"
    targets = dict.fromkeys(_target(k, here) for k in table.foreign_keys if k.columns == (column.name,))
    if targets:
        yield "-> " + ", ".join(targets)
    if column.enum:
        yield "{" + "|".join([*column.enum[:MAX_VALUES], *(["..."] if len(column.enum) > MAX_VALUES else [])]) + "}"
    if column.generated:
        yield "GENERATED"
    if column.identity:
        yield "IDENTITY"


def _target(key: ForeignKey, here: Namespace) -> str:
    name = here.name(key.references)
    if not key.referenced_columns or key.referenced_columns == key.columns:
        return name
    return f"{name}.{here.dialect.quote(key.referenced_columns[0])}"


def _foreign_key_line(key: ForeignKey, here: Namespace) -> str:
    target = here.name(key.references)
    if key.referenced_columns:
        target += _list(key.referenced_columns, here)
    return f"{_list(key.columns, here)} -> {target}"


def _index_line(table: Table, index: Index, here: Namespace) -> str:
    columns = {column.name for column in table.columns}
    parts = ", ".join(here.dialect.quote(part) if part in columns else one_line(part) for part in index.parts)
    method = f" USING {index.method}" if index.method and index.method.lower() != "btree" else ""
    where = f" WHERE {one_line(index.predicate)}" if index.predicate else ""
    return f"{'UNIQUE ' if index.unique else ''}INDEX {here.dialect.quote(index.name)}{method} ({parts}){where}"


def _constraint_lines(constraint: Constraint, here: Namespace) -> Iterator[str]:
    """Yield lines of constraints. The columns' own lines show the primary key and unique columns already."""
    match constraint.type:
        case "CHECK":
            yield check_definition(constraint.definition or "")
        case "EXCLUDE":
            yield one_line(constraint.definition or "EXCLUDE")
        case "UNIQUE" if len(constraint.columns) > 1:
            yield f"UNIQUE {_list(constraint.columns, here)}"
        case _:
            return


def _list(columns: Sequence[str], here: Namespace) -> str:
    return f"({', '.join(here.dialect.quote(column) for column in columns)})"
