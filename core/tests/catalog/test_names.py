"""Names as people and agents write them."""

import pytest
from dragoman import CONTRACT, Dialect, Relation, Rules
from dragoman.catalog.names import Namespace, Part, parse_name
from dragoman.dialect import Folding, quote_all
from dragoman.sql.lexicon import Lexicon
from hypothesis import example, given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ("a",)),
        ("a.b.c.d", ("a", "b", "c", "d")),
        ('"a.b".c', ("a.b", "c")),
        ('"a""b"', ('a"b',)),
    ],
)
def test_a_name_is_read_as_in_sql(text: str, parts: tuple[str, ...]) -> None:
    read = parse_name(text, Lexicon())
    assert read is not None
    assert tuple(part.text for part in read) == parts


@pytest.mark.parametrize("text", ["", ".", "a.", "a b", '"a', ".".join("a" * 9), '"a".' * 400 + "b"])
def test_what_is_no_name_is_none(text: str) -> None:
    assert parse_name(text, Lexicon()) is None


def test_the_longest_dotted_text_costs_no_more_than_a_name() -> None:
    """A thousand of them held the event loop for seconds."""
    reads = 0

    class Counted(str):
        def __getitem__(self, place):  # type: ignore[no-untyped-def, override]
            nonlocal reads
            reads += 1
            return super().__getitem__(place)

    parse_name(Counted("a." * 490 + "b"), Lexicon())
    assert reads < 100
    assert parse_name("a", Lexicon()) == (Part("a"),)


@pytest.mark.parametrize(
    ("written", "named"),
    [
        ("orders", True),
        ("SALES.ORDERS", True),
        ('"LAKE"."SALES"."ORDERS"', True),
        ('"sales"."orders"', True),
        ("hr.orders", False),
        ("SALES.ORDER", False),
        ("", False),
    ],
)
def test_what_an_engine_says_of_a_relation_names_it_in_its_own_case(written: str, named: bool) -> None:
    folding = Dialect(
        name="folding",
        contract=CONTRACT,
        sqlglot="oracle",
        lexicon=Lexicon(identifier_quotes='"'),
        rules=Rules(),
        folding="upper",
    )
    for asked in (Relation("ORDERS", "SALES"), Relation("orders", "sales"), Relation("Orders", "sales", "lake")):
        assert Namespace(folding).may_name(written, asked) is named


NAMES = st.sampled_from(["a", "a_1", "_", "A", "Aa", "select", "SELECT", "", "1a", "a b", "a\nb", "\n", '"', "é", "ſ"])


@given(st.sampled_from(["lower", "upper", "insensitive", "exact"]), st.lists(NAMES, max_size=4))
@example("lower", ["a", "a_1"])
def test_many_names_are_quoted_as_each_of_them_is(folding: Folding, names: list[str]) -> None:
    dialect = Dialect(
        name="folding",
        contract=CONTRACT,
        sqlglot="oracle",
        lexicon=Lexicon(),
        rules=Rules(),
        folding=folding,
        reserved=frozenset({"select"}),
    )
    assert quote_all(dialect, names) == [dialect.quote(name) for name in names]
