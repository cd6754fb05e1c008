"""Which types keep what the texts of CSV columns say. DuckDB's guess may be another one.

It reads 12345678901234567.89 as a float, 1-2-3 as a moment of the year 1, and 31.12.26 as a day of 2031.
"""

# pyright: reportUnknownMemberType=false
# (a connection's methods take what no stub names)

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping

import duckdb

from dragoman_duckdb.writing import quote_name, quote_text

_ZONED = "TIMESTAMP WITH TIME ZONE"
_ZONE = r":[0-9]+(\.[0-9]+)?\s*(Z|UTC|[+-][0-9]{2}(:?[0-9]{2})?)\s*$"
_SAMPLE = 20_480
"""Rows that tell most orders of a date apart."""
_MOST_DIGITS = 38
_SAFE = 15
"""Characters of a number without an exponent of which a float keeps all digits, whatever they are."""
_FINER = r"\.[0-9]{6}[0-9]*[1-9]"
"""Parts of a second that DuckDB cuts off."""
_SHORT_YEAR = r"^\s*[0-9]{1,3}[^0-9]"
"""A date without a year of four digits in front."""
_FIELD = re.compile("%[dmyY]")


def find_types(
    connection: duckdb.DuckDBPyConnection, texts: str, guessed: Mapping[str, tuple[str, str | None]]
) -> dict[str, str]:
    """Return the types that columns need instead of the guessed ones.

    `texts`: the call that reads all columns as texts. `guessed`: by name, the type, and the format of dates or moments;
    None: they are in DuckDB's own (ISO).
    """
    asked = {name: _ask_type(quote_name(name), *guess) for name, guess in guessed.items()}
    found = _ask(connection, texts, {name: question for name, question in asked.items() if question})
    found |= _ask(
        connection, texts, {name: _ask_decimal(quote_name(name)) for name in found if found[name] == "DECIMAL"}
    )
    unclear = {
        name: "VARCHAR"
        for name, (_, written) in guessed.items()
        if written and name not in found and _is_ambiguous(connection, texts, quote_name(name), written)
    }
    return found | unclear


def _ask(connection: duckdb.DuckDBPyConnection, texts: str, asked: Mapping[str, str]) -> dict[str, str]:
    if not asked:
        return {}
    (answers,) = connection.execute(f"SELECT {', '.join(asked.values())} FROM {texts}").fetchall()
    return {name: answer for name, answer in zip(asked, answers, strict=True) if answer}


def _ask_type(column: str, type_: str, written: str | None) -> str:
    """Return an expression of the type that a column needs instead of this one, or NULL; empty for other types."""
    if type_ == "DOUBLE":
        return _unless(_keeps_digits(column), column, "DECIMAL")
    if type_ == "TIME":
        return _unless(f"NOT regexp_matches({column}, {quote_text(_FINER)})", column)
    if written:  # DuckDB then reads `infinity` as the year 1900, and ends at a value of another format
        return _unless(f"{column} ~ '.*[0-9].*' AND {_reads(column, written)}", column)
    plain = f"NOT regexp_matches({column}, {quote_text(f'{_FINER}|{_SHORT_YEAR}')})"
    if type_ == _ZONED:
        return _unless(f"{plain} AND try_cast({column} AS {_ZONED}) IS NOT NULL", column)
    if type_ == "TIMESTAMP":
        zoned = f"CASE WHEN bool_or(regexp_matches({column}, {quote_text(_ZONE)})) THEN {quote_text(_ZONED)} END"
        return f"coalesce({_unless(plain, column)}, {zoned})"
    return _unless(plain, column) if type_ == "DATE" else ""


def _keeps_digits(column: str) -> str:
    """Return a condition: a float has all digits of a number. It has none of 1e400, which is infinite."""
    as_float = f"CAST(try_cast({column} AS DOUBLE) AS VARCHAR)"
    is_short = f"length({column}) <= {_SAFE} AND NOT {column} ~ '.*[0-9.][eE].*'"
    return f"CASE WHEN ({is_short}) OR {column} = {as_float} THEN true ELSE {_digits(column)} = {_digits(as_float)} END"


def _digits(text: str) -> str:
    """Return an expression of the digits of a number, without zeros that only tell its size."""
    return f"trim(regexp_replace({text}, '[eE].*|[^0-9]', '', 'g'), '0')"


def _ask_decimal(column: str) -> str:
    """Return an expression of the decimal that holds all numbers of a column, or else VARCHAR."""
    whole, scale = (
        f"coalesce(max(length(regexp_extract({column}, {quote_text(pattern)}, 1))), 0)"
        for pattern in (r"^\s*-?0*([0-9]*)", r"\.([0-9]*)")
    )
    is_plain = _all(rf"regexp_matches({column}, '^\s*-?[0-9]*\.?[0-9]*\s*$')", column)
    decimal = f"concat('DECIMAL(', {whole} + {scale}, ',', {scale}, ')')"
    return f"CASE WHEN {is_plain} AND {whole} + {scale} <= {_MOST_DIGITS} THEN {decimal} ELSE 'VARCHAR' END"


def _is_ambiguous(connection: duckdb.DuckDBPyConnection, texts: str, column: str, written: str) -> bool:
    """Return whether day, month and year may be meant in another order, which reads every text of the column too."""
    others: list[str] = [*_other_orders(written)]
    for rows in (f"(SELECT * FROM {texts} LIMIT {_SAMPLE})", texts):
        if others:
            reads = ", ".join(_all(_reads(column, other), column) for other in others)
            (answers,) = connection.execute(f"SELECT {reads} FROM {rows}").fetchall()
            others = [other for other, answer in zip(others, answers, strict=True) if answer]
    return bool(others)


def _other_orders(written: str) -> Iterator[str]:
    """Yield a format with day, month and year in each other order, unless a whole year comes first."""
    fields: list[str] = _FIELD.findall(written)
    if fields[:1] != ["%Y"]:
        for order in set(itertools.permutations(fields)) - {tuple(fields)}:
            left = iter(order)
            yield "".join(next(left) if part in fields else part for part in re.split(f"({_FIELD.pattern})", written))


def _reads(column: str, written: str) -> str:
    return f"try_strptime({column}, {quote_text(written)}) IS NOT NULL"


def _unless(fits: str, column: str, type_: str = "VARCHAR") -> str:
    return f"CASE WHEN NOT {_all(fits, column)} THEN {quote_text(type_)} END"


def _all(fits: str, column: str) -> str:
    """Return an expression: every text of a column fits, or is empty."""
    return f"bool_and({column} = '' OR ({fits}))"
