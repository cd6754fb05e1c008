"""Generated columns tell what they are made of, so they go with it."""

import pytest
from dragoman.access.generated import leave_out_telling
from dragoman.model import TableColumn


def column(name: str, generated: str | None = None) -> TableColumn:
    return TableColumn(name=name, type="text", nullable=True, generated=generated)


PLAIN = [column("id"), column("name")]


@pytest.mark.parametrize(
    ("hidden", "expression"),
    [
        ("email", "lower(email)"),
        ("email", 'LOWER("EMAIL")'),
        ("email", "name||[Email]||'x'"),
        ("e mail", "upper(`e mail`)"),
        ('e"mail', 'upper("e""mail")'),
        ("straße", "(STRASSE || straße)"),
        ("a", "(a)::text"),
    ],
)
def test_a_column_made_of_a_hidden_one_is_left_out(hidden: str, expression: str):
    made = column("made", expression)
    assert leave_out_telling([*PLAIN, made], {hidden}, ()) == PLAIN
    assert leave_out_telling([*PLAIN, made], {hidden}, {"made"}) == [*PLAIN, made]


def test_so_is_one_that_is_made_of_it_by_steps():
    steps = [column("first", "email || '!'"), column("second", "first || '!'"), column("third", "name || id")]
    assert leave_out_telling([*PLAIN, *steps], {"email"}, ()) == [*PLAIN, steps[2]]


def test_a_part_of_a_word_is_no_name():
    made = column("made", "tenant || remail_1")
    assert leave_out_telling([*PLAIN, made], {"a", "email", "ten"}, ()) == [*PLAIN, made]
