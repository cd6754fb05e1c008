"""A policy: nobody asks for certain columns, whatever the database and however they are reached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from dragoman import (
    Call,
    ConfigurationError,
    Database,
    Executor,
    Inspector,
    PolicyPlugin,
    Relation,
    Resolution,
    Statement,
    UnsafeSql,
    Validator,
)

Column = tuple[Relation, str]


@dataclass(frozen=True)
class Options:
    """`refuse`: patterns of columns: `email`, `customer.*name`, `crm.customer.*`; `*` and `?` as in file names.

    `allow_views`: patterns of views that may be queried whatever stands behind them.
    """

    refuse: tuple[str, ...]
    allow_views: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Raise `ConfigurationError` for a pattern of more names than there are."""
        for pattern, most in [*((each, 4) for each in self.refuse), *((each, 3) for each in self.allow_views)]:
            if pattern.count(".") >= most:
                raise ConfigurationError(
                    f"policies.columns: {pattern!r} has too many dots.",
                    suggestion="Columns are catalog.schema.table.column, views catalog.schema.view, from the right.",
                )


def matches(names: Sequence[str | None], pattern: str) -> bool:
    """Whether dotted names end as a pattern says, without regard to case. A name nobody knows may be any."""
    parts = pattern.lower().split(".")
    pairs = zip(names[-len(parts) :], parts, strict=True)
    return all(name is None or fnmatchcase(name.lower(), part) for name, part in pairs)


@dataclass(frozen=True)
class RefusedColumns(Validator):
    """Refuses statements that touch a column of `options.refuse`, or of which that cannot be determined."""

    options: Options

    async def check(self, statement: Statement, call: Call) -> None:
        """Raise `UnsafeSql` when a refused column is touched, or may be."""
        touched = await call.resolve()
        for relation in touched.unlisted:
            raise UnsafeSql(
                f"The catalog does not list {relation}: whether it shows columns that must not be queried is unknown.",
                suggestion="Query what list_tables shows; search_catalog finds tables by name.",
            )
        for relation, column in self._find_refused(touched.columns):
            raise UnsafeSql(
                f"The column {relation.name}.{column} must not be queried.",
                suggestion="Leave it out; instead of *, name the columns you need.",
            )
        for view, columns in self._behind(touched):
            for relation, column in self._find_refused(columns):
                raise UnsafeSql(
                    f"The view {view.name} reads {relation.name}.{column}, which must not be queried.",
                    suggestion="Query another relation.",
                )

    def _find_refused(self, columns: Iterable[Column]) -> Iterator[Column]:
        for relation, column in columns:
            names = (relation.catalog, relation.schema, relation.name, None if column == "*" else column)
            if any(matches(names, pattern) for pattern in self.options.refuse):
                yield relation, column

    def _behind(self, touched: Resolution) -> Iterator[tuple[Relation, Iterable[Column]]]:
        """The views that are not allowed as they are, with what they read."""
        for view, columns in touched.views.items():
            names = (view.catalog, view.schema, view.name)
            if any(matches(names, pattern) for pattern in self.options.allow_views):
                continue
            if columns is None:
                raise UnsafeSql(
                    f"What the view {view.name} reads is not known, and some columns must not be queried.",
                    suggestion="Query the tables themselves.",
                )
            yield view, columns


class ColumnPolicy(PolicyPlugin):
    """Adds the check to every database."""

    options = Options

    def __init__(self, *checks: Validator) -> None:
        self.checks = checks

    def configure(self, options: Options) -> ColumnPolicy:
        """Return the policy with its check."""
        return ColumnPolicy(RefusedColumns(options))

    def further_validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return the check."""
        return self.checks


plugin = ColumnPolicy()
