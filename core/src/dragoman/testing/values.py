"""Exact values: an agent reads what the database holds, whatever the driver makes of it."""

from __future__ import annotations

import base64
import re
from datetime import datetime
from typing import Any, Final

import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError
from dragoman.gateway import Gateway
from dragoman.testing import sample
from dragoman.testing.base import SHOWN, OpenDatabase, Suite, ask, expect_answer, run, shorten
from dragoman.testing.tiers import capability, recommended, required

LENGTH: Final = 3000
"""How often the bytes of the case `binary` are repeated in a long one."""
MANY: Final = 30_000
"""How often in one of more than 64 KB."""
LONG_NAME: Final = "kit_of_many_characters_" * 2 + "and_one_more_word"
"""The beginning of two names of 64 characters that differ in the last one. Few engines take longer names."""
# For each case, how standard SQL writes the value, and what an agent must read. Only the notation is the dialect's.
VALUES: Final[dict[str, tuple[str, Any]]] = {
    "integer": ("42", 42),
    "negative_integer": ("-7", -7),
    "largest_safe_integer": ("9007199254740991", 9007199254740991),
    "integer_beyond_2_53": ("9007199254740993", "9007199254740993"),
    "negative_integer_beyond_2_53": ("-9007199254740993", "-9007199254740993"),
    "largest_64_bit_integer": ("9223372036854775807", "9223372036854775807"),
    "smallest_64_bit_integer": ("-9223372036854775807 - 1", "-9223372036854775808"),
    "integer_beyond_2_31": ("3000000000", 3000000000),
    "decimal": ("CAST(12.50 AS DECIMAL(10, 2))", "12.50"),
    "decimal_without_a_fraction": ("CAST(5 AS DECIMAL(10, 2))", "5.00"),
    "negative_decimal": ("CAST('-0.50' AS DECIMAL(10, 2))", "-0.50"),
    "small_decimal": ("CAST('0.00000001' AS DECIMAL(18, 8))", "0.00000001"),
    "zero_decimal": ("CAST(0 AS DECIMAL(18, 8))", "0.00000000"),
    "long_decimal": ("CAST('12345678901234567890.12345678' AS DECIMAL(28, 8))", "12345678901234567890.12345678"),
    "float": ("CAST(0.1 AS DOUBLE PRECISION)", 0.1),
    "smallest_float": ("CAST(5e-324 AS DOUBLE PRECISION)", 5e-324),
    "large_float": ("CAST(1e300 AS DOUBLE PRECISION)", 1e300),
    "float_beyond_2_53": ("CAST(1e16 AS DOUBLE PRECISION)", 1e16),
    "zero_float": ("CAST(0 AS DOUBLE PRECISION)", 0.0),
    "negative_zero": ("CAST('-0.0' AS DOUBLE PRECISION)", -0.0),
    "nan": ("CAST('NaN' AS DOUBLE PRECISION)", "NaN"),
    "infinity": ("CAST('Infinity' AS DOUBLE PRECISION)", "Infinity"),
    "negative_infinity": ("CAST('-Infinity' AS DOUBLE PRECISION)", "-Infinity"),
    "true": ("TRUE", True),
    "false": ("FALSE", False),
    "null": ("NULL", None),
    "decimal_of_38_digits": (
        "CAST('12345678901234567890123456789.012345678' AS DECIMAL(38, 9))",
        "12345678901234567890123456789.012345678",
    ),
    "unsigned_64_bit_integer": ("CAST('18446744073709551615' AS DECIMAL(20, 0))", "18446744073709551615"),
    "float_of_16_digits": ("CAST('0.1234567890123456' AS DOUBLE PRECISION)", 0.1234567890123456),
    "float_of_17_digits": ("CAST('0.30000000000000004' AS DOUBLE PRECISION)", 0.30000000000000004),
    "float_of_single_precision": ("CAST(16777216 AS REAL)", 16777216.0),
    "text": ("'plain'", "plain"),
    "blanks_around_a_text": ("'  plain  '", "  plain  "),
    "long_text": (f"'{'0123456789' * 4000}'", "0123456789" * 4000),
    "text_beyond_64_kb": (f"(SELECT q.t || q.t FROM (SELECT '{'0123456789' * 4000}' AS t) q)", "0123456789" * 8000),
    "empty_text": ("''", ""),
    "text_that_looks_like_null": ("'NULL'", "NULL"),
    "text_that_looks_like_a_number": ("'007'", "007"),
    "text_that_looks_like_a_boolean": ("'true'", "true"),
    "text_that_looks_like_json": ("""'{"b": 1.0,  "a": []}'""", '{"b": 1.0,  "a": []}'),
    "text_that_looks_like_a_timestamp": ("'2024-02-29T00:00:00'", "2024-02-29T00:00:00"),
    "text_that_looks_like_a_decimal": ("'12,50'", "12,50"),
    "quotes": (sample.literal('it\'s "odd" `here` \\ there'), 'it\'s "odd" `here` \\ there'),
    "placeholders_in_text": ("'? $1 :x %s {y} --'", "? $1 :x %s {y} --"),
    "percents_in_text": ("'100% %% %%s %%%'", "100% %% %%s %%%"),
    "marks_in_text": ("'a; b /* c */ -- d # e'", "a; b /* c */ -- d # e"),
    "entities_in_text": ("'&lt;b&gt; &amp; %20'", "&lt;b&gt; &amp; %20"),
    "unicode": ("'Zoë 日本 \U0001f600 e\u0301'", "Zoë 日本 \U0001f600 e\u0301"),
    "line_breaks": ("'a\n\tb'", "a\n\tb"),
    "line_break_at_the_end": ("'a\n'", "a\n"),
    "carriage_return": ("'a\r\nb'", "a\r\nb"),
    "binary": ("X'00ff10'", base64.b64encode(b"\x00\xff\x10").decode()),
    "long_binary": (f"X'{'00ff10' * LENGTH}00'", base64.b64encode(b"\x00\xff\x10" * LENGTH + b"\x00").decode()),
    "empty_binary": ("X''", ""),
    "date": ("DATE '2024-02-29'", "2024-02-29"),
    "early_date": ("DATE '0044-03-15'", "0044-03-15"),
    "midnight": ("TIMESTAMP '2024-02-29 00:00:00'", "2024-02-29 00:00:00"),
    "timestamp": ("TIMESTAMP '2024-02-29 13:14:15.123456'", "2024-02-29 13:14:15.123456"),
    "timestamp_of_a_small_fraction": ("TIMESTAMP '2024-02-29 13:14:15.000042'", "2024-02-29 13:14:15.000042"),
    "timestamp_before_1970": ("TIMESTAMP '1969-12-31 23:59:58.123456'", "1969-12-31 23:59:58.123456"),
}
ARRAYS: Final[dict[str, tuple[str, Any]]] = {
    "array": ("ARRAY[1, 2, NULL]", [1, 2, None]),
    "array_of_decimals": ("ARRAY[CAST(1.50 AS DECIMAL(4, 2))]", ["1.50"]),
    "array_of_texts": ("ARRAY['a', 'b, c', '', NULL, 'a']", ["a", "b, c", "", None, "a"]),
    "empty_array": ("CAST(ARRAY[] AS INTEGER ARRAY)", []),
    "array_of_arrays": ("ARRAY[ARRAY[1], ARRAY[2]]", [[1], [2]]),
    "array_of_large_integers": ("ARRAY[9007199254740993]", ["9007199254740993"]),
    "array_of_booleans": ("ARRAY[TRUE, FALSE, NULL]", [True, False, None]),
    "array_of_floats": ("ARRAY[CAST('0.30000000000000004' AS DOUBLE PRECISION)]", [0.30000000000000004]),
    "array_of_dates": ("ARRAY[DATE '2024-02-29']", ["2024-02-29"]),
    "array_of_timestamps": ("ARRAY[TIMESTAMP '2024-02-29 13:14:15.000042']", ["2024-02-29 13:14:15.000042"]),
    "array_of_binaries": ("ARRAY[X'00ff10']", [base64.b64encode(b"\x00\xff\x10").decode()]),
}
NESTED: Final[dict[str, tuple[str, Any]]] = {
    "row": ("CAST(ROW(1, 'x') AS ROW(a INTEGER, b VARCHAR))", {"a": 1, "b": "x"}),
    "row_of_null": ("CAST(ROW(NULL, '') AS ROW(a INTEGER, b VARCHAR))", {"a": None, "b": ""}),
    "row_of_long_numbers": (
        "CAST(ROW(9007199254740993, 1.50) AS ROW(a BIGINT, b DECIMAL(4, 2)))",
        {"a": "9007199254740993", "b": "1.50"},
    ),
    "row_with_a_name_like_a_type": ("""CAST(ROW(1) AS ROW("DATE, x" INTEGER))""", {"DATE, x": 1}),
    "map": ("MAP(ARRAY['Kit A'], ARRAY[1])", {"Kit A": 1}),
    "map_of_integers": ("MAP(ARRAY[1], ARRAY['x'])", {"1": "x"}),
}
COLUMN_NAMES: Final = ('Kit "Column"', "kit.track.id", "k" * 60, "Zoe\u0308")
BLANK_END: Final = "kit end "
"""A name that an engine may refuse."""
# Dates and times that some drivers' own types cannot represent. An engine that has none of them refuses it.
BEYOND: Final = {
    "infinite_date": "DATE 'infinity'",
    "date_of_a_long_year": "DATE '12024-02-29'",
    "infinite_timestamp": "TIMESTAMP 'infinity'",
    "timestamp_of_a_long_year": "TIMESTAMP '12024-02-29 13:14:15'",
    "timestamp_of_nanoseconds": "CAST('2024-02-29 13:14:15.123456789' AS TIMESTAMP(9))",
    "timestamp_of_nanoseconds_by_name": "CAST('2024-02-29 13:14:15.123456789' AS TIMESTAMP_NS)",
    "time": "TIME '13:14:15.123456'",
    "end_of_the_day": "TIME '24:00:00'",
    "begin_of_the_day": "TIME '00:00:00'",
    "time_of_nanoseconds": "CAST('13:14:15.123456789' AS TIME(9))",
    "time_of_nanoseconds_by_name": "CAST('13:14:15.123456789' AS TIME_NS)",
}
UUID: Final = "CAST('a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11' AS UUID)"
LABELLED: Final = "CAST('it''s' AS ENUM('it''s', 'Kit A'))"
ZONED: Final = "CAST('2024-02-29 13:14:15+05:30' AS TIMESTAMP WITH TIME ZONE)"
INSTANT: Final = datetime.fromisoformat("2024-02-29T13:14:15+05:30")
ALIKE: Final[dict[str, dict[str, tuple[str, str]]]] = {
    "early_date": {"date": ("2024-02-29", "0044-03-15")},
    "timestamp_of_a_small_fraction": {"timestamp": (".123456", ".000042")},
    "timestamp_before_1970": {"timestamp": ("2024-02-29 13:14:15", "1969-12-31 23:59:58")},
}
"""For each case, whose literal it is written like, and what to replace in it."""
_BYTES: Final = re.compile(r"(\\x00)\\xff\\x10|(00)ff10", re.IGNORECASE)
"""How engines write the bytes of the case `binary`."""
_ZONE: Final = re.compile(r"([+-]\d\d(:?\d\d)?|Z| UTC| \w+/\w+)$")
_T: Final = re.compile(r"(?<=\d)T(?=\d)")
"""Some engines write it where an answer has a blank."""
_OFFSET: Final = re.compile(r"(.{19})[.0]* ?([+-]\d\d):?(\d\d)?")


