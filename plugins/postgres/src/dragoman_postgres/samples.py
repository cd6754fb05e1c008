"""The views that show the values that ANALYZE sampled.

Their facts about columns are useful. But the values come from any table that the role may read, which for a superuser
includes passwords.
"""

from __future__ import annotations

from dragoman import UnsafeSql

from dragoman_postgres.rules import load_allowed


class Samples:
    """The parts of one query that could show sampled values.

    `columns`: the names it reads as columns, "*" for all columns of some relation. `rows`: names that would mean a
    whole row if they were read as columns.
    """

    def __init__(self) -> None:
        self._rules = load_allowed()
        self._views: dict[str, int | None] = {}
        self.columns: set[str] = set()
        self.rows: set[str] = set()

    def relation(self, dotted: str, offset: int | None) -> None:
        """Record a relation, by its dotted name and its offset."""
        self.rows.add(dotted.rpartition(".")[2])
        if dotted in self._rules.sampling:
            self._views[dotted] = offset

    def check(self) -> None:
        """Raise `UnsafeSql` if values may be shown."""
        if self._views and not self.columns.isdisjoint(self.rows | self._rules.sampled | {"*"}):
            ((view, offset), *_) = self._views.items()
            raise UnsafeSql(
                f"{view} shows values of tables, or settings of roles, that callers may not be allowed to see.",
                suggestion="Name the columns you need, without * and other than"
                f" {', '.join(sorted(self._rules.sampled))}.",
                offset=offset,
            )
