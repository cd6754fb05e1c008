"""Arguments are checked, and every refusal says what to send instead."""

import pytest
from dragoman import ParameterError
from dragoman.tools.arguments import Argument, check

DECLARED = (
    Argument(name="table_name", type="string or strings", required=True),
    Argument(name="limit", type="integer", default=5, minimum=1, maximum=100),
    Argument(name="detail", default="compact", choices=("compact", "full")),
    Argument(name="columns", type="strings"),
    Argument(name="randomize", type="boolean", default=False),
    Argument(name="params", type="values", default=[]),
)
_DEEP: list = []
for _ in range(100_000):
    _DEEP = [_DEEP]

REFUSED = [
    ({}, "table_name is missing", "Send table_name"),
    ({"table_name": None}, "table_name is missing", "Send table_name"),
    ({"tabel_name": "x"}, "no argument 'tabel_name'", "Did you mean table_name?"),
    ({"table_name": "x", "zzz": 1}, "no argument 'zzz'", "Arguments: table_name, limit"),
    ({"table_name": 5}, "must be a string or an array of strings, not a number", "Send a string"),
    ({"table_name": [1]}, "not an array with other values", "Send a string"),
    ({"table_name": "x", "limit": "5"}, "must be an integer, not a string", "without quotes"),
    ({"table_name": "x", "limit": 1.5}, "must be an integer, not a number", "Send an integer"),
    ({"table_name": "x", "limit": True}, "must be an integer, not a boolean", "Send an integer"),
    ({"table_name": "x", "limit": 0}, "at least 1 and at most 100", "in that range"),
    ({"table_name": "x", "limit": 101}, "at least 1 and at most 100", "in that range"),
    ({"table_name": "x", "detail": "ful"}, "cannot be 'ful'", "Did you mean full?"),
    ({"table_name": "x", "detail": "zzz"}, "cannot be 'zzz'", "Choose from compact, full"),
    ({"table_name": "x", "randomize": "true"}, "must be true or false", "without quotes"),
    ({"table_name": "x", "columns": "a"}, "must be an array of strings", "Send an array of strings"),
    ({"table_name": ["x"] * 1001}, "at most 1000 items", "in that range"),
    ({"table_name": "\ud800"}, "surrogate", "valid Unicode"),
    ({"table_name": "x", "params": _DEEP}, "nested too deeply", "at most 32 levels"),
    ({"table_name": "x", "params": [float("nan")]}, "not a JSON value", "as text"),
    ({"table_name": "x", "params": [float("inf")]}, "not a JSON value", "as text"),
    ("table", "must be an object", "Send {"),
    ({"table_name": "x" * 1001}, "longer than 1000 characters", "shorter table_name"),
    ({"table_name": ["x", "y" * 1001]}, "longer than 1000 characters", "shorter table_name"),
    ({"table_name": "x", "columns": ["y" * 1001]}, "longer than 1000 characters", "shorter columns"),
    ({"table_name": "x", "params": [10**1001]}, "more than 1,000 digits", "as text"),
    ({"table_name": "x", "params": [-(10**5000)]}, "more than 1,000 digits", "as text"),
    ({"table_name": "x", "params": ["y" * 1_000_001]}, "1000000 characters", "Send less"),
    ({"table_name": "x", "params": ["y" * 2000] * 501}, "1000000 characters", "Send less"),
    ({"table_name": "x", "params": [[0] * 10_001]}, "10000 values", "Send less"),
    ({"table_name": "x", "params": [{"k" * 1001: 1}]}, "longer than 1000 characters", "shorter keys"),
    ({"table_name": "x", "params": [{"\ud800": 1}]}, "surrogate", "valid Unicode"),
    ({"\ud800": 1}, "surrogate", "valid Unicode"),
]


@pytest.mark.parametrize(("given", "message", "remedy"), REFUSED, ids=range(len(REFUSED)))
def test_what_is_refused_says_what_to_send(given, message, remedy):
    with pytest.raises(ParameterError) as caught:
        check(given, DECLARED)
    assert message in caught.value.message
    assert remedy in caught.value.suggestion


def test_defaults_stand_in_for_what_is_missing_or_null():
    expected = {
        "table_name": ["a", "b"],
        "limit": 5,
        "detail": "compact",
        "columns": None,
        "randomize": False,
        "params": [],
    }
    assert check({"table_name": ["a", "b"], "detail": None}, DECLARED) == expected


def test_an_integral_float_is_an_integer():
    assert check({"table_name": "x", "limit": 7.0}, DECLARED)["limit"] == 7


def test_no_arguments_are_an_empty_object():
    assert check(None, ()) == {}


@pytest.mark.parametrize("empty", [None, "", []])
def test_an_optional_text_or_list_that_is_empty_is_as_if_left_out(empty):
    given = {"table_name": "x", "detail": empty, "columns": empty}
    assert check(given, DECLARED) == check({"table_name": "x"}, DECLARED)


@pytest.mark.parametrize("argument", ["limit", "randomize"])
def test_what_is_no_text_and_no_list_may_not_be_empty(argument):
    with pytest.raises(ParameterError, match=argument):
        check({"table_name": "x", argument: ""}, DECLARED)


def test_an_empty_text_takes_away_what_is_set_where_it_may():
    assert check({"note": ""}, [Argument(name="note", default="before", clears=True)]) == {"note": ""}
