"""Names as people and agents write them."""

import pytest
from dragoman.catalog.names import Part, parse_name
from dragoman.sql.lexicon import Lexicon


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
