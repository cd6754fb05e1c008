"""What DuckDB's names of types mean."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import duckdb
import pytest
from dragoman import Column, Database, Gateway, Kind
from dragoman_duckdb.types import columns

TYPES = {
    "INTEGER": ("integer", Kind("integer")),
    "TIMESTAMP WITH TIME ZONE": ("timestamptz", Kind("text")),
    "ENUM('Sad')": ("ENUM('Sad')", Kind("text")),
    "DATE[]": ("date[]", Kind("native")),
    "HUGEINT": ("hugeint", Kind("integer")),
    "STRUCT(a INTEGER)": ("struct(a integer)", Kind("native")),
}


@pytest.mark.parametrize("type_", TYPES)
def test_a_column_has_the_short_name_of_its_type(type_: str):
    shown, kind = TYPES[type_]
    assert columns(["a", "a"], [type_, type_]) == [Column("a", shown, kind)] * 2


def test_each_type_is_read_once_however_many_columns_have_it(monkeypatch: pytest.MonkeyPatch):
    read: list[str] = []
    monkeypatch.setattr("dragoman_duckdb.types.exact", lambda type_: read.append(type_) or type_)
    assert len(columns(["a"] * 30_000, [*TYPES] * 5_000)) == 30_000
    assert sorted(read) == sorted(TYPES)


INEXACT = {
    "INTERVAL 1 MONTH": "1 month",
    "DATE 'infinity'": "infinity",
    "DATE '0044-03-15 (BC)'": "0044-03-15 (BC)",
    "TIME '24:00:00'": "24:00:00",
    "'13:14:15.123456789'::TIME_NS": "13:14:15.123456789",
    "TIMETZ '24:00:00-15:59:59'": "24:00:00-15:59:59",
    "TIMESTAMP 'infinity'": "infinity",
    "TIMESTAMP_S '2024-02-29 13:14:15'": "2024-02-29 13:14:15",
    "TIMESTAMP_MS '2024-02-29 13:14:15.123'": "2024-02-29 13:14:15.123",
    "TIMESTAMP_NS '2024-02-29 13:14:15.123456789'": "2024-02-29 13:14:15.123456789",
    "TIMESTAMPTZ '-infinity'": "-infinity",
    "'2024-02-29 13:14:15.123456789+00'::TIMESTAMPTZ_NS": "2024-02-29 13:14:15.123456789+00",
    "'101'::BIT": "101",
    "'6ba7b810-9dad-11d1-80b4-00c04fd430c8'::UUID": "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
}
"""Values of the types that Python's own do not hold, as DuckDB writes them."""
HOLDERS = {
    "[{value}]": "[{told}]",
    "struct_pack(a := {value})": '{{"a": {told}}}',
    "map([1], [{value}])": '{{"1": {told}}}',
    "array_value({value})": "[{told}]",
    "union_value(a := {value})": "{told}",
    "({value})::VARIANT": "{told}",
    "[{value}]::VARIANT": "[{told}]",
    "struct_pack(a := {value})::VARIANT": '{{"a": {told}}}',
}
"""Types that hold values of others, and what an answer has of each."""
VALUES = {
    "12.50::DECIMAL(10, 2)": '"12.50"',
    "12345678901234567890123456789.012345678::DECIMAL(38, 9)": '"12345678901234567890123456789.012345678"',
    "9007199254740993": '"9007199254740993"',
    "'340282366920938463463374607431768211455'::UHUGEINT": '"340282366920938463463374607431768211455"',
    "repeat('9', 5000)::BIGNUM": f'"{"9" * 5000}"',
    "42": "42",
    "0.1::DOUBLE": "0.1",
    "'-0.0'::DOUBLE": "-0.0",
    "'NaN'::DOUBLE": '"NaN"',
    "'-inf'::DOUBLE": '"-Infinity"',
    "TRUE": "true",
    "'\\x00\\xFF\\x10'::BLOB": '"AP8Q"',
    "'\\x01a'::BLOB": '"AWE="',
    "'POINT'::BLOB": '"UE9JTlQ="',
    "'POINT(1 2)'::GEOMETRY": '"POINT (1 2)"',
    "'plain'": '"plain"',
    "'1'": '"1"',
    "''": '""',
    """'"quoted"'""": r'"\"quoted\""',
    "'[1]'": '"[1]"',
    "TIMESTAMPTZ '2024-02-29 13:14:15+00'": '"2024-02-29 13:14:15+00"',
    **{value: f'"{told}"' for value, told in INEXACT.items()},
}
"""Values of many types, and what an answer has of each."""
WORDS = ("DATE", "TIME", "TIME_NS", "TIMESTAMP", "INTERVAL", "UUID", "BIT", "VARIANT")
NAMES = [
    f"{before}{word}{after}" for word in WORDS for before in ("", "a ", "it's ", '"') for after in (")", ", x", "[")
]
"""Names and labels that look like types."""


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncIterator[Gateway]:
    folder: Path = tmp_path_factory.mktemp("types")
    duckdb.connect(folder / "empty.duckdb").close()
    async with Gateway.open([Database(name="d", dialect="duckdb", database="empty.duckdb", folder=folder)]) as opened:
        yield opened


@pytest.mark.anyio
@pytest.mark.parametrize("holder", HOLDERS)
async def test_what_python_s_types_do_not_hold_is_exact_in_every_type_that_holds_it(gateway: Gateway, holder: str):
    written = ", ".join(f'{holder.format(value=value)} AS "{n}"' for n, value in enumerate(INEXACT))
    result = await gateway.query(None, f"SELECT {written}")
    told = [HOLDERS[holder].format(told=f'"{value}"') for value in INEXACT.values()]
    assert result.rows_json.decode() == f"[[{','.join(told)}]]".replace('": ', '":')


