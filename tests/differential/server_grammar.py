"""Trino's own grammar, as the server's jar carries it: the tables of its lexer and parser, walked in Python.

Slow, and only for tests: it says what the server's parser takes, without a server.
"""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain
from typing import Any, NamedTuple

from antlr4 import InputStream, Lexer, Token
from antlr4.atn.ATN import ATN
from antlr4.atn.ATNDeserializer import ATNDeserializer
from antlr4.atn.ATNState import ATNState, RuleStopState
from antlr4.atn.LexerATNSimulator import LexerATNSimulator
from antlr4.atn.Transition import PrecedencePredicateTransition, RuleTransition
from antlr4.dfa.DFA import DFA
from antlr4.PredictionContext import PredictionContextCache
from dragoman_trino.testing.fetching import VERSION
from dragoman_trino.testing.installing import install

REFUSED = ("BACKQUOTED_IDENTIFIER", "DIGIT_IDENTIFIER", "UNRECOGNIZED")
"""Tokens that the grammar takes and the server refuses, to say why."""


@dataclass(frozen=True)
class Compiled:
    """What is of use in a compiled class: its long texts, and its constants that are whole numbers, by name."""

    texts: list[list[int]]
    numbers: dict[str, int]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data, self.place = data, 0

    def take(self, form: str) -> Any:
        size = struct.calcsize(form)
        self.place += size
        return struct.unpack_from(form, self.data, self.place - size)[0]

    def skip(self, count: int) -> bytes:
        self.place += count
        return self.data[self.place - count : self.place]


def read_class(data: bytes) -> Compiled:
    """Read a class file, as the Java Virtual Machine's specification describes it."""
    source = _Bytes(data)
    source.skip(8)
    pool: dict[int, Any] = {}
    index, count = 1, source.take(">H")
    while index < count:
        tag = source.take(">B")
        if tag == 1:
            pool[index] = source.skip(source.take(">H"))
        elif tag == 3:
            pool[index] = source.take(">i")
        else:
            source.skip({4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}[tag])
        index += 2 if tag in (5, 6) else 1
    source.skip(6)
    source.skip(2 * source.take(">H"))
    numbers = {}
    for _ in range(source.take(">H")):
        source.skip(2)
        name = pool[source.take(">H")]
        source.skip(2)
        for _ in range(source.take(">H")):
            attribute, value = pool[source.take(">H")], source.skip(source.take(">I"))
            constant = pool.get(int.from_bytes(value, "big")) if attribute == b"ConstantValue" else None
            if isinstance(constant, int):
                numbers[name.decode()] = constant
    return Compiled([list(units(text)) for text in pool.values() if isinstance(text, bytes)], numbers)


def units(text: bytes) -> Iterator[int]:
    """Yield the 16-bit units of Java's own variant of UTF-8."""
    place = 0
    while place < len(text):
        first = text[place]
        size = 1 if first < 0x80 else 2 if first < 0xE0 else 3
        unit = first & (0x7F if size == 1 else 0x1F if size == 2 else 0x0F)
        for byte in text[place + 1 : place + size]:
            unit = unit << 6 | byte & 0x3F
        place += size
        yield unit


def table(compiled: Compiled) -> ATN:
    """Return the table of a lexer or parser: the texts that begin as one does, and what follows where it is cut."""
    segments = [text for text in compiled.texts if len(text) > 4_000]
    first = next(index for index, text in enumerate(segments) if text[0] == 4)
    return ATNDeserializer().deserialize(list(whole_numbers(list(chain(*segments[first:])))))


def whole_numbers(found: list[int]) -> Iterator[int]:
    """Yield the numbers of a table; one beyond 15 bits takes two units."""
    place = 0
    while place < len(found):
        unit = found[place]
        place += 1
        if unit & 0x8000:
            following = found[place]
            place += 1
            yield -1 if unit == following == 0xFFFF else (unit & 0x7FFF) << 16 | following
        else:
            yield unit


class _Lexer(Lexer):
    """The server's lexer."""

    def __init__(self, text: str, grammar: Grammar) -> None:
        super().__init__(InputStream(text))
        self._interp = LexerATNSimulator(self, grammar.lexer, grammar.learned, PredictionContextCache())

    def tokens(self) -> list[Token]:
        """Return the tokens of the text that the parser sees, the end of it included."""
        found = []
        while (token := self._next()).type != Token.EOF:
            found += [token] if token.channel == Token.DEFAULT_CHANNEL else []
        return [*found, token]

    def _next(self) -> Token:
        token = self.nextToken()
        assert token is not None
        return token


class Named(NamedTuple):
    """A dotted name: the rule of the grammar that it is a part of, its offset, and whether a parenthesis follows."""

    rule: str
    offset: int
    called: bool


