"""Types, as in CAST. They run nothing, so their names do not matter."""

from __future__ import annotations

from dragoman_trino.grammar.cursor import Cursor
from dragoman_trino.grammar.tokens import NUMBER

FIELDS = frozenset({"YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"})
"""The units of an interval."""


class Types(Cursor):
    """Reads types."""

    def read_type(self) -> None:
        """Read a type."""
        self.enter()
        match self.symbol:
            case "ARRAY" | "MAP" if self.ahead().symbol == "<":
                self.advance(2)
                self.read_type()
                while self.accept(","):
                    self.read_type()
                self.expect(">")
            case "INTERVAL" if self.ahead().symbol in FIELDS:
                self.advance()
                self.read_interval_fields()
            case "DOUBLE" if self.ahead().symbol == "PRECISION":
                self.advance(2)
            case _:
                self.read_name()
                self._parameters()
                self._time_zone()
        while self.symbol == "ARRAY" and self.ahead().symbol not in {"(", "<"}:
            self.advance()
            if self.accept("["):
                self.expect(NUMBER)
                self.expect("]")
        self.leave()

    def read_interval_fields(self) -> None:
        """Read DAY, or DAY TO SECOND."""
        self.expect_any(FIELDS)
        if self.symbol == "TO" and self.ahead().symbol in FIELDS:
            self.advance(2)

    def _parameters(self) -> None:
        """Read lengths, types, or a row's fields: a type, or a name and a type."""
        if not self.accept("("):
            return
        while True:
            if not self.accept(NUMBER):
                self.read_type()
                if self.symbol not in {",", ")"}:
                    self.read_type()
            if not self.accept(","):
                break
        self.expect(")")

    def _time_zone(self) -> None:
        if self.at("WITH", "TIME", "ZONE") or self.at("WITHOUT", "TIME", "ZONE"):
            self.advance(3)
