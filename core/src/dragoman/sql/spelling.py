"""Names that differ only in case: to one SQL they are two names, to another the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar
from sqlglot.dialects.dialect import NormalizationStrategy

from dragoman.errors import Unsupported

_MYSQL = frozenset({"mysql", "doris", "starrocks", "singlestore"})
"""Names of columns ignore case here, whatever sqlglot says of those of tables."""


def check_spelling(tree: exp.Expr, source: str, target: str) -> None:
    """Raise `Unsupported` for names that are the same in one of two SQLs, and not in the other."""
    for names, is_harmless in ((_relations(tree), _is_one_relation), (_columns(tree), _is_one_column)):
        spellings: dict[str, set[tuple[str, str]]] = defaultdict(set)
        for name in names:
            spellings[name.name.lower()].add((_spell(name, source), _spell(name, target)))
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
    if any(
        name.name.lower() == folded for node in tree.find_all(exp.TableAlias) for name in node.args.get("columns") or ()
    ):
        return False
    return all(
        sum(isinstance(shown, exp.Expr) and shown.alias_or_name.lower() == folded for shown in select.expressions) < 2
        for select in tree.find_all(exp.Select)
    )
