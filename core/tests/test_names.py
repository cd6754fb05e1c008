"""What a statement may name is bounded, since it is judged on the event loop."""

import pytest
from dragoman import Dialect, UnsafeSql
from dragoman.validators import MOST_NAMES, check_text

DIALECT = Dialect(name="plain", contract=1, sqlglot="postgres", driver="none")


def test_a_statement_that_names_too_much_is_refused():
    names = ", ".join(f"t{number}" for number in range(MOST_NAMES + 1))
    with pytest.raises(UnsafeSql, match="names more than"):
        check_text(DIALECT, f"SELECT * FROM {names}")


def test_what_is_named_often_counts_once():
    check_text(DIALECT, "SELECT * FROM " + ", ".join(f"t AS t{number}" for number in range(MOST_NAMES + 1)))
