"""A place among the tokens of a statement, and what was found before it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import NoReturn

from dragoman import CallKind, DragomanError, FunctionCall, InvalidSql, UnsafeSql, WriteDenied, schema_of

from dragoman_trino.grammar.found import Found
from dragoman_trino.grammar.tokens import END, NUMBER, OTHER, QUOTED, STRING, Token, tokens

DEEPEST = 100
"""The most nested expressions and types. The text guard bounds only parentheses."""
LARGEST = 10_000
"""The most queries and relations of a statement that has each member of WITH in every place that names it.

Trino plans it so. It takes a second or two for so many, on a server of 2 GB. A statement of 1,500 characters has
millions, if each member names the one before twice. A few of these leave that server without memory for minutes.
"""

# Reserved words that no query contains. The refusal says what was meant.
_WRITES = frozenset("ALTER CREATE DEALLOCATE DELETE DROP EXECUTE INSERT INTO PREPARE".split())
_HINTS = {
    ":": "Write ? for a parameter and pass its value in params; write CAST(a AS type) for a cast.",
    "$": "Write ? for a parameter and pass its value in params.",
    NUMBER: "Put a comma or an operator in front of it; a parameter is ? without a number.",
    OTHER: "Remove it, or put double quotes around the name it belongs to.",
}
_LOCKS = frozenset({"UPDATE", "SHARE", "NO", "KEY"})


class Cursor:
    """Reads tokens one by one. `symbol` is the current token's.

    `visible`: the names of WITH that are visible here, and the size of each. `recursing`: the name of the member that
    is being read, where the server can only take it for the member itself; `recursed`: it was. `size`: of what was
    read so far, in queries and relations.

    Every `read_*` stops at the first token it did not read.

    A token that does not match raises `InvalidSql`, or `WriteDenied` if a write was meant, with its offset.
    """

    def __init__(self, text: str) -> None:
        self.found = Found()
        self.visible: Mapping[str, int] = {}
        self.recursing: frozenset[str] = frozenset()
        self.recursed = False
        self.size = 0
        self._tokens = tokens(text)
        self._last = len(self._tokens) - 1
        self._closings = _closings(self._tokens)
        self._index = 0
        self._depth = 0
        self.symbol = self._tokens[0].symbol

    # Lookahead

    def ahead(self, count: int = 1) -> Token:
        """Return the token `count` after the current one; the end token if there is none."""
        return self._tokens[min(self._index + count, self._last)]

    def at(self, *symbols: str) -> bool:
        """Return whether these are the current token and those after it."""
        return self.symbol == symbols[0] and (
            len(symbols) == 1 or all(self.ahead(count).symbol == symbol for count, symbol in enumerate(symbols[1:], 1))
        )

    def at_name(self) -> bool:
        """Return whether the current token can be a name."""
        return self._tokens[self._index].name

    def beyond(self, ahead: int = 0) -> Token:
        """Return the token after the counterpart of the parenthesis that is `ahead` tokens ahead."""
        return self._tokens[min(self._closings.get(self._index + ahead, self._last) + 1, self._last)]

    def has_inner_with(self) -> bool:
        """Return whether the parentheses that open here contain a query with a WITH clause."""
        inside = self._tokens[self._index : self._closings.get(self._index, self._last)]
        return any(each.symbol == "(" and following.symbol == "WITH" for each, following in pairwise(inside))

    # Movement

    def advance(self, count: int = 1) -> None:
        """Move on by `count` tokens."""
        self._index = min(self._index + count, self._last)
        self.symbol = self._tokens[self._index].symbol

    def accept(self, *symbols: str) -> bool:
        """Move past `symbols` if they are here, and return whether they were."""
        found = self.at(*symbols)
        if found:
            self.advance(len(symbols))
        return found

    def accept_any(self, symbols: frozenset[str]) -> bool:
        """Move past one of `symbols` if it is here, and return whether it was."""
        found = self.symbol in symbols
        if found:
            self.advance()
        return found

    def expect(self, *symbols: str) -> None:
        """Move past `symbols`, which must be here."""
        for symbol in symbols:
            if self.symbol != symbol:
                self.fail()
            self.advance()

    def expect_any(self, symbols: frozenset[str]) -> None:
        """Move past one of `symbols`, which must be here."""
        if not self.accept_any(symbols):
            self.fail()

    def enter(self) -> None:
        """Record that a construct opens that may contain itself; call `leave` when it closes."""
        self._depth += 1
        if self._depth > DEEPEST:
            self.fail_as_too_deep()

    def leave(self) -> None:
        """Record that the last entered construct has closed."""
        self._depth -= 1

    # Names

    def read_name(self) -> str:
        """Read one name. The server folds it to lower case, quoted or not."""
        token = self._tokens[self._index]
        if not token.name:
            self.fail()
        self.advance()
        return token.text[1:-1].replace('""', '"').lower() if token.symbol == QUOTED else token.text.lower()

    def read_names(self) -> tuple[str, ...]:
        """Read a dotted name."""
        names = [self.read_name()]
        while self.symbol == "." and self.ahead().name:
            self.advance()
            names.append(self.read_name())
        return tuple(names)

    def read_columns(self) -> None:
        """Read names in parentheses, if they are here."""
        if self.accept("("):
            self.read_name()
            while self.accept(","):
                self.read_name()
            self.expect(")")

    def note_member(self, size: int) -> None:
        """Record that the statement names a member of WITH of that size. Raises `UnsafeSql` if it is too large then."""
        self.size += size
        if self.size > LARGEST:
            raise UnsafeSql(
                f"The statement has more than {LARGEST} queries and relations, because each name of a member of WITH"
                " stands for the whole member.",
                suggestion="Name each member less often, or ask in several statements.",
                offset=self.offset,
            )

    def note_call(self, names: tuple[str, ...], offset: int, *, table: bool = False) -> None:
        """Record that the statement calls a function."""
        kind: CallKind = "table function" if table else "function"
        self.found.calls.append(FunctionCall(names[-1], schema_of(names), offset, kind))

    # Failures

    @property
    def offset(self) -> int:
        """The offset of the current token."""
        return self._tokens[self._index].start

    @property
    def end(self) -> int:
        """The end of the last token that was read."""
        token = self._tokens[self._index - 1]
        return token.start + len(token.text)

    def fail(self) -> NoReturn:
        """Raise the error for a current token that does not match."""
        raise self._misfit()

    def fail_as_too_deep(self) -> NoReturn:
        """Raise the error for too deep nesting."""
        raise InvalidSql(
            "The statement is nested too deeply.",
            suggestion="Use WITH to name inner queries instead of nesting them.",
            offset=self.offset,
        )

    def _misfit(self) -> DragomanError:
        token = self._tokens[self._index]
        if token.symbol in _WRITES or (token.symbol == "FOR" and self.ahead().symbol in _LOCKS):
            return WriteDenied(
                f"{token.symbol} is not part of a query.",
                suggestion="Only queries are run here: SELECT, VALUES, TABLE, and WITH in front of them.",
                offset=token.start,
            )
        for index in (self._index - 1, self._index):
            name, following = self._tokens[index], self._tokens[min(index + 1, self._last)]
            if name.name and following.symbol == "(":
                # A function in a place where Trino has none: that it is not listed is the better reason.
                self.note_call((name.text.strip('"').lower(),), name.start)
        if token.symbol == END:
            message = "The statement ends too early."
        else:
            shown = {STRING: "A text", QUOTED: "A name", OTHER: "A character outside quotes"}
            message = f"{shown.get(token.symbol, token.text)} is not expected here."
        hint = _HINTS.get(token.symbol, "Check its syntax.")
        return InvalidSql(f"The statement does not parse: {message}", suggestion=hint, offset=token.start)


def _closings(found: list[Token]) -> dict[int, int]:
    """Return for each opening parenthesis the place where it closes."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(found):
        if token.symbol == "(":
            opened.append(index)
        elif token.symbol == ")" and opened:
            closings[opened.pop()] = index
    return closings
