"""Joins that nobody declared: suggested by names and types, then checked with some values. Asks no database itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from dragoman.catalog import Namespace
from dragoman.catalog.search import words
from dragoman.knowledge.types import family
from dragoman.model import ForeignKey, Relation, Table, TableColumn

KEY_WORDS = frozenset({"id", "key", "code", "no", "nr", "num", "number", "uuid", "guid", "fk", "pk", "ref", "sk"})
GENERIC = KEY_WORDS | {"name", "entity", "row", "record", "object", "value", "date", "type", "version", "year"}
"""A key whose name has only these words says nothing about what it identifies."""
DECORATION = frozenset({"tbl", "table", "dim", "fact", "t", "entity", "master", "ref"})
SUPERIORS = frozenset({"manager", "supervisor", "boss", "superior"})
SUBORDINATES = frozenset({"employee", "staff", "worker"})
COMMON_PREFIX = 0.6
"""If at least this share of the relations begins with the same word, the word says nothing."""
SHORTEST = 3
"""The least letters of an abbreviation."""
READ_VALUES, READ_ROWS = 200, 10_000
ENOUGH = 0.9
"""The share of the values that must have a partner."""

Words = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Target:
    """A relation that others may refer to by its single key column. `own`: the words of the key's name except `id`."""

    table: Table
    key: TableColumn
    name: Words
    key_words: Words
    own: Words


@dataclass(frozen=True, slots=True)
class _Written:
    """A column's name: its words, its words without a last `id`, and the words of its table's name."""

    table: Table
    column: TableColumn
    words: Words
    stem: Words
    name: Words


class Suggestions:
    """The keys that names and types of columns suggest. Computed for each relation on first use."""

    def __init__(self, tables: Sequence[Table]) -> None:
        self._found: dict[Relation, tuple[ForeignKey, ...]] = {}
        stored = [table for table in tables if table.type in ("table", "partitioned table") and not table.system]
        shared = _shared_words(stored)
        self._names = {table.relation: _name(table, shared) for table in stored}
        self._targets = _Targets(target for table in stored if (target := _target(table, self._names[table.relation])))

    def of(self, table: Table) -> tuple[ForeignKey, ...]:
        """Return at most one key for each column that has none; nothing for a relation that is not stored."""
        found = self._found.get(table.relation)
        if found is None:
            found = self._found[table.relation] = tuple(self._suggest(table))
        return found

    def _suggest(self, table: Table) -> Iterator[ForeignKey]:
        if table.relation not in self._names:
            return
        for written in _columns(table, self._names[table.relation]):
            found = _best(written, self._targets.near(written))
            if found is not None:
                yield ForeignKey(
                    relation=table.relation,
                    columns=(written.column.name,),
                    references=found.table.relation,
                    referenced_columns=(found.key.name,),
                    suggested="by name",
                )


def suggest(tables: Sequence[Table]) -> Iterator[ForeignKey]:
    """Yield the keys that names and types of columns suggest, at most one for each column that has none."""
    suggestions = Suggestions(tables)
    return (key for table in tables for key in suggestions.of(table))


def _columns(table: Table, name: Words) -> Iterator[_Written]:
    """Yield the columns that may refer to something and have no declared key."""
    declared = {column for key in table.foreign_keys for column in key.columns}
    prefix = _column_prefix(table)
    for column in table.columns:
        found = _without(words(column.name), prefix)
        if found and column.name not in declared and family(column.type) in ("integer", "number", "text", "uuid"):
            stem = found[:-1] if len(found) > 1 and found[-1] in KEY_WORDS else found
            yield _Written(table, column, found, stem, name)


def _shared_words(tables: Sequence[Table]) -> frozenset[str]:
    first = Counter(found[0] for table in tables if len(found := words(table.relation.name)) > 1)
    return DECORATION | {word for word, count in first.items() if count > 2 and count >= COMMON_PREFIX * len(tables)}


def _name(table: Table, shared: frozenset[str]) -> Words:
    found = words(table.relation.name)
    while len(found) > 1 and found[0] in shared:
        found = found[1:]
    return found[:-1] if len(found) > 1 and found[-1] in DECORATION else found


def _column_prefix(table: Table) -> str:
    """Return a word that begins the names of all columns of a relation, as in `c_name`, `c_phone`."""
    first = words(table.columns[0].name)[:1] if len(table.columns) > 2 else ()
    # Most relations have none, which two columns already show. So not all names must be split.
    alike = all(len(each := words(column.name)) > 1 and each[:1] == first for column in table.columns)
    return first[0] if first and alike else ""


def _without(found: Words, prefix: str) -> Words:
    return found[1:] if prefix and len(found) > 1 and found[0] == prefix else found


def _target(table: Table, name: Words) -> _Target | None:
    columns = {column.name: column for column in table.columns}
    unique = [each.columns for each in table.constraints if each.type == "UNIQUE" and not table.primary_key]
    single = next((key[0] for key in (table.primary_key, *unique) if len(key) == 1 and key[0] in columns), None)
    if single is None or not name:
        return None
    key_words = _without(words(single), _column_prefix(table))
    return _Target(table, columns[single], name, key_words, tuple(word for word in key_words if word not in GENERIC))


