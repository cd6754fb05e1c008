"""Values arrive in JSON exactly: as contract's section on results has it, for every kind and at any depth."""

import base64
import datetime
import decimal
import enum
import json
import math
import uuid
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from dragoman import Column, Kind, ResultTooLarge, encode
from dragoman.shapes import Malformed
from hypothesis import given
from hypothesis import strategies as st

SAFE = 2**53 - 1


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 2**60


class Label(enum.StrEnum):
    OPEN = "open"


class Text(str):
    pass


def cells(kind: Kind, *values: Any) -> list[Any]:
    """Each value's JSON, all in one column, so that mixed columns are mixed here too."""
    encoded = encode([Column("c", "t", kind)], [(value,) for value in values])
    return [json.loads(row)[0] for row in encoded.rows]


def cell(kind: Kind, value: Any) -> str:
    """The very text of one value."""
    (row,) = encode([Column("c", "t", kind)], [(value,)]).rows
    return row[1:-1].decode()


TEXT, BOOLEAN, INTEGER, FLOAT = Kind("text"), Kind("boolean"), Kind("integer"), Kind("float")
BINARY, JSON, NATIVE, ANY = Kind("binary"), Kind("json"), Kind("native"), Kind("any")
BERLIN = datetime.timezone(datetime.timedelta(hours=1))

