"""Queries."""

from __future__ import annotations

from dragoman import UnsafeSql

from dragoman_trino.grammar.calls import ATOMS
from dragoman_trino.grammar.relations import Relations
from dragoman_trino.grammar.tokens import END, NUMBER

_SETS = frozenset({"UNION", "INTERSECT", "EXCEPT"})
_QUANTIFIERS = frozenset({"DISTINCT", "ALL"})
_ROWS = frozenset({"ROW", "ROWS"})
_GROUPINGS = frozenset({"ROLLUP", "CUBE"})
_RECURSIONS = 10  # that Trino plans of a member that names itself, unless it is configured otherwise
# Symbols after an ALL that is a column of that name.
_AFTER_GROUPS = _SETS | {END, ",", ".", ")", "HAVING", "WINDOW", "ORDER", "OFFSET", "LIMIT", "FETCH"}


class Queries(Relations):
    """Reads queries."""

    def read_query(self) -> None:
        """Read a query, including WITH."""
        self.enter()
        around = self.visible
        if self.symbol == "WITH":
            self._with()
        self._term()
        while self.accept_any(_SETS):
            self.accept_any(_QUANTIFIERS)
            if self.accept("CORRESPONDING") and self.accept("BY"):
                self.read_columns()
            self._term()
        if self.accept("ORDER", "BY"):
            self.read_sort()
        self._limits()
        self.visible = around
        self.leave()

    def _with(self) -> None:
        self.expect("WITH")
        if self.symbol in {"FUNCTION", "SESSION"} and self.ahead().name:
            raise UnsafeSql(
                f"WITH {self.symbol} is not accepted: it brings code or settings of its own along.",
                suggestion="Write the query without it.",
                offset=self.offset,
            )
        recursive = self.accept("RECURSIVE")
        self._member(recursive)
        while self.accept(","):
            self._member(recursive)

    def _member(self, recursive: bool) -> None:
        """Read a member of WITH. Later ones see its name, and it sees itself if WITH is recursive."""
        name, before, recursed = self.read_name(), self.size, self.recursed
        self.read_columns()
        self.expect("AS")
        # If a WITH in it defines the name again, the server may take the name for a table anywhere in the member.
        self.recursing = frozenset({name}) if recursive and not self.has_inner_with() else frozenset()
        self.recursed = False
        self.read_query_in_parentheses()
        self.recursing = frozenset()
        size = (self.size - before) * (_RECURSIONS if self.recursed else 1)
        self.visible, self.size, self.recursed = {**self.visible, name: size}, before, recursed

    def _term(self) -> None:
        self.size += 1
        if self.symbol == "SELECT":
            self._select()
        elif self.symbol == "(":
            self.read_query_in_parentheses()
        elif self.accept("VALUES"):
            self.read_expressions()
        else:
            start = self.offset
            self.expect("TABLE")
            mention = self.read_relation_name("query")
            if mention is not None:
                mention.start = start

    def _limits(self) -> None:
        """Read OFFSET and LIMIT or FETCH. Their order is left to the server."""
        while True:
            if self.accept("OFFSET"):
                self.read_expression()
                self.accept_any(_ROWS)
            elif self.accept("LIMIT"):
                if not self.accept("ALL"):
                    self.read_expression()
            elif self.accept("FETCH"):
                self._fetch()
            else:
                return

    def _fetch(self) -> None:
        self.expect_any(frozenset({"FIRST", "NEXT"}))
        self.accept_any(frozenset({NUMBER, "?"}))
        self.expect_any(_ROWS)
        if not self.accept("ONLY"):
            self.expect("WITH", "TIES")

    def _select(self) -> None:
        self.expect("SELECT")
        self._quantifier_of_select()
        self._item()
        while self.accept(","):
            self._item()
        if self.accept("FROM"):
            self.read_relations()
        if self.accept("WHERE"):
            self.read_expression()
        if self.accept("GROUP", "BY"):
            self._groups()
        if self.accept("HAVING"):
            self.read_expression()
        if self.symbol == "WINDOW":
            self._windows()

    def _quantifier_of_select(self) -> None:
        following = self.ahead()
        if self.symbol == "ALL" and (following.name or following.symbol in ATOMS | {"*", "(", "CASE", "CAST"}):
            self.advance()
        else:
            self.accept("DISTINCT")

    def _item(self) -> None:
        if not self.accept("*"):
            self.read_expression()
            self.read_alias()

    def _groups(self) -> None:
        if self.ahead().symbol not in _AFTER_GROUPS:
            self.accept_any(_QUANTIFIERS)
        while True:
            if self.symbol in _GROUPINGS:
                self.advance()
                self._sets()
            elif self.accept("GROUPING", "SETS"):
                self._sets()
            elif not self.accept("AUTO"):
                self._set()
            if not self.accept(","):
                return

    def _sets(self) -> None:
        """Read sets of expressions in parentheses, which may be grouping sets themselves."""
        self.expect("(")
        if self.accept(")"):
            return
        self._set()
        while self.accept(","):
            self._set()
        self.expect(")")

    def _set(self) -> None:
        if not self.accept("(", ")"):
            self.read_expression()

    def _windows(self) -> None:
        self.expect("WINDOW")
        while True:
            self.read_name()
            self.expect("AS", "(")
            self.read_window()
            self.expect(")")
            if not self.accept(","):
                return
