"""Checks, defaults and index expressions for callers who see a part of the database.

Such texts name functions, types and relations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache, partial

from dragoman.catalog.literals import separate_texts
from dragoman.catalog.names import name_pattern, parse_name
from dragoman.catalog.updating import update
from dragoman.dialect import Dialect
from dragoman.model import Constraint, Table, TableColumn

# Words in such texts that need no quotes as names and so are not in the list of reserved words.
_WORDS = frozenset(
    "at by c day deferred double enforced escape exclude filter first hour including inherit invalid last minute month"
    " nextval no nulls of over partition posix range rows second stored valid varying virtual within without year"
    " zone".split()
)
_OPERATOR = re.compile(r"[-+*/<>=~!@#%^&|`?]+")
_ARGUMENTS = re.compile(r"\(.*")


class Texts:
    """Removes every text of a relation that names more than its own columns, their types, and the engine's own objects.

    This is needed only where a relation's rows have a type of its name and users may create functions: elsewhere such a
    text names no other relation. `hides`: something is hidden.
    """

    def __init__(self, dialect: Dialect, *, hides: bool) -> None:
        rules = dialect.loaded_rules
        self._dialect = dialect
        self._applies = hides and bool(rules.types)
        functions = {_last(name) for name in (*rules.functions, *rules.forms)}
        self._engine = _WORDS | rules.types | dialect.reserved | rules.system_schemas | functions
        self._operators = None if rules.operators is None else {_last(name) for name in rules.operators}
        self._in_type = cache(self._names_in_type)
        self._name = re.compile(rf"(?<![\w$])(?:{name_pattern(dialect.lexicon)})")

    def prune(self, table: Table) -> Table:
        """Return a relation without such texts."""
        if not self._applies:
            return table
        columns = {column.name for column in table.columns}
        own = cache(partial(self._own_names, table))  # most relations have no such text, and some have hundreds

        def tells(text: str | None) -> bool:
            return text is None or text in columns or self._is_own(text, *own())

        return update(
            table,
            columns=tuple([_column(column, tells) for column in table.columns]),
            constraints=tuple([each for each in table.constraints if tells(_definition(each))]),
            indexes=tuple([each for each in table.indexes if all(map(tells, (*each.parts, each.predicate)))]),
            partitioned_by=table.partitioned_by if all(map(tells, table.partitioned_by)) else (),
        )

    def _own_names(self, table: Table) -> tuple[set[str], set[str]]:
        """Return the names of a relation's columns and their types, and those of its sequences."""
        types = {column.type for column in table.columns}
        known = {column.name for column in table.columns}.union(*map(self._in_type, types))
        return known, {f"{table.relation.name}_{column.name}_seq" for column in table.columns}

    def _is_own(self, text: str, known: Collection[str], sequences: Collection[str]) -> bool:
        bare, named = separate_texts(text, self._dialect.lexicon)
        if not all(name.rpartition(".")[2].strip('"') in sequences for name in named):
            return False
        if self._operators is not None and not self._operators.issuperset(_OPERATOR.findall(bare)):
            return False
        return all(name in known or name.lower() in self._engine for name in self._names(bare))

    def _names_in_type(self, type_: str) -> frozenset[str]:
        return frozenset(self._names(_ARGUMENTS.sub("", type_).rstrip("[]")))

    def _names(self, text: str) -> Iterator[str]:
        for match in self._name.finditer(text):
            parts = parse_name(match[0], self._dialect.lexicon)
            yield parts[0].text if parts else match[0]


def _last(name: str) -> str:
    return name.rpartition(".")[2] or name


def _column(column: TableColumn, tells: Callable[[str | None], bool]) -> TableColumn:
    if tells(column.default) and tells(column.generated):
        return column
    default, generated = (text if tells(text) else None for text in (column.default, column.generated))
    return replace(column, default=default, generated=generated)


def _definition(constraint: Constraint) -> str | None:
    return constraint.definition if constraint.type in ("CHECK", "EXCLUDE") else None