@pytest.mark.anyio
async def test_a_name_that_looks_like_a_type_stays_a_name(gateway: Gateway):
    names = {name: name.replace('"', '""') for name in NAMES}
    fields = ", ".join(f"struct_pack(\"{name}\" := 1, d := DATE 'infinity')" for name in names.values())
    result = await gateway.query(None, f"SELECT {fields}")
    assert result.rows == [[{name: 1, "d": "infinity"} for name in names]]


@pytest.mark.anyio
async def test_a_label_that_looks_like_a_type_stays_a_label(gateway: Gateway):
    labels = [name.replace("'", "''") for name in NAMES]
    values = ", ".join(f"[CAST('{label}' AS ENUM('{label}', 'b')), NULL]" for label in labels)
    result = await gateway.query(None, f"SELECT {values}, DATE 'infinity'")
    assert result.rows == [[*([name, None] for name in NAMES), "infinity"]]


@pytest.mark.anyio
@pytest.mark.parametrize("outer", HOLDERS)
@pytest.mark.parametrize("holder", ["({value})::VARIANT", "[({value})::VARIANT]", "map([1], [({value})::VARIANT])"])
async def test_a_variant_is_exact_whatever_it_holds_and_whatever_holds_it(gateway: Gateway, holder: str, outer: str):
    held = {value: holder.format(value=value) for value in VALUES}
    written = ", ".join(f'{outer.format(value=value)} AS "{n}"' for n, value in enumerate(held.values()))
    result = await gateway.query(None, f"SELECT {written}")
    inner = {"(": "{told}", "[": "[{told}]", "m": '{{"1": {told}}}'}[holder[0]]
    if outer.endswith("VARIANT") and holder[0] == "m":
        inner = '[{{"key": 1,"value": {told}}}]'
    told = [HOLDERS[outer].format(told=inner.format(told=value)) for value in VALUES.values()]
    assert result.rows_json.decode() == f"[[{','.join(told)}]]".replace('": ', '":')
    assert not result.notices


@pytest.mark.anyio
async def test_a_variant_holds_objects_and_null(gateway: Gateway):
    written = "1::VARIANT, NULL::VARIANT, struct_pack(a := [1.50, NULL])::VARIANT, [NULL::VARIANT, 1::VARIANT]"
    result = await gateway.query(None, f"SELECT {written}")
    assert result.rows == [[1, None, {"a": ["1.50", None]}, [None, 1]]]


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("keys", "told"),
    [
        ("1::VARIANT, '1'::VARIANT, TRUE::VARIANT", ["1", '"1"', "true"]),
        ("[1::VARIANT], ['1'::VARIANT]", ["[1]", '["1"]']),
        ("struct_pack(a := DATE '2024-02-29'::VARIANT)", ['{"a":"2024-02-29"}']),
        ("map([1::VARIANT], [2])", ['{"1":2}']),
        ("'NaN'::DOUBLE, 0.5", ["NaN", "0.5"]),
    ],
)
async def test_a_map_keeps_each_of_its_keys_with_its_exact_value(gateway: Gateway, keys: str, told: list[str]):
    values = ("'x'::VARIANT", "'1'::VARIANT", "12.50::DECIMAL(4, 2)::VARIANT")[: len(told)]
    result = await gateway.query(None, f"SELECT map([{keys}], [{', '.join(values)}])")
    assert result.rows == [[dict(zip(told, ("x", "1", "12.50"), strict=False))]]


@pytest.mark.anyio
@pytest.mark.parametrize("levels", [100, 101, 300])
async def test_a_variant_that_json_readers_find_too_deep_is_its_exact_text(gateway: Gateway, levels: int):
    variant = f"(repeat('[', {levels}) || repeat(']', {levels}))::JSON::VARIANT"
    (row,) = (await gateway.query(None, f"SELECT {variant}, ['[[[']::VARIANT")).rows
    assert isinstance(row[0], list if levels == 100 else str)
    assert json.dumps(row[0]).strip('"') == "[" * levels + "]" * levels
    assert row[1] == ["[[["]


KEYS = {
    "struct_pack(a := 1)": "{'a': 1}",
    "[1, NULL]": "[1, NULL]",
    "array_value(1, 2)": "[1, 2]",
    "row(1, 'x')": "(1, x)",
    "map([1], [DATE '2024-02-29'])": "{1=2024-02-29}",
    "'12'::BIGNUM": "12",
    "DATE 'infinity'": "infinity",
    "1.50": "1.50",
    "'key'": "key",
}


@pytest.mark.anyio
@pytest.mark.parametrize("holder", [each for each in HOLDERS if "VARIANT" not in each])
async def test_a_map_is_an_object_by_the_text_of_its_keys_whatever_they_are(gateway: Gateway, holder: str):
    held = [holder.format(value=f"map([{key}], [map([{key}], [INTERVAL 1 MONTH])])") for key in KEYS]
    written = ", ".join(f'{value} AS "{place}"' for place, value in enumerate(held))
    (row,) = (await gateway.query(None, f"SELECT {written}")).rows
    told = [HOLDERS[holder].format(told=json.dumps({key: {key: "1 month"}})) for key in KEYS.values()]
    assert row == [json.loads(each) for each in told]