class _Targets:
    """The relations that others may refer to, by the words that a column's name must share with theirs.

    Comparing every column with every relation would take minutes if there are thousands.
    """

    def __init__(self, targets: Iterable[_Target]) -> None:
        self._by_relation: dict[Relation, _Target] = {}
        self._by_key: dict[Words, list[_Target]] = {}
        self._by_last: dict[str, list[_Target]] = {}
        self._by_start: dict[str, list[_Target]] = {}
        for target in targets:
            self._by_relation[target.table.relation] = target
            self._by_last.setdefault(target.name[-1], []).append(target)
            if target.own:
                self._by_key.setdefault(target.key_words, []).append(target)
            if len(target.name) == 1:
                self._by_start.setdefault(target.name[0][:SHORTEST], []).append(target)

    def near(self, written: _Written) -> Iterable[_Target]:
        """Return, each once, all targets that `_rank` and `_itself` may score above 0 for a column, and few others."""
        found = [*self._by_last.get(written.stem[-1], ())]
        for start in range(len(written.words)):
            found += self._by_key.get(written.words[start:], ())
        if len(written.stem) == 1:
            found += self._by_start.get(written.stem[0][:SHORTEST], ())
        if written.stem[-1] in SUPERIORS:
            found += [target for word in sorted(SUBORDINATES) for target in self._by_last.get(word, ())]
        itself = self._by_relation.get(written.table.relation)
        return {target.table.relation: target for target in (*found, *([itself] if itself else []))}.values()


def _best(written: _Written, targets: Iterable[_Target]) -> _Target | None:
    """Return the relation that a column most likely refers to; none if two are equally likely."""
    ranked: dict[int, list[_Target]] = {}
    for target in targets:
        itself = target.table is written.table
        if _alike(written.column, target.key) and not (itself and written.column.name == target.key.name):
            rank = _itself(written) if itself else _rank(written, target)
            ranked.setdefault(rank, []).append(target)
    best = ranked[max(ranked)] if ranked and max(ranked) > 0 else []
    near = [target for target in best if target.table.relation.schema == written.table.relation.schema] or best
    return near[0] if len(near) == 1 else None


def _alike(column: TableColumn, key: TableColumn) -> bool:
    families = {family(column.type), family(key.type)}
    return len(families) == 1 or families <= {"integer", "number"}


def _itself(written: _Written) -> int:
    """Return the score of a column as a reference to its own relation, such as the row above."""
    above = written.stem == ("parent",) or written.words == ("report", "to")
    return 1 if above or _leads(written, written.name) else 0


def _rank(written: _Written, target: _Target) -> int:
    """Return the score of a column's name as a reference to another relation; 0: none.

    It grows with the shared words.
    """
    if written.table.primary_key == (written.column.name,):
        # A key column refers to another relation only if it has that relation's name.
        return 100 if written.words == target.key_words and target.own == target.name else 0
    return max(_by_key(written, target), _by_name(written, target))


def _by_key(written: _Written, target: _Target) -> int:
    """Return the score by the name of the other's key: `customer_id`, `billing_customer_id`."""
    if not target.own:
        return 0
    if written.words == target.key_words:
        if target.own == target.name:
            return 100
        return 60 if set(target.name) & set(target.own) else 50
    longer = len(written.words) > len(target.key_words)
    return 40 if longer and written.words[-len(target.key_words) :] == target.key_words else 0


def _by_name(written: _Written, target: _Target) -> int:
    """Return the score by the other's own name and a word for a key.

    For example `customer_id`, `billing_customer_id`, `cust_id`.
    """
    stem, name = written.stem, target.name
    if stem == written.words:
        return 30 if stem == name and family(target.key.type) in ("integer", "uuid") else int(_leads(written, name))
    if stem == name:
        return 90
    if name == (*written.name, *stem):
        return 80
    if stem[-len(name) :] == name:
        return 20 + len(name)
    ends_alike = name[-len(stem) :] == stem
    return 10 if ends_alike or _abbreviates(stem, name) else int(_leads(written, name))


def _leads(written: _Written, name: Words) -> bool:
    """Return whether a column names a leader, and the relation holds those who are led."""
    return written.stem[-1] in SUPERIORS and len(name) == 1 and name[0] in SUBORDINATES


def _abbreviates(stem: Words, name: Words) -> bool:
    short, word = stem[0], name[0]
    return len(stem) == len(name) == 1 and SHORTEST <= len(short) < len(word) and word.startswith(short)


# Comparing values


def comparison_sql(keys: Sequence[ForeignKey], namespace: Namespace) -> str:
    """Return one statement that checks each key: how many values were checked, and how many have a partner."""
    return "\nUNION ALL\n".join(_write_comparison(number, key, namespace) for number, key in enumerate(keys))


def _write_comparison(number: int, key: ForeignKey, namespace: Namespace) -> str:
    quote = namespace.dialect.quote
    child, parent = quote(key.columns[0]), quote(key.referenced_columns[0])
    rows = f"SELECT {child} AS v FROM {namespace.name(key.relation)} WHERE {child} IS NOT NULL LIMIT {READ_ROWS}"
    values = f"SELECT DISTINCT v FROM ({rows}) AS some_rows LIMIT {READ_VALUES}"
    return (
        f"SELECT {number} AS n, count(*) AS looked_at, count(p.{parent}) AS found"
        f" FROM ({values}) AS c LEFT JOIN {namespace.name(key.references)} AS p ON p.{parent} = c.v"
    )


def judge(key: ForeignKey, looked_at: int, found: int) -> ForeignKey | None:
    """Return a key with the share of its values that have a partner; None if too few have one."""
    if looked_at and found < ENOUGH * looked_at:
        return None
    share = f"{100 * found // looked_at} % of {looked_at} values found" if looked_at else "no values to compare"
    return replace(key, suggested=f"by name; {share}")
