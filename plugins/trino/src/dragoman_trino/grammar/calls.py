"""Calls: arguments, what follows them, and functions with a grammar of their own."""

from __future__ import annotations

import abc
from collections.abc import Callable
from typing import ClassVar

from dragoman_trino.grammar.tokens import NUMBER, STRING
from dragoman_trino.grammar.types import Types

ATOMS = frozenset(
    "NULL TRUE FALSE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP LOCALTIME LOCALTIMESTAMP CURRENT_USER CURRENT_CATALOG"
    " CURRENT_SCHEMA CURRENT_PATH".split()
) | {STRING, NUMBER, "?"}
"""Operands that are one token."""
PLACES = frozenset({"CURRENT_SCHEMA", "CURRENT_PATH"})
"""Those that tell where names are looked up."""

_DIRECTIONS = frozenset({"ASC", "DESC"})
_ENDS = frozenset({"FIRST", "LAST"})
# Options after the arguments of JSON functions, one word after the other.
_JSON_WORDS = frozenset(
    "ABSENT ARRAY CONDITIONAL EMPTY ERROR FALSE KEEP KEY KEYS NULL OBJECT OMIT ON QUOTES SCALAR STRING TRUE"
    " UNCONDITIONAL UNIQUE UNKNOWN WITH WITHOUT WRAPPER".split()
)


