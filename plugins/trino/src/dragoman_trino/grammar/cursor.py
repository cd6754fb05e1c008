"""A place among the tokens of a statement, and what was found before it."""

from __future__ import annotations

from typing import NoReturn

from dragoman import CallKind, DragomanError, FunctionCall, InvalidSql, WriteDenied, schema_of

from dragoman_trino.grammar.found import Found
from dragoman_trino.grammar.tokens import END, NUMBER, OTHER, QUOTED, STRING, Token, tokens

DEEPEST = 100
"""Expressions and types within one another; the text guard bounds parentheses only."""

# Reserved words that no query holds: the refusal says what was meant.
_WRITES = frozenset("ALTER CREATE DEALLOCATE DELETE DROP EXECUTE INSERT INTO PREPARE".split())
_HINTS = {
    ":": "Write ? for a parameter and pass its value in params; write CAST(a AS type) for a cast.",
    "$": "Write ? for a parameter and pass its value in params.",
    NUMBER: "Put a comma or an operator in front of it; a parameter is ? without a number.",
    OTHER: "Remove it, or put double quotes around the name it belongs to.",
}
_LOCKS = frozenset({"UPDATE", "SHARE", "NO", "KEY"})


class Cursor:
    """Reads tokens one by one. `symbol` is the current token's; every `read_*` leaves it at the first one not read.

    Whatever does not fit raises `InvalidSql`, or `WriteDenied` where a write was meant, with its offset.
    """

    def __init__(self, text: str) -> None:
        self.found = Found()
        self.visible: frozenset[str] = frozenset()
        self._tokens = tokens(text)
        self._last = len(self._tokens) - 1
        self._closings = _closings(self._tokens)
        self._index = 0
        self._depth = 0
        self.symbol = self._tokens[0].symbol

    # Looking

    def ahead(self, count: int = 1) -> Token:
        """Return the token `count` after the current one; the end when there is none."""
        return self._tokens[min(self._index + count, self._last)]

    def at(self, *symbols: str) -> bool:
        """Whether these are the current token and those after it."""
        return self.symbol == symbols[0] and (
            len(symbols) == 1 or all(self.ahead(count).symbol == symbol for count, symbol in enumerate(symbols[1:], 1))
        )

    def at_name(self) -> bool:
        """Whether the current token can be a name."""
        return self._tokens[self._index].name

    def beyond(self, ahead: int = 0) -> Token:
        """Return the token after the counterpart of the parenthesis so many tokens ahead."""
        return self._tokens[min(self._closings.get(self._index + ahead, self._last) + 1, self._last)]

    # Moving

    def advance(self, count: int = 1) -> None:
        """Go on by `count` tokens."""
        self._index = min(self._index + count, self._last)
        self.symbol = self._tokens[self._index].symbol

    def accept(self, *symbols: str) -> bool:
        """Go past `symbols` if they are here; whether they were."""
        found = self.at(*symbols)
        if found:
            self.advance(len(symbols))
        return found

    def accept_any(self, symbols: frozenset[str]) -> bool:
        """Go past one of `symbols` if it is here; whether it was."""
        found = self.symbol in symbols
        if found:
            self.advance()
        return found

    def expect(self, *symbols: str) -> None:
        """Go past `symbols`, which must be here."""
        for symbol in symbols:
            if self.symbol != symbol:
                self.fail()
            self.advance()

    def expect_any(self, symbols: frozenset[str]) -> None:
        """Go past one of `symbols`, which must be here."""
        if not self.accept_any(symbols):
            self.fail()

    def enter(self) -> None:
        """Note that something opens that may hold itself; `leave` when it closes."""
        self._depth += 1
        if self._depth > DEEPEST:
            self.fail_as_too_deep()

    def leave(self) -> None:
        """Note that what was entered last has closed."""
        self._depth -= 1

    # Names

    def read_name(self) -> str:
        """Read one name, which the server takes in lower case, quoted or not."""
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

    def note_call(self, names: tuple[str, ...], offset: int, *, table: bool = False) -> None:
        """Note that the statement calls a function."""
        kind: CallKind = "table function" if table else "function"
        self.found.calls.append(FunctionCall(names[-1], schema_of(names), offset, kind))

    # Failing

    @property
    def offset(self) -> int:
        """Where the current token stands."""
        return self._tokens[self._index].start

    @property
    def end(self) -> int:
        """Where what was read last ends."""
        token = self._tokens[self._index - 1]
        return token.start + len(token.text)

    def fail(self) -> NoReturn:
        """Raise what says that the current token does not fit."""
        raise self._misfit()

    def fail_as_too_deep(self) -> NoReturn:
        """Raise what says that too much is nested."""
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
                # A function where Trino has none: that it is not listed is the better reason.
                self.note_call((name.text.strip('"').lower(),), name.start)
        if token.symbol == END:
            message = "The statement ends too early."
        else:
            shown = {STRING: "A text", QUOTED: "A name", OTHER: "A character outside quotes"}
            message = f"{shown.get(token.symbol, token.text)} is not expected here."
        hint = _HINTS.get(token.symbol, "Check its syntax.")
        return InvalidSql(f"The statement does not parse: {message}", suggestion=hint, offset=token.start)


def _closings(found: list[Token]) -> dict[int, int]:
    """Where each parenthesis that is closed is closed."""
    closings: dict[int, int] = {}
    opened: list[int] = []
    for index, token in enumerate(found):
        if token.symbol == "(":
            opened.append(index)
        elif token.symbol == ")" and opened:
            closings[opened.pop()] = index
    return closings
