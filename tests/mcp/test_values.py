"""How many values a message has is told before it is parsed, and never as fewer than a parser makes of it."""

import json
import random
from typing import Any

import pytest
from dragoman.mcp.values import MOST_VALUES, has_too_many_values

TEXTS = ("", "a", ",", "[[,{", '"', '\\"', "\\", "\\\\", '\\",["', "é", "\u2028", "\U0001f600", "\x00", "]}")


def a_value(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(4 if depth else 2)
    if kind == 0:
        return chance.choice((0, 1.5, True, None, -12))
    if kind == 1:
        return "".join(chance.choices(TEXTS, k=chance.randrange(4)))
    if kind == 2:
        return [a_value(chance, depth - 1) for _ in range(chance.randrange(6))]
    return {f"{number}{chance.choice(TEXTS)}": a_value(chance, depth - 1) for number in range(chance.randrange(6))}


def count(value: Any) -> int:
    """Return the number of commas and opening brackets in a value's JSON."""
    if not isinstance(value, list | dict):
        return 0
    parts = list(value.values()) if isinstance(value, dict) else value
    return 1 + max(len(parts) - 1, 0) + sum(map(count, parts))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("ascii_only", [True, False])
def test_values_are_counted_as_a_parser_finds_them(seed: int, ascii_only: bool) -> None:
    chance = random.Random(seed)
    values, marks = list[Any](), 3  # two brackets, and the comma after the texts
    while marks < MOST_VALUES - 3000:
        values.append(a_value(chance, 4))
        marks += count(values[-1]) + 1
    values += [0] * (MOST_VALUES - marks + 2)
    told = json.dumps({"texts": "," * 100_000, "a": values}, ensure_ascii=ascii_only)
    fewer = json.dumps({"texts": "," * 100_000, "a": values[:-1]}, ensure_ascii=ascii_only)
    assert has_too_many_values(told.encode())
    assert not has_too_many_values(fewer.encode())


@pytest.mark.parametrize(
    "text", [',"[{' * 100_000, "\\" * 100_001 + ",", '"' * 100_000 + "," * 100_000, "'[,'" * 99_999]
)
def test_a_text_is_one_value_whatever_it_holds(text: str) -> None:
    assert not has_too_many_values(json.dumps({"params": [text, text]}).encode())


@pytest.mark.parametrize(
    "values", [[0] * 10_000, [[]] * 10_000, [{}] * 10_000, [{"a": 1}] * 5_000, ["a,b"] * 10_000, [[[1, 2]]] * 2_500]
)
def test_as_many_values_as_params_may_have_are_not_too_many(values: list[Any]) -> None:
    arguments = {"database": "shop", "sql": "SELECT 1" + "," * 60_000, "params": values}
    assert not has_too_many_values(json.dumps({"id": 1, "params": {"name": "x", "arguments": arguments}}).encode())


MANY = ("[],", "[[]],", "{},", '{"a":1},', "0,", '"",', '"a":1,', "[", '{"a":')


@pytest.mark.parametrize("part", MANY)
@pytest.mark.parametrize("begins", ["", '{"a":"\\"","b":[', '"\\\\\\"",', '{"\\\\":['])
@pytest.mark.parametrize("coding", ["utf-8", "utf-16", "utf-32"])
def test_what_is_no_json_as_a_whole_is_counted_up_to_its_fault(part: str, begins: str, coding: str) -> None:
    assert has_too_many_values((begins + part * (MOST_VALUES + 1) + '"').encode(coding))