EXACT: list[tuple[Kind, Any, str]] = [
    (TEXT, "", '""'),
    (TEXT, 'Zoë\n"\x7f\u2028', '"Zoë\\n\\"\x7f\u2028"'),
    (TEXT, "a\x00b", '"a\\u0000b"'),
    (TEXT, Text("sub"), '"sub"'),
    (TEXT, Decimal("1.50"), '"1.50"'),
    (BOOLEAN, True, "true"),
    (BOOLEAN, 0, "false"),
    (BOOLEAN, "t", '"t"'),
    (INTEGER, SAFE, "9007199254740991"),
    (INTEGER, -SAFE, "-9007199254740991"),
    (INTEGER, SAFE + 1, '"9007199254740992"'),
    (INTEGER, -SAFE - 1, '"-9007199254740992"'),
    (INTEGER, 10**40, f'"1{"0" * 40}"'),
    (INTEGER, True, "1"),
    (INTEGER, Level.HIGH, '"1152921504606846976"'),
    (FLOAT, 0.1, "0.1"),
    (FLOAT, -0.0, "-0.0"),
    (FLOAT, 5e-324, "5e-324"),
    (FLOAT, 1.7976931348623157e308, "1.7976931348623157e308"),
    (FLOAT, math.nan, '"NaN"'),
    (FLOAT, math.inf, '"Infinity"'),
    (FLOAT, -math.inf, '"-Infinity"'),
    (FLOAT, 3, "3.0"),
    (FLOAT, "1e400", '"1e400"'),
    (BINARY, b"\x00\xff", '"AP8="'),
    (BINARY, bytearray(b"\x00\xff"), '"AP8="'),
    (BINARY, memoryview(b"\x00\xff\x01")[:2], '"AP8="'),
    (BINARY, b"", '""'),
    (NATIVE, Decimal("1.10"), '"1.10"'),
    (NATIVE, Decimal("1E+5"), '"100000"'),
    (NATIVE, Decimal("1E-9"), '"0.000000001"'),
    (NATIVE, Decimal("-0"), '"-0"'),
    (NATIVE, Decimal("0E-3"), '"0.000"'),
    (NATIVE, Decimal("NaN"), '"NaN"'),
    (NATIVE, Decimal("sNaN"), '"NaN"'),
    (NATIVE, Decimal("-Infinity"), '"-Infinity"'),
    (NATIVE, datetime.date(2026, 11, 21), '"2026-11-21"'),
    (NATIVE, datetime.time(1, 2, 3, 4), '"01:02:03.000004"'),
    (NATIVE, datetime.datetime(2026, 11, 21, 1, 2, 3, 4, BERLIN), '"2026-11-21 01:02:03.000004+01:00"'),
    (NATIVE, datetime.datetime(1, 1, 1), '"0001-01-01 00:00:00"'),
    (NATIVE, datetime.timedelta(days=1, hours=2, minutes=3, seconds=4.5), '"P1DT2H3M4.5S"'),
    (NATIVE, datetime.timedelta(seconds=-1), '"-P0DT0H0M1S"'),
    (NATIVE, datetime.timedelta.min, '"-P999999999DT0H0M0S"'),
    (NATIVE, datetime.timedelta(0), '"P0DT0H0M0S"'),
    (NATIVE, uuid.UUID(int=1), '"00000000-0000-0000-0000-000000000001"'),
    (NATIVE, Color.RED, '"red"'),
    (NATIVE, Level.HIGH, '"1152921504606846976"'),
    (NATIVE, Label.OPEN, '"open"'),
    (NATIVE, {}, "{}"),
    (
        NATIVE,
        {1: "a", None: [2**60], Decimal("1.50"): {"x": math.nan}},
        '{"1":"a","null":["1152921504606846976"],"1.50":{"x":"NaN"}}',
    ),
    (NATIVE, {(1, 2): 3}, '{"[1,2]":3}'),
    (NATIVE, {True: 1, datetime.date(2026, 1, 1): 2}, '{"true":1,"2026-01-01":2}'),
    (NATIVE, (1, (2.5, None), frozenset()), "[1,[2.5,null],[]]"),
    (ANY, b"\x00", '"AA=="'),
    (JSON, ' {"a" : [1, 2.50,\n null] } ', '{"a":[1,2.5,null]}'),
    (JSON, b'"text"', '"text"'),
    (JSON, "9007199254740991", "9007199254740991"),
    (JSON, "1e2", "100.0"),
    (JSON, {"a": 2**60}, '{"a":"1152921504606846976"}'),
    (JSON, '"' + "[" * 200 + '"', '"' + "[" * 200 + '"'),
    (JSON, "[" * 100 + "]" * 100, "[" * 100 + "]" * 100),
    (Kind.array(INTEGER), [1, None, 2**60], '[1,null,"1152921504606846976"]'),
    (Kind.array(Kind.array(FLOAT)), [[0.5], [], None, [math.nan]], '[[0.5],[],null,["NaN"]]'),
    (Kind.array(INTEGER), "[2:3]={1,2}", '"[2:3]={1,2}"'),
    (Kind.map(INTEGER, TEXT), {2**60: "x", 1: None}, '{"1152921504606846976":"x","1":null}'),
    (Kind.map(TEXT, JSON), [("k", '{"a":1}')], '{"k":{"a":1}}'),
    (Kind.map(Kind.array(INTEGER), INTEGER), [([1, 2], 3), (None, 4)], '{"[1,2]":3,"null":4}'),
    (Kind.map(INTEGER, INTEGER), {}, "{}"),
    (Kind.row([INTEGER, TEXT], ["id", "name"]), (1, None), '{"id":1,"name":null}'),
    (Kind.row([INTEGER, TEXT]), (1, "x"), '[1,"x"]'),
    (Kind.row([INTEGER, INTEGER], ["id", "id"]), (1, 2), "[1,2]"),
    (Kind.row([INTEGER, INTEGER], ["id", ""]), (1, 2), "[1,2]"),
    (Kind.row([]), (), "[]"),
    (Kind.row([Kind.array(BINARY)], ["b"]), ([b"\x01"],), '{"b":["AQ=="]}'),
]


@pytest.mark.parametrize(("kind", "value", "text"), EXACT)
def test_a_value_is_exact(kind: Kind, value: Any, text: str):
    assert cell(kind, value) == text
    assert cells(kind, value, None) == [json.loads(text), None]


CHANGED_JSON = [
    "9007199254740993",
    "-9007199254740993",
    "1" * 10_000,
    "0.1000000000000000055",
    "1e400",
    "0e99999999999999999999",
    "-0",
    "NaN",
    "[-Infinity]",
    '{"a":1,"a":2}',
    '[{"a":{"b":1,"b":1}}]',
    "{broken",
    "",
    "\ufeff1",
    "[" * 101 + "]" * 101,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 5_000 + "1" + "}" * 5_000,
    '"\\ud800"',
    '{"\\udfff":1}',
]


@pytest.mark.parametrize("text", CHANGED_JSON)
def test_json_that_parsing_would_change_stays_its_text_and_a_notice_names_the_column(text: str):
    encoded = encode([Column("doc", "jsonb", JSON)], [(text,), ('{"fine":1}',)])
    assert [json.loads(row)[0] for row in encoded.rows] == [text, {"fine": 1}]
    assert encoded.notices == ("Column 'doc' has JSON that parsing would change; it is given as its exact text.",)


