"""JSON documents parsed in one go are what each of them is by itself, or none is taken."""

import json

import msgspec
import pytest
from dragoman.results.documents import exact_json, plain_documents
from hypothesis import example, given
from hypothesis import strategies as st

# What is a document nearly as often as not, of pieces that have something to do with each other.
PIECES = st.sampled_from([
    *'[]{}:,"\\-.0123456789eE \n\r\t',
    *('"a"', '"a":', "null", "true", "NaN", "Infinity", "-0", "1e5", "1.10", "9007199254740993", "0.1234567890123456"),
    *("1e22", '"\\ud800"', '"\\u0041"', '"b":[1,2]', '{"a":1,"a":2}', "é", "\ud800", "1,2", "[1", "2]"),
])  # fmt: skip
BROKEN = st.lists(PIECES, max_size=8).map("".join)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=8,
)
DOCUMENTS = st.builds(json.dumps, VALUES, ensure_ascii=st.booleans(), indent=st.sampled_from([None, 1]))
encode = msgspec.json.Encoder().encode


def one_by_one(texts):
    try:
        return [exact_json(text) for text in texts]
    except (ValueError, ArithmeticError, RecursionError):
        return None


@given(st.lists(DOCUMENTS | BROKEN, max_size=5))
def test_all_of_them_or_none(texts):
    found = plain_documents(texts)
    if found is not None:
        assert encode(found) == encode(one_by_one(texts))


@given(st.lists(BROKEN, min_size=2, max_size=4))
@example(["", '0"a"'])
@example(["[1,", "2] 3"])
def test_no_text_lends_a_part_to_another(texts):
    found = plain_documents(texts)
    assert found is None or encode(found) == encode(one_by_one(texts))


def read(encoded):
    """The values of documents as any reader has them, with floats in the spelling of all that mean the same."""
    return json.loads(encoded, parse_float=float)


@given(st.lists(DOCUMENTS | BROKEN.filter(lambda text: text.count('"a":') < 2), max_size=5))
@example(["1.10", "[ 1 , 2 ]"])
@example(["[1", "2]", "3,4"])
@example(["1,2", ""])
@example(["-0", "1"])
@example(["1E5", "1"])
@example(['"\\ud800"'])
def test_documents_with_unique_keys_are_taken_as_they_are_written(texts):
    found = plain_documents(texts, unique_keys=True)
    expected = one_by_one(texts)
    if found is not None:
        assert expected is not None
        assert read(encode(found)) == read(encode(expected))
        assert len(encode(found)) <= sum(map(len, map(str.encode, texts))) + len(texts) + 1
        assert b"\n" not in encode(found)


def test_documents_with_unique_keys_lose_their_space_only():
    texts = ['{"b": 1.10, "a": "x  \\u00d1"}', "[ 1,\n 2 ]", '"2020-01-02 0x"']
    assert encode(plain_documents(texts, unique_keys=True)) == b'[{"b":1.10,"a":"x  \\u00d1"},[1,2],"2020-01-02 0x"]'


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"a":2}',
        "1e5",
        "-0",
        "9007199254740993",
        "0.12345678901234567",
        '"\\ud800"',
        "NaN",
        "",
        " ",
        "1\n2",
        "[1",
    ],
)
def test_a_document_that_needs_a_look_is_left_to_it(text):
    assert plain_documents([text, '{"plain": true}']) is None


@pytest.mark.parametrize(
    "text",
    [
        '{"a:b": {"c": -0.5}}',
        '"1,2:3"',
        "[]",
        "null",
        '{"n": 123456789012345}',
        '"\\u00e9"',
        "0.1234567890123456",
        "1.10",
    ],
)
def test_a_plain_document_is_taken(text):
    assert plain_documents([text, "1"]) == [json.loads(text), 1]


def test_documents_are_taken_with_nothing_between_them():
    assert plain_documents(["[1", "2]", "3,4"]) is None
    assert plain_documents(["1\n2", ""]) is None
