"""Names that differ only in case: to one SQL they are two names, to another the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.dialect import NormalizationStrategy

from dragoman.errors import Unsupported

_Spelling = tuple[str, str]
_OF_ROWS = frozenset({"with", "with_", "from", "from_", "joins", "where", "expressions"})
"""The clauses of a SELECT in which every SQL takes a name for a column of its rows before it takes it for a result."""
_MYSQL = frozenset({"mysql", "doris", "starrocks", "singlestore"})
"""Names of columns ignore case here, whatever sqlglot says of those of tables."""


def check_spelling(tree: exp.Expr, source: str, target: str) -> None:
    """Raise `Unsupported` for names that are the same in one of two SQLs, and not in the other."""

    def spell(name: exp.Identifier) -> _Spelling:
        return _spell(name, source), _spell(name, target)

    def is_clear(tree: exp.Expr, folded: str) -> bool:
        return _is_one_column(tree, folded) or _is_new_result(tree, folded, spell)

    for names, is_harmless in ((_relations(tree), _is_one_relation), (_columns(tree), is_clear)):
        spellings: dict[str, set[_Spelling]] = defaultdict(set)
        for name in names:
            spellings[name.name.lower()].add(spell(name))
        for folded, pairs in spellings.items():
            if len({one for one, _ in pairs}) != len({other for _, other in pairs}) and not is_harmless(tree, folded):
                raise Unsupported(
                    f"Names that differ only in case, such as {folded}, are the same name in one of {source} and"
                    f" {target}, and two in the other.",
                    suggestion="Give them different names, and write each in one way.",
                )


def _spell(name: exp.Identifier, dialect: str) -> str:
    """Return a name as `dialect` compares it."""
    strategy = Grammar.get_or_raise(dialect).NORMALIZATION_STRATEGY
    if dialect in _MYSQL or strategy in (
        NormalizationStrategy.CASE_INSENSITIVE,
        NormalizationStrategy.CASE_INSENSITIVE_UPPERCASE,
    ):
        return name.name.lower()
    if name.quoted or strategy is NormalizationStrategy.CASE_SENSITIVE:
        return name.name
    return name.name.lower() if strategy is NormalizationStrategy.LOWERCASE else name.name.upper()


def _relations(tree: exp.Expr) -> Iterator[exp.Identifier]:
    for node in tree.find_all(exp.Table, exp.TableAlias, exp.Column):
        name = node.args.get("table") if isinstance(node, exp.Column) else node.this
        if isinstance(name, exp.Identifier):
            yield name


def _columns(tree: exp.Expr) -> Iterator[exp.Identifier]:
    for node in tree.find_all(exp.Column, exp.Alias, exp.TableAlias, exp.Join):
        found: list[Any] = [node.args.get("alias") if isinstance(node, exp.Alias) else node.this]
        if isinstance(node, exp.TableAlias):
            found = node.args.get("columns") or []
        elif isinstance(node, exp.Join):
            found = node.args.get("using") or []
        yield from (name for name in found if isinstance(name, exp.Identifier))


def _is_one_relation(tree: exp.Expr, folded: str) -> bool:
    """Return whether a name is that of one table and its own alias, as in `"Orders" AS orders`."""
    made = [node for node in tree.find_all(exp.Table) if folded in (node.name.lower(), node.alias.lower())]
    others = [node.parent for node in tree.find_all(exp.TableAlias) if node.name.lower() == folded]
    return len(made) == 1 and made[0].name.lower() == folded and all(other is made[0] for other in others)


def _is_one_column(tree: exp.Expr, folded: str) -> bool:
    """Return whether a name is only that of a column and of results that are this column, as in `"Id" AS id`."""
    aliases = [node for node in tree.find_all(exp.Alias) if node.alias.lower() == folded]
    if not aliases or not all(
        isinstance(node.this, exp.Column) and node.this.name.lower() == folded for node in aliases
    ):
        return False
    return not _is_given(tree, folded, exp.TableAlias, "columns") and _is_shown_once(tree, folded)


def _is_given(tree: exp.Expr, folded: str, kind: type[exp.Expr], what: str) -> bool:
    return any(name.name.lower() == folded for node in tree.find_all(kind) for name in node.args.get(what) or ())


def _is_shown_once(tree: exp.Expr, folded: str) -> bool:
    return all(
        sum(isinstance(shown, exp.Expr) and shown.alias_or_name.lower() == folded for shown in select.expressions) < 2
        for select in tree.find_all(exp.Select)
    )


# Results that no name takes for the column


class _Result:
    """A result that is spelled like a column of tables, but for the case: `sum("Total") AS total`."""

    def __init__(self, tree: exp.Expr, folded: str, spell: Callable[[exp.Identifier], _Spelling]) -> None:
        self._tree, self._folded, self._spell = tree, folded, spell
        made = [node for node in tree.find_all(exp.Alias) if node.alias.lower() == folded]
        self._makers = [node.parent for node in made]
        self._made = {spell(node.args["alias"]) for node in made}
        self._is_last = all(maker is tree for maker in self._makers)
        self._queries = {node.alias.lower() for node in tree.find_all(exp.CTE)}

    def is_clear(self) -> bool:
        """Return whether every SQL takes each name for the same of the two."""
        given = ((exp.TableAlias, "columns"), (exp.Join, "using"))
        if len(self._made) != 1 or not all(isinstance(maker, exp.Select) for maker in self._makers):
            return False
        if any(_is_given(self._tree, self._folded, *each) for each in given) or not self._is_shown_once():
            return False
        columns = [node for node in self._tree.find_all(exp.Column) if node.name.lower() == self._folded]
        return all(map(self._is_clear, columns))

    def _is_shown_once(self) -> bool:
        """Return whether only results of its spelling are seen by outer queries."""
        if not _is_shown_once(self._tree, self._folded):
            return False
        if self._is_last:
            return True
        if any(not isinstance(star.parent, exp.Count) for star in self._tree.find_all(exp.Star)):
            return False
        shown = [each for select in self._tree.find_all(exp.Select) for each in select.expressions]
        named = [each for each in shown if isinstance(each, exp.Column) and each.name.lower() == self._folded]
        return all(self._spell(each.this) in self._made or each.parent is self._tree for each in named)

    def _is_clear(self, column: exp.Column) -> bool:
        select = column.find_ancestor(exp.Select)
        if not isinstance(column.this, exp.Identifier) or select is None:
            return False
        if self._spell(column.this) in self._made:
            return self._is_key(column, select) or (not self._is_last and self._find_sources(select) == {"query"})
        if not self._is_last and self._find_sources(select) != {"table"}:
            return False
        return bool(column.table) or self._is_of_rows(column)

    def _is_key(self, column: exp.Column, select: exp.Select) -> bool:
        """Return whether it stands alone in the ORDER BY of the query that makes the result."""
        ordered = column.parent
        order = ordered.parent if isinstance(ordered, exp.Ordered) and not column.table else None
        return order is not None and order.parent is select and any(select is maker for maker in self._makers)

    def _is_of_rows(self, column: exp.Column) -> bool:
        """Return whether it stands where no SQL takes it for a result, in each query around it that makes one."""
        node: exp.Expr = column
        while node.parent is not None:
            parent = node.parent
            if any(parent is maker for maker in self._makers) and node.arg_key not in _OF_ROWS:
                within = column.find_ancestor(exp.AggFunc, exp.Select)
                if node.arg_key != "having" or not isinstance(within, exp.AggFunc):
                    return False
            node = parent
        return True

    def _find_sources(self, select: exp.Select) -> set[str]:
        """Return the kinds of what a name in a query may be a column of: of tables, or of queries with names."""
        kinds: set[str] = set()
        node: exp.Expr | None = select
        while node is not None and not isinstance(node, exp.CTE | exp.From | exp.Join):
            if isinstance(node, exp.Select):
                first = node.args.get("from_") or node.args.get("from")
                kinds |= {self._kind_of(each.this) for each in (first, *(node.args.get("joins") or ())) if each}
            elif isinstance(node, exp.Lateral):
                kinds.add("other")
            node = node.parent
        return kinds

    def _kind_of(self, source: Any) -> str:
        if isinstance(source, exp.Subquery) and isinstance(source.this, exp.Query) and not source.args.get("joins"):
            return "query"
        if not isinstance(source, exp.Table) or source.args.get("joins") or not isinstance(source.this, exp.Identifier):
            return "other"
        return "query" if not source.db and source.name.lower() in self._queries else "table"


def _is_new_result(tree: exp.Expr, folded: str, spell: Callable[[exp.Identifier], _Spelling]) -> bool:
    return _Result(tree, folded, spell).is_clear()
