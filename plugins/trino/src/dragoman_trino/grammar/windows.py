"""Windows, and the row patterns of windows and MATCH_RECOGNIZE."""

from __future__ import annotations

import abc

from dragoman_trino.grammar.expressions import Expressions
from dragoman_trino.grammar.tokens import NUMBER

_FRAMES = frozenset({"RANGE", "ROWS", "GROUPS"})
_DIRECTIONS = frozenset({"PRECEDING", "FOLLOWING"})
_STARTS = frozenset({"INITIAL", "SEEK"})
_OPENINGS = frozenset({"PARTITION", "MEASURES"}) | _FRAMES
# The symbols of a pattern beside its variables.
_PATTERN = frozenset({"(", ")", ",", "|", "*", "+", "?", "{", "}", "^", "$", "{-", "-}", NUMBER})


class Windows(Expressions, abc.ABC):
    """Reads windows and patterns."""

    def read_window(self) -> None:
        """Read the contents of the parentheses after OVER."""
        following = self.ahead().symbol
        if self.at_name() and (self.symbol not in _OPENINGS or following in {")", "ORDER"} | _OPENINGS):
            self.read_name()
        self.read_partition()
        if self.accept("ORDER", "BY"):
            self.read_sort()
        self._measures()
        if self.accept_any(_FRAMES):
            if self.accept("BETWEEN"):
                self._read_bound()
                self.expect("AND")
            self._read_bound()
        self.read_pattern()

    def read_partition(self) -> None:
        """Read PARTITION BY, if it is here."""
        if self.accept("PARTITION", "BY"):
            self.read_expressions()

    def read_matching(self) -> None:
        """Read the contents of the parentheses after MATCH_RECOGNIZE."""
        self.read_partition()
        if self.accept("ORDER", "BY"):
            self.read_sort()
        self._measures()
        self._rows_per_match()
        self.read_pattern()

    def read_pattern(self) -> None:
        """Read where to continue after a match, the pattern and its variables, as far as they are here."""
        if self.accept("AFTER", "MATCH", "SKIP"):
            self._skip()
        self.accept_any(_STARTS)
        if self.accept("PATTERN", "("):
            self._pattern()
        if self.accept("SUBSET"):
            self._subset()
            while self.accept(","):
                self._subset()
        if self.accept("DEFINE"):
            self._definition()
            while self.accept(","):
                self._definition()

    def _read_bound(self) -> None:
        if self.accept("CURRENT", "ROW"):
            return
        if not (self.symbol == "UNBOUNDED" and self.ahead().symbol in _DIRECTIONS):
            self.read_expression()
        else:
            self.advance()
        self.expect_any(_DIRECTIONS)

    def _measures(self) -> None:
        if not self.accept("MEASURES"):
            return
        while True:
            self.read_expression()
            self.expect("AS")
            self.read_name()
            if not self.accept(","):
                return

    def _rows_per_match(self) -> None:
        if self.accept("ONE", "ROW", "PER", "MATCH") or not self.accept("ALL", "ROWS", "PER", "MATCH"):
            return
        if self.accept("WITH", "UNMATCHED", "ROWS"):
            return
        if self.accept_any(frozenset({"SHOW", "OMIT"})):
            self.expect("EMPTY", "MATCHES")

    def _skip(self) -> None:
        if self.accept("PAST", "LAST", "ROW") or self.accept("TO", "NEXT", "ROW"):
            return
        self.expect("TO")
        if self.symbol in {"FIRST", "LAST"} and self.ahead().name:
            self.advance()
        self.read_name()

    def _pattern(self) -> None:
        depth = 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.symbol, 0)
            if self.symbol == "?":
                self.found.quantifiers.add(self.offset)
            if not self.accept_any(_PATTERN):
                self.read_name()

    def _subset(self) -> None:
        self.read_name()
        self.expect("=", "(")
        self.read_name()
        while self.accept(","):
            self.read_name()
        self.expect(")")

    def _definition(self) -> None:
        self.read_name()
        self.expect("AS")
        self.read_expression()
