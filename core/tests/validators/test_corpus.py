"""The corpus that holds for every dialect, judged with the rules of a plain one."""

import pytest
from dragoman import Dialect, DragomanError, Lexicon, Rules
from dragoman.testing.corpus import Case, cases
from dragoman.validators import check_text

FUNCTIONS = "abs avg coalesce count lag lower max min nullif rank round row_number sum upper"
PLAIN = Dialect(
    name="plain",
    contract=1,
    sqlglot="",
    lexicon=Lexicon(),
    rules=Rules(functions=frozenset(FUNCTIONS.split())),
)


def verdict(dialect: Dialect, text: str) -> str:
    try:
        check_text(dialect, text)
    except DragomanError as error:
        return error.code
    return ""


@pytest.mark.parametrize("case", cases("any"), ids=str)
def test_every_dialect_agrees(case: Case):
    assert verdict(PLAIN, case.sql) == case.code