@dataclass(frozen=True)
class Grammar:
    """The tables of a lexer and a parser, and the numbers of rules and tokens by name.

    `learned`: what the lexer has found out about its table, for the next text.
    """

    lexer: ATN
    parser: ATN
    numbers: dict[str, int]
    learned: list[DFA]

    def accepts(self, text: str, *, rule: str = "statement") -> bool:
        """Return whether a whole text is one of a rule's, as `statement` or `rootQuery`."""
        return self._walk(text, rule) is not None

    def names(self, text: str) -> set[Named] | None:
        """Return the dotted names of a query in every way to read all of it; None: it is not one."""
        read = self._walk(text, "rootQuery")
        if read is None:
            return None
        walk, tokens = read
        rules = {number: name.removeprefix("RULE_") for name, number in self.numbers.items() if name[:5] == "RULE_"}
        calls = walk.calls(self.numbers["RULE_rootQuery"], len(tokens) - 1)
        return {
            Named(rules[call.within], tokens[call.start].start, tokens[call.end].text == "(")
            for call in calls
            if rules[call.rule] == "qualifiedName"
        }

    def _walk(self, text: str, rule: str) -> tuple[_Walk, list[Token]] | None:
        """Return the ways through the parser's table, and the tokens, of a text that is one of the rule's."""
        tokens = _Lexer(text, self).tokens()
        types = [token.type for token in tokens]
        if {self.numbers[name] for name in REFUSED} & set(types):
            return None
        walk = _Walk(self.parser, types)
        return (walk, tokens) if len(types) - 1 in walk.ends(self.numbers[f"RULE_{rule}"], 0, 0) else None


class _Call(NamedTuple):
    """A rule as a part of another one, from one token to another."""

    within: int
    rule: int
    precedence: int
    start: int
    end: int


_Place = tuple[int, int]
"""A state of the table, and a place in the text."""


class _Walk:
    """Every way through a parser's table that fits one text."""

    def __init__(self, atn: ATN, types: list[int]) -> None:
        self.atn, self.types = atn, types
        self.known: dict[tuple[int, int, int], frozenset[int]] = {}

    def ends(self, rule: int, precedence: int, start: int) -> frozenset[int]:
        """Return the places where a rule that begins at `start` may end."""
        key = (rule, precedence, start)
        if key not in self.known:
            self.known[key] = self._walk(self.atn.ruleToStartState[rule], precedence, start)
        return self.known[key]

    def _walk(self, first: ATNState, precedence: int, start: int) -> frozenset[int]:
        waiting, seen, found = [(first, start)], set[tuple[int, int]](), set[int]()
        while waiting:
            state, place = waiting.pop()
            if (state.stateNumber, place) in seen:
                continue
            seen.add((state.stateNumber, place))
            if isinstance(state, RuleStopState):
                found.add(place)
            else:
                waiting += [step for each in state.transitions for step in self._steps(each, precedence, place)]
        return frozenset(found)

    def calls(self, rule: int, end: int) -> set[_Call]:
        """Return every part of every way to read the text up to `end` as one of a rule's."""
        found: set[_Call] = set()
        waiting = [_Call(rule, rule, 0, 0, end)]
        while waiting:
            fresh = set(self._parts(waiting.pop())) - found
            found |= fresh
            waiting += fresh
        return found

    def _parts(self, call: _Call) -> Iterator[_Call]:
        """Yield the rules that are parts of one, on the ways on which it ends where the call does."""
        before = self._back(call)
        waiting, seen = [(self.atn.ruleToStopState[call.rule].stateNumber, call.end)], set[_Place]()
        while waiting:
            place = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            for earlier, transition in before.get(place, ()):
                waiting.append(earlier)
                if isinstance(transition, RuleTransition):
                    inner = transition.target.ruleIndex
                    yield _Call(call.rule, inner, transition.precedence, earlier[1], place[1])

    def _back(self, call: _Call) -> dict[_Place, list[tuple[_Place, Any]]]:
        """Return the places before each place of a rule, with the transitions between them."""
        before: dict[_Place, list[tuple[_Place, Any]]] = {}
        waiting: list[tuple[ATNState, int]] = [(self.atn.ruleToStartState[call.rule], call.start)]
        seen = set[_Place]()
        while waiting:
            state, place = waiting.pop()
            here = (state.stateNumber, place)
            if here in seen or place > call.end:
                continue
            seen.add(here)
            for transition in () if isinstance(state, RuleStopState) else state.transitions:
                for following, after in self._steps(transition, call.precedence, place):
                    before.setdefault((following.stateNumber, after), []).append((here, transition))
                    waiting.append((following, after))
        return before

    def _steps(self, transition: Any, precedence: int, place: int) -> Iterator[tuple[ATNState, int]]:
        """Yield the states behind a transition, and the places in the text."""
        if isinstance(transition, RuleTransition):
            for end in self.ends(transition.target.ruleIndex, transition.precedence, place):
                yield transition.followState, end
        elif isinstance(transition, PrecedencePredicateTransition):
            if transition.precedence >= precedence:
                yield transition.target, place
        elif transition.isEpsilon:
            yield transition.target, place
        elif place < len(self.types) and transition.matches(self.types[place], 1, self.atn.maxTokenType):
            yield transition.target, place + 1


@cache
def server_grammar() -> Grammar:
    """Read the grammar from the server's jar. Raises `RuntimeError` where the server cannot be fetched."""
    jar = install("server-core") / "lib" / f"io.trino_trino-grammar-{VERSION}.jar"
    with zipfile.ZipFile(jar) as archive:
        lexer, parser = (
            read_class(archive.read(f"io/trino/grammar/sql/SqlBase{name}.class")) for name in ("Lexer", "Parser")
        )
    found = table(lexer)
    return Grammar(found, table(parser), parser.numbers, [DFA(state) for state in found.decisionToState])