def _shorten_pair(value: str, wanted: str) -> tuple[str, str]:
    """Return two texts for a message. Long ones are shown from about where they differ."""
    pairs = enumerate(zip(value, wanted, strict=False))
    alike = next((place for place, (one, other) in pairs if one != other), min(len(value), len(wanted)))
    if alike < SHOWN:
        return shorten(value), shorten(wanted)
    start = alike - SHOWN // 2

    def show(text: str) -> str:
        return f"{len(text)} characters, from {start} on {shorten(text[start:])},"

    return show(value), show(wanted)


class ValueCases(Suite):
    """Cases for each value by itself, then for all together."""

    @required
    @pytest.mark.parametrize("value", list(VALUES))
    async def test_a_value_is_exact(self, gateway: Gateway, value: str) -> None:
        await self._check(gateway, value, *VALUES[value])

    @capability(Capability.ARRAYS)
    @pytest.mark.parametrize("value", list(ARRAYS))
    async def test_an_array_is_exact(self, gateway: Gateway, dialect: Dialect, value: str) -> None:
        await self._check_declared(gateway, dialect, Capability.ARRAYS, value, *ARRAYS[value])

    @capability(Capability.NESTED)
    @pytest.mark.parametrize("value", list(NESTED))
    async def test_a_nested_value_is_exact(self, gateway: Gateway, dialect: Dialect, value: str) -> None:
        await self._check_declared(gateway, dialect, Capability.NESTED, value, *NESTED[value])

    @required
    async def test_large_integers_are_exact_after_nulls_and_small_ones(self, gateway: Gateway) -> None:
        result = await ask(
            gateway, "SELECT NULL AS n UNION ALL SELECT 1 UNION ALL SELECT 9007199254740993 UNION ALL SELECT 2"
        )
        values = sorted((row[0] for row in result.rows), key=str)
        assert values == [1, 2, "9007199254740993", None], (
            f"The column came as {values}; decide a column's kind by its type, not by its first value."
        )

    @required
    async def test_the_sum_of_large_integers_is_exact(self, gateway: Gateway) -> None:
        result = await ask(
            gateway,
            "SELECT SUM(q.n) AS total FROM (SELECT 9007199254740993 AS n UNION ALL SELECT 4611686018427387904) q",
        )
        assert str(result.rows[0][0]) == "4620693217682128897", (
            f"The sum of 9007199254740993 and 4611686018427387904 came as {result.rows[0][0]!r}: "
            "the engine may sum in a type with more digits; return it as an integer, a Decimal "
            "or text."
        )

    @recommended
    async def test_a_timestamp_with_a_time_zone_says_which_instant_it_is(self, gateway: Gateway) -> None:
        written = self.literals.get("timestamp_with_time_zone", ZONED)
        remedy = "Override literals['timestamp_with_time_zone'], or declare a gap if the engine has no such type."
        result = await expect_answer(gateway, f"SELECT {written} AS v", remedy)
        value = str(result.rows[0][0])
        assert _ZONE.search(value), f"{written} came as {value!r}, without its offset, so its instant is unknown."
        if found := _OFFSET.fullmatch(value):
            moment = datetime.fromisoformat(f"{found[1]}{found[2]}:{found[3] or '00'}")
            assert moment == INSTANT, f"{written} came as {value!r}, which is another instant."

    @recommended
    @pytest.mark.parametrize("value", list(BEYOND))
    async def test_a_date_or_a_time_has_all_that_the_engine_has(self, gateway: Gateway, value: str) -> None:
        written = self.literals.get(value, BEYOND[value])
        try:
            came = (await ask(gateway, f"SELECT {written} AS v")).rows[0][0]
            told = (await ask(gateway, f"SELECT CAST({written} AS VARCHAR(40)) AS v")).rows[0][0]
        except DragomanError:
            return  # an engine without such values
        assert told is None or came is not None, f"{written} came as NULL, and the engine itself writes {told!r}."
        assert not isinstance(came, str) or came.lstrip("+") == _T.sub(" ", str(told)).lstrip("+"), (
            f"{written} came as {came!r}, and the engine itself writes {told!r}: the driver's own "
            "type cannot represent it. Make the driver return text."
        )

    @required
    async def test_a_uuid_is_what_the_engine_writes(self, gateway: Gateway) -> None:
        written = self.literals.get("uuid", UUID)
        try:
            value = (await ask(gateway, f"SELECT {written} AS v")).rows[0][0]
        except DragomanError:
            return  # an engine without such a type, or with another notation for it
        assert not isinstance(value, str) or value.lower() in written, (
            f"{written} came as {value!r}: return the text that the engine writes, with its hyphens."
        )

    @recommended
    async def test_a_label_of_an_enum_is_exact(self, gateway: Gateway) -> None:
        written = self.literals.get("enum", LABELLED)
        try:
            result = await ask(gateway, f"SELECT {written} AS v")
        except DragomanError:
            return  # an engine without such a type, or with another notation for it
        value, type_ = result.rows[0][0], result.columns[0].type
        assert value == "it's", f"{written} came as {value!r}: the label is it's."
        assert "Kit A" in type_ or "(" not in type_, (
            f"{written} is reported with the type {type_}: show labels unchanged, whatever the case of types."
        )

    @recommended
    async def test_a_month_is_not_thirty_days(self, gateway: Gateway) -> None:
        month = self.literals.get("month", "INTERVAL '1' MONTH")
        days = self.literals.get("thirty_days", "INTERVAL '30' DAY")
        try:
            result = await ask(gateway, f"SELECT {month} AS a, {days} AS b")
        except DragomanError as error:
            raise AssertionError(
                f"{month} gave {error.code} ({error.message}). Override literals['month'] and literals['thirty_days'],"
                " or declare a gap if the engine has no intervals."
            ) from error
        first, second = result.rows[0]
        assert first != second, (
            f"{month} and {days} both came as {first!r}: the driver converted them to durations. Make it return text."
        )

    @recommended
    async def test_a_json_value_is_told_as_json(self, gateway: Gateway) -> None:
        written = self.literals.get("json", """CAST('{"a": [1, null]}' AS JSON)""")
        try:
            result = await ask(gateway, f"SELECT {written} AS v")
        except DragomanError:
            return  # an engine without such a type
        if "json" in result.columns[0].type.lower():
            value = result.rows[0][0]
            assert value == {"a": [1, None]}, (
                f"{written} came as {value!r}: use Kind('json') for JSON, and return its text. If the engine"
                " writes this value differently, override literals['json']."
            )

    @recommended
    async def test_keys_that_are_told_to_be_unique_are(self, gateway: Gateway) -> None:
        written = self.literals.get("json_with_a_key_twice", """CAST('{"a": 1, "a": 2}' AS JSON)""")
        try:
            result = await ask(gateway, f"SELECT {written} AS v")
        except DragomanError:
            return  # an engine without such a type, or that refuses such a value
        assert not result.columns[0].kind.unique_keys or result.rows_json.count(b'"a"') < 2, (
            f"{written} came with a key twice: say Kind('json') of it, without unique_keys."
        )

    @required
    async def test_null_and_empty_text_differ(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT id, title, note FROM {sample.TRACK} WHERE id = 4")
        assert result.rows == [[4, "", None]], (
            f"An empty text and a NULL came as {result.rows[0][1:]}: return None for NULL, and for nothing else."
        )

    @required
    async def test_stored_texts_come_as_stored(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT id, genre_id, title FROM {sample.TRACK} ORDER BY id")
        assert result.rows == [list(row) for row in sample.TRACKS], (
            f"The rows came as {result.rows}: texts must come as they were stored, with all their characters."
        )

    @required
    async def test_a_text_of_many_characters_is_whole(self, opened: OpenDatabase) -> None:
        written, value = VALUES["text_beyond_64_kb"]
        longer, wanted = "0123456789" * 7, value.replace("0", "0123456789" * 7)
        statement = f"SELECT REPLACE({self._literal('text_beyond_64_kb', written)}, '0', '{longer}') AS v"
        try:
            _, rows = await run(opened, statement, max_bytes=4 * len(wanted))
        except DragomanError:
            return  # an engine or a driver whose texts are shorter, and that says so
        came = str(rows[0][0])
        assert came == wanted, (
            f"A text of {len(wanted)} characters came with {len(came)}: cut no value. Raise the driver's limit of a"
            " value, or refuse a longer one with RESULT_TOO_LARGE. If || joins no texts in this engine, override"
            " literals['text_beyond_64_kb']."
        )

    @required
    async def test_a_binary_of_many_bytes_is_whole(self, opened: OpenDatabase) -> None:
        written, _ = VALUES["binary"]
        several = _BYTES.sub(lambda found: found[0] * MANY, self._literal("binary", written))
        try:
            _, rows = await run(opened, f"SELECT {several} AS v", max_bytes=8 * MANY)
        except DragomanError:
            return  # an engine or a driver whose values are shorter, and that says so
        came = base64.b64decode(str(rows[0][0]))
        assert came == b"\x00\xff\x10" * MANY, (
            f"A value of {3 * MANY} bytes came with {len(came)}: cut no value. Raise the driver's limit of a value, or"
            " refuse a longer one with RESULT_TOO_LARGE."
        )

    @required
    async def test_rows_that_are_alike_all_come(self, gateway: Gateway) -> None:
        result = await ask(gateway, "SELECT 1 AS a UNION ALL SELECT 1 UNION ALL SELECT 1")
        assert result.rows == [[1], [1], [1]], f"Three rows of 1 came as {result.rows}: return every row."

    @required
    async def test_two_columns_of_one_name_both_survive(self, gateway: Gateway) -> None:
        result = await ask(gateway, "SELECT 1 AS a, 2 AS a, 3 AS b")
        names = [column.name.lower() for column in result.columns]
        assert (names, result.rows) == (["a", "a", "b"], [[1, 2, 3]]), (
            f"Columns {names}, rows {result.rows}: return rows as sequences, never as mappings by name."
        )

    @required
    async def test_a_wide_result_has_each_value_in_its_column(self, gateway: Gateway) -> None:
        # As texts c2 comes after c10, and -2 after 10.
        wanted = {f"c{number}": (-1) ** number * number for number in range(1, sample.WIDTH + 1)}
        result = await ask(gateway, f"SELECT {', '.join(f'{value} AS {name}' for name, value in wanted.items())}")
        names = [column.name.lower() for column in result.columns]
        assert (names, result.rows) == ([*wanted], [[*wanted.values()]]), (
            f"Of {sample.WIDTH} columns came {shorten(str(names))} with {shorten(str(result.rows))}: hand on every"
            " column in the order of the query, and each value in its own column."
        )

    @required
    async def test_a_column_has_the_name_the_query_gives_it(self, gateway: Gateway, dialect: Dialect) -> None:
        for given in COLUMN_NAMES:
            result = await ask(gateway, f"SELECT id AS {dialect.quote(given)} FROM {sample.TRACK}")
            name = result.columns[0].name
            assert name == given, f"A column named {given!r} came as {name!r}: return names unchanged."

    @required
    async def test_a_long_name_of_a_column_is_whole(self, gateway: Gateway) -> None:
        given, other = f"{LONG_NAME}1", f"{LONG_NAME}2"
        try:
            result = await ask(gateway, f"SELECT q.{given} FROM (SELECT 1 AS {given}, 2 AS {other}) q")
        except DragomanError:
            return  # an engine that takes fewer characters, for which the two are one name
        name = result.columns[0].name
        assert name.lower() == given, (
            f"A column with a name of {len(given)} characters came as {name!r}: return names unchanged."
        )

    @recommended
    async def test_a_column_s_name_may_end_with_a_blank(self, gateway: Gateway, dialect: Dialect) -> None:
        try:
            result = await ask(gateway, f"SELECT id AS {dialect.quote(BLANK_END)} FROM {sample.TRACK}")
        except DragomanError:
            return  # an engine that does not allow such names
        name = result.columns[0].name
        assert name == BLANK_END, f"A column named {BLANK_END!r} came as {name!r}: return names unchanged."

    @required
    async def test_an_empty_result_has_its_columns(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT id, title FROM {sample.TRACK} WHERE 1 = 0")
        names = [column.name.lower() for column in result.columns]
        assert (names, result.rows) == (["id", "title"], []), (
            f"Columns {names}: take them from the statement's description, not from its first row."
        )

    @required
    async def test_every_column_of_a_result_has_a_type(self, gateway: Gateway) -> None:
        result = await ask(gateway, f"SELECT id, title FROM {sample.TRACK}")
        types = [column.type for column in result.columns]
        assert all(types), f"Column.type came as {types}; use the database's own word, or `any` if it has none."

    async def _check(self, gateway: Gateway, name: str, written: str, wanted: Any) -> None:
        written = self._literal(name, written)
        remedy = (
            f"If the engine writes this value differently, override literals[{name!r}]; if it has none, declare a gap."
        )
        try:
            result = await ask(gateway, f"SELECT {written} AS v")
        except DragomanError as error:
            raise AssertionError(f"{shorten(written)} gave {error.code} ({error.message}). {remedy}") from error
        value = result.rows[0][0]
        came, must = _shorten_pair(repr(value), repr(wanted))
        # 0.0 == -0.0, and 1 == True
        assert (value, repr(value)) == (wanted, repr(wanted)), (
            f"{shorten(written)} came as {came} and must come as {must}. Make the driver return "
            f"exact values (as text where it rounds), and set Column.kind accordingly. {remedy}"
        )

    def _literal(self, name: str, written: str) -> str:
        """Return how the dialect writes a value.

        Bytes are written like those of `binary`, dates like `date` and timestamps like `timestamp`.
        """
        own = self.literals
        if name in own:
            return own[name]
        if name == "long_binary" and "binary" in own:
            return _BYTES.sub(lambda found: found[0] * LENGTH + (found[1] or found[2]), own["binary"])
        if name == "empty_binary" and "binary" in own:
            return _BYTES.sub("", own["binary"])
        if name == "array_of_binaries" and "binary" in own:
            return f"ARRAY[{own['binary']}]"
        return next(
            (own[like].replace(*values) for like, values in ALIKE.get(name, {}).items() if like in own), written
        )

    async def _check_declared(
        self, gateway: Gateway, dialect: Dialect, capability: Capability, name: str, written: str, wanted: Any
    ) -> None:
        if capability in dialect.capabilities:
            await self._check(gateway, name, written, wanted)
            return
        try:
            result = await ask(gateway, f"SELECT {self.literals.get(name, written)} AS v")
        except DragomanError:
            return
        assert not isinstance(result.rows[0][0], list | dict), (
            f"Capability.{capability.name} is not declared, and a value came as {result.rows[0][0]!r}. Declare it."
        )
