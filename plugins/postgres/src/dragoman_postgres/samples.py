"""The views that show what ANALYZE sampled.

What they tell of columns is worth knowing; the values themselves come from any table the role may read, which for a
superuser are the passwords too.
"""

from __future__ import annotations

from dragoman import UnsafeSql

from dragoman_postgres.rules import load_allowed


class Samples:
    """What of one query could show sampled values.

    `columns`: the names it reads as columns, "*" for all of some relation. `rows`: names that read as a column mean a
    whole row.
    """

    def __init__(self) -> None:
        self._rules = load_allowed()
        self._views: dict[str, int | None] = {}
        self.columns: set[str] = set()
        self.rows: set[str] = set()

    def relation(self, dotted: str, offset: int | None) -> None:
        """Keep a relation in mind, by its dotted name and where it is named."""
        self.rows.add(dotted.rpartition(".")[2])
        if dotted in self._rules.sampling:
            self._views[dotted] = offset

    def check(self) -> None:
        """Raise `UnsafeSql` when values may be shown."""
        if self._views and not self.columns.isdisjoint(self.rows | self._rules.sampled | {"*"}):
            ((view, offset), *_) = self._views.items()
            raise UnsafeSql(
                f"{view} shows values of tables, or settings of roles, which may be closed to this role's readers.",
                suggestion="Name the columns you need, without * and other than"
                f" {', '.join(sorted(self._rules.sampled))}.",
                offset=offset,
            )