class Calls(Types, abc.ABC):
    """Reads arguments. A subclass reads the expressions and queries in them."""

    @abc.abstractmethod
    def read_expression(self) -> None:
        """Read an expression."""

    @abc.abstractmethod
    def read_query(self) -> None:
        """Read a query."""

    @abc.abstractmethod
    def read_window(self) -> None:
        """Read the contents of the parentheses after OVER."""

    def read_expressions(self) -> None:
        """Read expressions separated by commas."""
        self.read_expression()
        while self.accept(","):
            self.read_expression()

    def read_sort(self) -> None:
        """Read what follows ORDER BY."""
        while True:
            self.read_expression()
            self.accept_any(_DIRECTIONS)
            if self.accept("NULLS"):
                self.expect_any(_ENDS)
            if not self.accept(","):
                return

    def read_form(self) -> bool:
        """Read a function with a grammar of its own, if one is here, and return whether it was."""
        form = self._FORMS.get(self.symbol)
        if form is None or self.ahead().symbol != "(":
            return False
        self.advance(2)
        form(self)
        self.expect(")")
        self.read_call_tail()
        return True

    def read_arguments(self) -> None:
        if self.symbol == ")" or self.accept("*"):
            return
        self._quantifier()
        if self.symbol != "ORDER":
            self.read_expressions()
        if self.accept("ORDER", "BY"):
            self.read_sort()

    def _quantifier(self) -> None:
        following = self.ahead()
        if self.symbol == "ALL" and (following.name or following.symbol in ATOMS):
            self.advance()
        else:
            self.accept("DISTINCT")

    def read_call_tail(self) -> None:
        """Read what follows the arguments of aggregates and window functions."""
        if self.at("WITHIN", "GROUP", "(", "ORDER", "BY"):
            self.advance(5)
            self.read_sort()
            self.expect(")")
        if self.at("FILTER", "(", "WHERE"):
            self.advance(3)
            self.read_expression()
            self.expect(")")
        if self.at("IGNORE", "NULLS") or self.at("RESPECT", "NULLS"):
            self.advance(2)
        if self.symbol == "OVER" and (self.ahead().name or self.ahead().symbol == "("):
            self.advance()
            if self.accept("("):
                self.read_window()
                self.expect(")")
            else:
                self.read_name()

    # Functions with a grammar of their own: the contents of their parentheses

    def _cast(self) -> None:
        self.read_expression()
        self.expect("AS")
        self.read_type()

    def _extract(self) -> None:
        self.read_name()
        self.expect("FROM")
        self.read_expression()

    def _trim(self) -> None:
        if self.symbol in {"LEADING", "TRAILING", "BOTH"} and self.ahead().symbol not in {",", ")", ".", "("}:
            self.advance()
        if self.symbol != "FROM":
            self.read_expression()
        if self.accept_any(frozenset({"FROM", ","})):
            self.read_expression()

    def _substring(self) -> None:
        self.read_expression()
        while self.accept_any(frozenset({",", "FROM", "FOR"})):
            self.read_expression()

    def _listagg(self) -> None:
        self._quantifier()
        self.read_expressions()
        if not self.accept("ON", "OVERFLOW"):
            return
        if not self.accept("ERROR"):
            self.expect("TRUNCATE")
            self.accept(STRING)
            self.expect_any(frozenset({"WITH", "WITHOUT"}))
            self.expect("COUNT")

    def _grouping(self) -> None:
        if self.symbol != ")":
            self.read_expressions()

    def _row(self) -> None:
        while self.symbol != ")":
            self.read_expression()
            if self.accept("AS"):
                self.read_name()
            if not self.accept(","):
                return

    def _exists(self) -> None:
        self.read_query()

    # JSON

    def read_json_path(self) -> None:
        """Read a JSON value, a path into it, and the values that are passed to the path."""
        self._json_value()
        self.expect(",", STRING)
        if self.accept("AS"):
            self.read_name()
        if self.accept("PASSING"):
            self._json_value()
            self.expect("AS")
            self.read_name()
            while self.accept(","):
                self._json_value()
                self.expect("AS")
                self.read_name()

    def read_json_format(self) -> None:
        """Read FORMAT JSON, if it is here."""
        if self.accept("FORMAT", "JSON") and self.accept("ENCODING"):
            self.expect_any(frozenset({"UTF8", "UTF16", "UTF32"}))

    def read_json_options(self) -> None:
        """Read the type to return, and the handling of special cases."""
        while True:
            if self.accept("RETURNING"):
                self.read_type()
                self.read_json_format()
            elif self.accept("DEFAULT"):
                self.read_expression()
            elif not self.accept_any(_JSON_WORDS):
                return

    def _json_value(self) -> None:
        self.read_expression()
        self.read_json_format()

    def _json_function(self) -> None:
        self.read_json_path()
        self.read_json_options()

    def _json_array(self) -> None:
        if self.symbol not in {")", "RETURNING"}:
            self._json_value()
            while self.accept(","):
                self._json_value()
        self.read_json_options()

    def _json_object(self) -> None:
        if self.symbol not in {")", "RETURNING"}:
            self._json_member()
            while self.accept(","):
                self._json_member()
        self.read_json_options()

    def _json_member(self) -> None:
        following = self.ahead()
        if self.symbol == "KEY" and following.name and following.symbol != "VALUE":
            self.advance()
        self.read_expression()
        self.expect_any(frozenset({"VALUE", ":"}))
        self._json_value()

    def _precision(self) -> None:
        self.expect(NUMBER)

    _FORMS: ClassVar[dict[str, Callable[[Calls], None]]] = {
        "CAST": _cast,
        "TRY_CAST": _cast,
        "EXTRACT": _extract,
        "TRIM": _trim,
        "SUBSTRING": _substring,
        "POSITION": read_expressions,
        "NORMALIZE": read_expressions,
        "LISTAGG": _listagg,
        "GROUPING": _grouping,
        "ROW": _row,
        "EXISTS": _exists,
        "JSON_EXISTS": _json_function,
        "JSON_VALUE": _json_function,
        "JSON_QUERY": _json_function,
        "JSON_OBJECT": _json_object,
        "JSON_ARRAY": _json_array,
        "CURRENT_TIME": _precision,
        "CURRENT_TIMESTAMP": _precision,
        "LOCALTIME": _precision,
        "LOCALTIMESTAMP": _precision,
    }
