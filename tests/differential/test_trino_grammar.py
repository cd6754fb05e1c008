"""Trino's own grammar judges what ours understands: no query of the server's is one that we cannot read.

Ours is wider in places where nothing hangs on it: the server refuses such a statement, and nothing has run.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from dragoman import DragomanError, Statement
from dragoman.testing.corpus import cases
from dragoman_trino.gate import read
from dragoman_trino.grammar import Statements
from dragoman_trino.grammar.found import Mention, MentionForm
from dragoman_trino.grammar.tokens import tokens
from dragoman_trino.lexicon import LEXICON
from server_grammar import Grammar, server_grammar

pytestmark = [pytest.mark.full, pytest.mark.timeout(400)]
CONSTRUCTS = Path(__file__).parents[1] / "matrix" / "constructs"
OF_FOUR_PARTS = re.compile(r"\w+\s*\.\s*\w+\s*\.\s*\w+\s*\.\s*\w+")
"""The grammar takes names of any length; the server's analyzer refuses a table's name of more than three parts."""
WIDER = {
    "SELECT placed_at AT TIME ZONE do_harm(1) FROM orders",
    "SELECT * FROM customers WHERE id = 1 LIMIT do_harm(1)",
}
"""What ours takes of the corpus and the server does not: it wants a literal where we read an expression."""


def queries() -> list[str]:
    """The corpus of the gate, what is refused included, and the constructs of the matrix."""
    lines = [line for name in ("standard", "trino") for line in (CONSTRUCTS / f"{name}.txt").read_text().splitlines()]
    starts = ("select ", "with ", "values ", "table ")
    found = [line if line.startswith(starts) else f"select {line}" for line in lines if line and line[0] != "#"]
    return [case.sql for case in cases("trino")] + found


QUERIES = queries()


@dataclass
class Comparison:
    """What came of many texts. `missed`: queries of the server's that we cannot read; `wider`: the opposite."""

    grammar: Grammar
    both: int = 0
    neither: int = 0
    missed: list[str] = field(default_factory=list[str])
    wider: list[str] = field(default_factory=list[str])

    def add(self, text: str) -> None:
        """Compare one text; one that is refused before it is read, or for what it does, is no matter here."""
        try:
            statement = Statement.parse(text, sqlglot="trino", lexicon=LEXICON)
        except DragomanError:
            return
        refusal = read(statement).refusal
        if refusal is None:
            taken = self.grammar.accepts(statement.text)
            self.both += taken
            self.wider += [] if taken else [text]
        elif refusal.kind == "invalid":
            taken = self.grammar.accepts(statement.text, rule="rootQuery") and not OF_FOUR_PARTS.search(text)
            self.neither += not taken
            self.missed += [text] if taken else []


@pytest.fixture(scope="module")
def grammar() -> Grammar:
    try:
        return server_grammar()
    except RuntimeError as error:
        pytest.skip(str(error))


def mutated(chance: random.Random) -> str:
    """One of the queries with pieces gone, twice there, replaced, or with a piece of another query in between."""
    words = [token.text for token in tokens(chance.choice(QUERIES))]
    other = [token.text for token in tokens(chance.choice(QUERIES))]
    for _ in range(chance.choice([1, 1, 2])):
        place, start = chance.randrange(len(words) + 1), chance.randrange(len(other))
        piece = other[start : start + chance.randrange(1, 6)]
        gone = chance.choice([0, 0, 1, 1, 2])
        words[place : place + gone] = chance.choice([piece, piece[:1], words[place : place + 1], []])
    return " ".join(words)


def test_the_grammar_is_the_server_s(grammar):
    assert grammar.accepts("WITH a AS (SELECT 1 AS x) SELECT x FROM a ORDER BY 1", rule="rootQuery")
    assert grammar.accepts("DROP TABLE a")
    for text in ("DROP TABLE a", "SELECT FROM", "SELECT 1 1", "SELECT `a`", "SELECT 1a", "SELECT 'a"):
        assert not grammar.accepts(text, rule="rootQuery")


def test_every_query_of_the_corpus_is_read_as_the_server_s_grammar_reads_it(grammar):
    comparison = Comparison(grammar)
    for text in QUERIES:
        comparison.add(text)
    assert comparison.missed == []
    assert set(comparison.wider) == WIDER
    assert comparison.both > 800


