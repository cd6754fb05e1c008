"""Named parameters become the placeholders of a database, and nothing else in the text changes."""

from __future__ import annotations

import pytest
from dragoman import InvalidSql
from dragoman.saved import Parameter, SavedQuery
from dragoman.saved.binding import bind
from dragoman.sql import Lexicon

POSTGRES = Lexicon(parameters="$", dollar_quotes=True, nested_comments=True, escape_strings=True)
SQLITE = Lexicon(identifier_quotes='"`[')


def _bind(sql: str, lexicon: Lexicon, placeholder: str):
    query = SavedQuery(name="q", sql=sql, parameters=(Parameter("a", "text"), Parameter("b", "text")))
    return bind(query, {"a": 1, "b": 2}, lexicon, placeholder)


@pytest.mark.parametrize(
    ("sql", "bound", "params"),
    [
        ("SELECT :a, :b, :a", "SELECT $1, $2, $1", [1, 2]),
        ("SELECT :b::text || :a", "SELECT $1::text || $2", [2, 1]),
        ("SELECT ':a', \":a\", $$ :a $$, E'\\':a', :b -- :a", "SELECT ':a', \":a\", $$ :a $$, E'\\':a', $1 -- :a", [2]),
        ("SELECT /* :a /* :b */ :a */ :b", "SELECT /* :a /* :b */ :a */ $1", [2]),
        ("SELECT x::a", "SELECT x::a", []),
        ("SELECT v[1:2], v[:a]", "SELECT v[1:2], v[$1]", [1]),
    ],
)
def test_numbered_placeholders(sql, bound, params):
    assert _bind(sql, POSTGRES, "$1") == (bound, params)


@pytest.mark.parametrize(
    ("sql", "bound", "params"),
    [
        ("SELECT :a, :b, :a", "SELECT ?, ?, ?", [1, 2, 1]),
        ("SELECT ':a', [:a], `:a`, :b", "SELECT ':a', [:a], `:a`, ?", [2]),
    ],
)
def test_placeholders_without_numbers(sql, bound, params):
    assert _bind(sql, SQLITE, "?") == (bound, params)


def test_an_undeclared_name_is_told_with_the_nearest():
    query = SavedQuery(name="q", sql="SELECT :sinec", parameters=(Parameter("since", "date"),))
    with pytest.raises(InvalidSql) as caught:
        bind(query, {"since": None}, SQLITE, "?")
    assert caught.value.suggestion == "Did you mean :since?"
