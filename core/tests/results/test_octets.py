"""Which columns hold bytes alone: JSON does not tell bytes from texts, so each batch says it."""

from functools import reduce

from dragoman.model import Column, Kind
from dragoman.model.columns import find_binary, join_octets
from dragoman.results import encode
from hypothesis import given
from hypothesis import strategies as st

VALUES = st.one_of(st.none(), st.binary(max_size=3), st.binary(max_size=3), st.text(max_size=3), st.integers())
COLUMNS = [Column("a", "blob"), Column("b", "text"), Column("c", "text", Kind("text"))]


@given(st.lists(st.lists(st.tuples(VALUES, VALUES, st.just("AP8=")), min_size=1, max_size=3), min_size=1, max_size=5))
def test_a_column_is_binary_if_all_its_values_in_all_batches_are_bytes(batches):
    octets = reduce(join_octets, [encode(COLUMNS, batch).octets for batch in batches], ())
    found = [column.kind.name for column in find_binary(COLUMNS, octets)]
    for at, kind in enumerate(found[:2]):
        there = [row[at] for batch in batches for row in batch if row[at] is not None]
        assert (kind == "binary") == (bool(there) and all(isinstance(value, bytes) for value in there))
    assert found[2] == "text"


def test_rows_that_say_nothing_of_their_bytes_leave_columns_as_they_are():
    assert find_binary(COLUMNS, ()) == COLUMNS