@pytest.mark.parametrize(
    ("seed", "count"),
    [(476, 500), pytest.param(4760, 30_000, marks=[pytest.mark.nightly, pytest.mark.timeout(3_000)])],
)
def test_no_query_that_the_server_s_grammar_takes_is_one_that_cannot_be_read(grammar, seed: int, count: int):
    chance = random.Random(seed)
    comparison = Comparison(grammar)
    for _ in range(count):
        comparison.add(mutated(chance))
    assert comparison.missed == []
    assert len(comparison.wider) < comparison.both / 20
    assert comparison.neither > count / 4


PLACES = (Path(__file__).parent / "places_of_names.txt").read_text(encoding="utf-8").splitlines()
"""Statements in which `{n}` stands for any name."""
PLAIN = ("a", "b", "c", '"q"', '"x y"', '"table"')
TABLES = {"relationPrimary", "queryPrimary", "tableArgumentRelation"}
"""The rules of the server's grammar in which a dotted name is a relation's."""
EITHER = re.compile(r"(ALL|ANY|DESCRIPTOR|POSITION|ROW|SOME|SUBSTRING|TRY_CAST)\b", re.IGNORECASE)
"""Words that the grammar takes for functions too: DESCRIPTOR(a) is both a list of columns and a call. None acts."""


class Everything(Statements):
    """Reads a statement and notes where any relation is named, those that WITH defines too."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.named: set[int] = set()

    def read_relation_name(self, form: MentionForm) -> Mention | None:
        self.named.add(self.offset)
        return super().read_relation_name(form)


def words(grammar: Grammar) -> list[str]:
    """The words of the server's grammar, in and without quotes."""
    found = [name for name in sorted(grammar.numbers) if re.fullmatch(r"[A-Z][A-Z_]*", name) and name[:5] != "RULE_"]
    free = [word for word in found if grammar.accepts(f"SELECT 1 AS {word}", rule="rootQuery")]
    return [*PLAIN * 8, *free, *free, *found, *(f'"{word}"' for word in found)]


def with_names(chance: random.Random, names: list[str]) -> str:
    """A statement with words in places of names: in few of them, or in all."""
    share = chance.choice((0.2, 1.0))
    return re.sub(
        r"\{n\}", lambda _: chance.choice(names if chance.random() < share else PLAIN[:3]), chance.choice(PLACES)
    )


def differences(grammar: Grammar, text: str) -> list[str] | None:
    """What the server's grammar reads in a query, and ours does not; None: one of them does not take it."""
    try:
        statement = Statement.parse(text, sqlglot="trino", lexicon=LEXICON)
        ours = Everything(statement.text)
        ours.read()
    except DragomanError:
        return None
    names = grammar.names(statement.text)
    if names is None:
        return None
    called = {call.offset for call in ours.found.calls}
    missed = [
        named
        for named in names
        if (named.offset not in ours.named if named.rule in TABLES else named.called and named.offset not in called)
    ]
    return [str(named) for named in missed if named.rule in TABLES or not EITHER.match(statement.text, named.offset)]


def test_the_server_s_grammar_tells_which_names_are_relations(grammar):
    text = "SELECT f(a) FROM t x JOIN s.u ON g(1), TABLE(h(TABLE(v))), (TABLE w)"
    named = {text[each.offset :].split("(")[0].split()[0]: each.rule for each in grammar.names(text)}
    assert named == {
        **dict.fromkeys(("f", "g"), "primaryExpression"),
        **dict.fromkeys(("t", "s.u"), "relationPrimary"),
        **{"h": "tableFunctionCall", "v))),": "tableArgumentRelation", "w)": "queryPrimary"},
    }
    assert grammar.names("SELECT FROM") is None


@pytest.mark.parametrize(
    ("seed", "count"),
    [(476, 700), pytest.param(4760, 40_000, marks=[pytest.mark.nightly, pytest.mark.timeout(3_000)])],
)
def test_every_relation_and_call_that_the_server_s_grammar_reads_is_read(grammar, seed: int, count: int):
    chance, names = random.Random(seed), words(grammar)
    compared, missed = 0, []
    for number in range(count):
        text = mutated(chance) if number % 2 else with_names(chance, names)
        found = differences(grammar, text)
        compared += found is not None
        missed += [(text, found)] if found else []
    assert not missed, missed[:5]
    assert compared > count / 5
