"""Windows, and the row patterns of windows and MATCH_RECOGNIZE."""

from __future__ import annotations

import abc
from math import factorial

from dragoman import UnsafeSql

from dragoman_trino.grammar.expressions import Expressions
from dragoman_trino.grammar.tokens import NUMBER

_FRAMES = frozenset({"RANGE", "ROWS", "GROUPS"})
_DIRECTIONS = frozenset({"PRECEDING", "FOLLOWING"})
_STARTS = frozenset({"INITIAL", "SEEK"})
_OPENINGS = frozenset({"PARTITION", "MEASURES"}) | _FRAMES
_ANCHORS = frozenset({"^", "$"})
_REPEATERS = frozenset({"|", "*", "+", "?"})
_ENDS = frozenset({")", "-}", ","})
_IN_BRACES = frozenset({NUMBER, ","})
LONGEST_PATTERN = 5_000
"""How many variables a row pattern may have when its repetitions and PERMUTE are written out, as Trino does.

It fails on somewhat shorter ones, at once and alone. Far longer ones leave the server without memory.
"""


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

    def _pattern(self, end: str = ")") -> int:
        """Read a pattern and its `end`. Return how many variables it has once it is written out, at least 1."""
        size = self._sequence()
        self.expect(end)
        return max(size, 1)

    def _sequence(self) -> int:
        self.enter()
        size = last = 0
        while self.symbol not in _ENDS:
            if self.accept("{"):
                size += last * (self._most_times() - 1)
            elif self.symbol in _REPEATERS:
                self._repeater()
            else:
                last = self._part_of_pattern()
                size += last
            self._check_length(size)
        self.leave()
        return size

    def _repeater(self) -> None:
        if self.symbol == "?":
            self.found.quantifiers.add(self.offset)
        self.advance()

    def _part_of_pattern(self) -> int:
        if self.accept("PERMUTE", "("):
            return self._permutation()
        if self.accept("("):
            return self._pattern()
        if self.accept("{-"):
            return self._pattern("-}")
        if not self.accept_any(_ANCHORS):
            self.read_name()
        return 1

    def _permutation(self) -> int:
        """Read patterns that stand in every order."""
        sizes = [max(self._sequence(), 1)]
        while self.accept(","):
            sizes.append(max(self._sequence(), 1))
        self.expect(")")
        return sum(sizes) * factorial(min(len(sizes), 10))

    def _most_times(self) -> int:
        """Read the numbers in braces, and return the largest."""
        most = 1
        while not self.accept("}"):
            most = max(most, _whole(self.ahead(0).text))
            if not self.accept_any(_IN_BRACES):
                self.fail()
        return most

    def _check_length(self, size: int) -> None:
        if size > LONGEST_PATTERN:
            raise UnsafeSql(
                f"A row pattern has more than {LONGEST_PATTERN} variables when its repetitions are written out.",
                suggestion="Repeat less often, or write + or *.",
                offset=self.offset,
            )

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


def _whole(digits: str) -> int:
    """Return a number of a repetition; one that is written in another way counts as too large."""
    if not digits.isdecimal():
        return 1 if digits == "," else LONGEST_PATTERN + 1
    return int(digits) if len(digits) <= 7 else LONGEST_PATTERN + 1