@pytest.mark.parametrize("kind", [TEXT, JSON, ANY, NATIVE, Kind.array(TEXT), Kind.map(TEXT, TEXT)])
def test_text_that_is_not_valid_in_its_encoding_is_base64_and_a_notice_says_so(kind: Kind):
    bad = b"caf\xe9".decode("utf-8", "surrogateescape")
    value = {"array": [bad], "map": {bad: bad}}.get(kind.name, bad)
    encoded = encode([Column("note", "text", kind)], [(value,)])
    assert base64.b64encode(b"caf\xe9") in encoded.rows[0]
    assert "Column 'note' has text that is not valid in its encoding; it is given as base64." in encoded.notices


def test_a_lone_surrogate_that_escapes_no_byte_is_kept_too():
    assert cell(TEXT, "a\ud800") == '"Ye2ggA=="'


def test_bytes_that_are_no_json_text_are_base64():
    assert cell(JSON, b"\xff") == '"/w=="'


@pytest.mark.parametrize(
    ("kind", "value", "pairs"),
    [
        (NATIVE, {1: "a", "1": "b"}, [[1, "a"], ["1", "b"]]),
        (Kind.map(TEXT, INTEGER), [("k", 1), ("k", 2**60)], [["k", 1], ["k", str(2**60)]]),
    ],
)
def test_a_map_with_two_keys_of_one_text_loses_neither(kind: Kind, value: Any, pairs: list[Any]):
    encoded = encode([Column("m", "map", kind)], [(value,)])
    assert json.loads(encoded.rows[0]) == [pairs]
    assert len(encoded.notices) == 1


def test_a_notice_is_given_once_for_a_column():
    bad = b"\xff".decode("utf-8", "surrogateescape")
    encoded = encode([Column("a", "text", TEXT), Column("b", "text", TEXT)], [(bad, bad)] * 3)
    assert [notice.split("'")[1] for notice in encoded.notices] == ["a", "b"]


def test_values_nested_too_deeply_are_refused_by_name():
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(ResultTooLarge, match="'c' is nested too deeply"):
        encode([Column("c", "x", NATIVE)], [(deep,)])


@pytest.mark.parametrize("value", [object(), 1 + 2j, SimpleNamespace])
def test_no_value_becomes_a_repr(value: object):
    with pytest.raises(Malformed, match="no text of its own"):
        encode([Column("c", "x", NATIVE)], [(value,)])


@pytest.mark.parametrize("row", [{"c": 1}, "x", b"x", {1}, 7, iter([1])], ids=lambda row: type(row).__name__)
def test_a_row_that_is_no_sequence_is_an_error_that_says_what_it_is(row: Any):
    with pytest.raises(Malformed, match=f"gave a row as an? {type(row).__name__}, not as a sequence"):
        encode([Column("c", "integer", INTEGER)], [row])


def test_rows_of_no_columns_are_counted():
    assert encode([], [(), ()]).rows == [b"[]", b"[]"]


@pytest.mark.parametrize("kind", [TEXT, INTEGER, JSON, Kind.array(INTEGER)])
def test_no_rows_are_no_rows(kind: Kind):
    assert list(encode([Column("c", "t", kind)], []).rows) == []


@pytest.mark.parametrize(("columns", "rows"), [(1, [(1, 2)]), (2, [(1,)]), (1, [(1,), (1, 2)]), (0, [(1,)]), (1, [()])])
def test_a_row_of_another_length_is_an_error(columns: int, rows: list[Any]):
    with pytest.raises(Malformed, match="columns"):
        encode([Column("c", "integer", INTEGER)] * columns, rows)


def test_two_columns_of_one_name_both_survive():
    assert encode([Column("a", "int", INTEGER)] * 2, [(1, 2)]).rows == [b"[1,2]"]


