"""Expressions: operands with operators between them, whatever their precedence."""

from __future__ import annotations

import abc

from dragoman_trino.grammar.calls import ATOMS, PLACES, Calls
from dragoman_trino.grammar.cursor import DEEPEST
from dragoman_trino.grammar.tokens import END, STRING
from dragoman_trino.grammar.types import FIELDS

_SIGNS = frozenset({"NOT", "+", "-"})
_COMPARISONS = frozenset({"=", "<>", "!=", "<", "<=", ">", ">="})
_QUANTIFIERS = frozenset({"ALL", "SOME", "ANY"})
_BINARY = _COMPARISONS | {"AND", "OR", "+", "-", "*", "/", "%", "||", "BETWEEN", "LIKE", "ESCAPE"}
_NEGATED = frozenset({"BETWEEN", "IN", "LIKE"})
_QUERIES = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
_AFTER = frozenset({",", ")", END})
# What may follow a query in parentheses that is part of a query itself, and not an operand.
_GOES_ON = frozenset({")", "UNION", "INTERSECT", "EXCEPT", "ORDER", "LIMIT", "OFFSET", "FETCH"})


class Expressions(Calls, abc.ABC):
    """Reads expressions. A subclass reads the queries in them."""

    def read_expression(self) -> None:
        """Read an expression."""
        if self.ahead().symbol in _AFTER and (self.symbol in ATOMS or self.at_name()):
            self._alone()  # as in the long lists of IN
            return
        self.enter()
        recursing, self.recursing = self.recursing, frozenset()  # a member may use itself in FROM only
        self._operand()
        while self._operator():
            self._operand()
        self.recursing = recursing
        self.leave()

    def _alone(self) -> None:
        """Read an operand of one token."""
        if self.symbol in PLACES:
            self.note_call((self.symbol.lower(),), self.offset)
        self.advance()

    def opens_query(self, ahead: int = 0) -> bool:
        """Return whether the parenthesis `ahead` tokens ahead contains a query."""
        inner, following = self.ahead(ahead + 1).symbol, self.ahead(ahead + 2).symbol
        if inner != "(":
            return inner in _QUERIES and (inner, following) != ("TABLE", "(")  # that is a table function
        return self.opens_query(ahead + 1) and self.beyond(ahead + 1).symbol in _GOES_ON

    def read_query_in_parentheses(self) -> None:
        """Read a query with its parentheses."""
        self.expect("(")
        self.read_query()
        self.expect(")")

    # Operators

    def _operator(self) -> bool:
        """Read what stands after an operand. Return whether another operand must follow."""
        while True:
            symbol = self.symbol
            if symbol in _BINARY:
                self.advance()
                if not (symbol in _COMPARISONS and self._read_quantified()):
                    return True
            elif symbol == "NOT" and self.ahead().symbol in _NEGATED:
                self.advance()
            elif symbol == "IN":
                self.advance()
                if self.symbol != "(":
                    return True  # of POSITION(a IN b)
                self._parentheses()
            elif symbol == "IS":
                self.advance()
                self.accept("NOT")
                if self.accept("DISTINCT", "FROM"):
                    return True
                self.expect("NULL")
            else:
                return self.accept("AT", "TIME", "ZONE")

    def _read_quantified(self) -> bool:
        found = self.symbol in _QUANTIFIERS and self.ahead().symbol == "(" and self.opens_query(1)
        if found:
            self.advance()
            self.read_query_in_parentheses()
        return found

    # Operands

    def _operand(self) -> None:
        self._signs()
        if not self.read_form():
            self._plain_operand()
        self._parts()

    def _plain_operand(self) -> None:
        symbol = self.symbol
        if symbol in ATOMS:
            self._alone()
        elif symbol == "(":
            self._parentheses()
        elif symbol == "CASE":
            self._case()
        elif symbol == "[" or self.at("ARRAY", "["):
            self._elements()
        elif symbol == "INTERVAL" and self._ahead_of_sign() == STRING:
            self.advance()
            self.accept_any(_SIGNS)
            self.expect(STRING)
            if self.symbol in FIELDS:
                self.read_interval_fields()
        else:
            self._read_named()

    def _elements(self) -> None:
        self.accept("ARRAY")
        self.expect("[")
        if self.symbol != "]":
            self.read_expressions()
        self.expect("]")

    def _signs(self) -> None:
        for _ in range(DEEPEST):
            if not self.accept_any(_SIGNS):
                return
        self.fail_as_too_deep()

    def _parentheses(self) -> None:
        """Read a query, expressions, or the arguments of a lambda."""
        if self.opens_query():
            self.read_query_in_parentheses()
            return
        if self.beyond().symbol == "->":
            self.advance()
            while self.accept(",") or self.symbol != ")":
                self.read_name()
            self.expect(")", "->")
            self.read_expression()
            return
        self.expect("(")
        self.read_expressions()
        self.expect(")")

    def _ahead_of_sign(self) -> str:
        """Return the next symbol, or the one after it if it is a sign."""
        following = self.ahead().symbol
        return self.ahead(2).symbol if following in _SIGNS else following

    def _case(self) -> None:
        self.expect("CASE")
        if self.symbol != "WHEN":
            self.read_expression()
        while True:
            self.expect("WHEN")
            self.read_expression()
            self.expect("THEN")
            self.read_expression()
            if self.symbol != "WHEN":
                break
        if self.accept("ELSE"):
            self.read_expression()
        self.expect("END")

    def _read_named(self) -> None:
        """Read a column, a call, a lambda, or a value of a named type."""
        following = self.ahead()
        if self.symbol in {"RUNNING", "FINAL"} and following.name and self.ahead(2).symbol in {"(", "."}:
            self.advance()
        elif following.symbol == STRING and self.at_name():
            self.advance(2)
            return
        elif self.at("DOUBLE", "PRECISION", STRING):
            self.advance(3)
            return
        elif following.symbol == "->" and self.at_name():
            self.advance(2)
            self.read_expression()
            return
        offset = self.offset
        names = self.read_names()
        if self.symbol == "(":
            self.note_call(names, offset)
            self.advance()
            self.read_arguments()
            self.expect(")")
        self.read_call_tail()

    def _parts(self) -> None:
        """Read elements, fields, and the star of a.*."""
        while True:
            if self.accept("["):
                self.read_expression()
                self.expect("]")
            elif self.accept("."):
                if not self.accept("*"):
                    self.read_name()
            else:
                return