# Properties

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters())
    | st.binary()
    | st.decimals()
    | st.uuids()
    | st.dates()
    | st.datetimes()
    | st.timedeltas()
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def same(value: Any, told: Any) -> bool:
    """Whether JSON tells `value` without loss; written by type, not as the encoder does it."""
    match value:
        case None | bool():
            return told is value
        case int():
            return type(told) is (int if abs(value) <= SAFE else str) and int(told) == value
        case float() if math.isfinite(value):
            return type(told) is float and told.hex() == value.hex()
        case float():
            return told in {"NaN", "Infinity", "-Infinity"} and str(float(told)) == str(value)
        case bytes():
            return base64.b64decode(told, validate=True) == value
        case Decimal():
            return same_decimal(value, told)
        case datetime.datetime():
            return datetime.datetime.fromisoformat(told) == value
        case str():
            return told == speakable(value)
        case list():
            return len(told) == len(value) and all(map(same, value, told))
        case dict():
            return list(told) == list(map(speakable, value)) and all(map(same, value.values(), told.values()))
        case datetime.timedelta():
            return isinstance(told, str) and told.lstrip("-").startswith("P")
        case _:
            return told == str(value)


def speakable(text: str) -> str:
    """The text, or base64 where UTF-8 cannot say it."""
    try:
        text.encode()
    except UnicodeEncodeError:
        escaped = all("\udc80" <= char <= "\udcff" for char in text if "\ud800" <= char <= "\udfff")
        return base64.b64encode(text.encode("utf-8", "surrogateescape" if escaped else "surrogatepass")).decode()
    return text


def same_decimal(value: Decimal, told: Any) -> bool:
    back = decimal.Decimal(told)
    return isinstance(told, str) and (
        back.is_nan() if value.is_nan() else back == value and back.is_signed() == value.is_signed()
    )


@given(st.lists(VALUES, min_size=1, max_size=8))
def test_whatever_a_driver_hands_out_comes_back_from_json_exactly(values: list[Any]):
    for kind in (NATIVE, ANY):
        assert all(map(same, values, cells(kind, *values)))


@given(st.lists(st.none() | st.integers(), min_size=1))
def test_integers_come_back(values: list[Any]):
    assert all(map(same, values, cells(INTEGER, *values)))


@given(st.lists(st.none() | st.floats(), min_size=1))
def test_floats_come_back(values: list[Any]):
    assert all(map(same, values, cells(FLOAT, *values)))


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-SAFE, SAFE) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
)


@given(JSON_VALUES, st.sampled_from([None, 2]))
def test_a_json_document_is_passed_on_as_json_on_one_line(value: Any, indent: int | None):
    encoded = encode([Column("c", "json", JSON)], [(json.dumps(value, indent=indent),)])
    assert json.loads(encoded.rows[0]) == [value]
    assert b"\n" not in encoded.rows[0]
    assert encoded.notices == ()


@given(st.text(st.characters(codec=None), max_size=50))
def test_no_text_in_a_json_column_is_ever_lost(text: str):
    encoded = encode([Column("c", "json", JSON)], [(text,)])
    (told,) = json.loads(encoded.rows[0])
    assert told == text or same_document(text, told) or base64.b64decode(told).decode("utf-8", "surrogatepass") == text


def same_document(text: str, told: Any) -> bool:
    try:
        return bool(json.loads(text) == told)
    except ValueError:
        return False


KINDS = st.recursive(
    st.sampled_from([INTEGER, FLOAT, BOOLEAN, TEXT, BINARY, NATIVE]),
    lambda inner: (
        st.builds(Kind.array, inner)
        | st.builds(Kind.map, st.just(TEXT), inner)
        | st.builds(Kind.row, st.lists(inner, min_size=1, max_size=3))
    ),
    max_leaves=4,
)
OF_KIND = {
    "integer": st.integers(),
    "float": st.floats(),
    "boolean": st.booleans(),
    "text": st.text(),
    "binary": st.binary(),
    "native": SCALARS,
}


def values_of(kind: Kind) -> st.SearchStrategy[Any]:
    match kind.name:
        case "array":
            return st.lists(st.none() | values_of(kind.of[0]), max_size=3)
        case "map":
            return st.dictionaries(st.text(max_size=3), st.none() | values_of(kind.of[1]), max_size=3)
        case "row":
            return st.tuples(*map(values_of, kind.of)).map(list)
        case name:
            return OF_KIND[name]


@given(KINDS.flatmap(lambda kind: st.tuples(st.just(kind), st.lists(values_of(kind), min_size=1, max_size=3))))
def test_nested_kinds_come_back(drawn: tuple[Kind, list[Any]]):
    kind, values = drawn
    assert all(map(same, values, cells(kind, *values)))
