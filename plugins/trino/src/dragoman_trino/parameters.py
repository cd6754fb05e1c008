"""Parameters: a statement is sent unchanged, prepared in a header, and run with typed literals of its values.

The server takes only expressions as values, so each value becomes one literal of the type that the server expects. The
literals are on lines of their own, after as many lines as the statement has, so an error's line shows the parameter.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeGuard
from urllib.parse import quote_plus

from dragoman import ParameterError

HEADER: Final = "X-Trino-Prepared-Statement"
UNKNOWN: Final = "unknown"
_NAME: Final = "statement"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_LENGTH = re.compile(r"\bvarchar\(\d+\)")
_INTEGER = re.compile(r"[+-]?\d+")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
_ISO = re.compile(r"([+-]?\d{4,}-\d{1,2}-\d{1,2})[Tt](\d.*)")
_MOST = 2**63 - 1
_MOST_DIGITS: Final = 1000
"""The most digits of a decimal before or after its point. The server holds 38."""


class Misfit(Exception):
    """A value that does not match. Its text says what would."""


def prepare_header(statement: str) -> dict[str, str]:
    """Return the header that prepares a statement for one request."""
    return {HEADER: f"{_NAME}={quote_plus(statement)}"}


DESCRIBE_INPUT: Final = f"DESCRIBE INPUT {_NAME}"
DESCRIBE_OUTPUT: Final = f"DESCRIBE OUTPUT {_NAME}"


def are_texts(values: Sequence[Any]) -> bool:
    """Return whether all values are texts or missing."""
    return all(value is None or isinstance(value, str) for value in values)


def execution(statement: str, values: Sequence[Any], types: Sequence[str] | None) -> str:
    """Return the SQL that runs a prepared statement with values for its parameters.

    `types`: the types that the server expects, `unknown` if it takes any; None: not even their number is known. Raises
    `ParameterError` for a wrong number of values or a value that cannot have its type.
    """
    if types is None:
        types = [UNKNOWN] * len(values)
    if len(values) != len(types):
        raise ParameterError(
            f"Values needed by the statement: {len(types)}; given: {len(values)}.",
            suggestion="Give one value for each ? in order.",
        )
    literals = [_spell(*each) for each in zip(range(1, len(values) + 1), values, types, strict=True)]
    return f"EXECUTE {_NAME} USING{_lines(statement)}" + ",\n".join(literals)


def parameter_at(line: int, statement: str) -> int | None:
    """Return the number, from 1, of the parameter in a line of `execution`; None: the line is the statement's."""
    number = line - len(_lines(statement))
    return number if number > 0 else None


def _lines(statement: str) -> str:
    return "\n" * (statement.count("\n") + 1)


def _spell(number: int, value: Any, wanted: str) -> str:
    try:
        return literal(value, wanted)
    except Misfit as misfit:
        raise ParameterError(
            f"Parameter {number} does not match the type {wanted}: {misfit}.",
            parameter=number,
            suggestion="Send a value of that type, or cast the parameter, for instance CAST(? AS varchar).",
        ) from None


def literal(value: Any, wanted: str) -> str:
    """Return a JSON value as an expression of a type. Raises `Misfit`."""
    if value is None:
        return "NULL"
    name = re.sub(r"\([^()]*\)", "", wanted) if not wanted.startswith(_NESTED) else wanted.partition("(")[0]
    return _LITERALS.get(name, _generic)(value, wanted)


def _natural(value: Any, wanted: str) -> str:
    """Return the literal that the JSON type of a value suggests."""
    match value:
        case bool():
            return _boolean(value, wanted)
        case int():
            return _spell_typed("BIGINT" if -_MOST <= value <= _MOST else "DECIMAL", str(value))
        case float():
            return _spell_typed("DOUBLE", repr(value))
        case str():
            return text(value)
        case _ if is_list(value):
            return _elements(value, UNKNOWN)
        case _:
            return _json(value, wanted)


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether a JSON value is a list."""
    return isinstance(value, list)


def _boolean(value: Any, wanted: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower()
    raise Misfit("send true or false")


def _integer(value: Any, wanted: str) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not _INTEGER.fullmatch(str(value)):
        raise Misfit("send a whole number")
    return _spell_typed(wanted, str(value))


def _decimal(value: Any, wanted: str) -> str:
    if isinstance(value, bool) or not _NUMBER.fullmatch(str(value)):
        raise Misfit("send a number, or its digits as text")
    return _spell_typed("DECIMAL", _plain(str(value)))


def _plain(digits: str) -> str:
    from decimal import Decimal

    number = Decimal(digits)
    if abs(number.adjusted()) > _MOST_DIGITS:  # written out, 1e100000000 takes 100 MB
        raise Misfit(f"it has more than {_MOST_DIGITS} digits")
    return format(number, "f")


def _float(value: Any, wanted: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Misfit("send a number")
    return _spell_typed(wanted, repr(value) if isinstance(value, float) else str(value))


def _text(value: Any, wanted: str) -> str:
    if isinstance(value, list | dict):
        raise Misfit("send a text")
    return text(value if isinstance(value, str) else json.dumps(value))


def _binary(value: Any, wanted: str) -> str:
    try:
        if isinstance(value, str) and value.startswith("\\x"):
            return f"X'{bytes.fromhex(value[2:]).hex()}'"
        return f"X'{base64.b64decode(value, validate=True).hex()}'"
    except (ValueError, TypeError, binascii.Error):
        raise Misfit("send base64, or \\x and hexadecimal digits") from None


def _json(value: Any, wanted: str) -> str:
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return f"JSON {text(json.dumps(value))}"
        return f"JSON {text(value)}"
    return f"JSON {text(json.dumps(value, ensure_ascii=False))}"


def _moment(value: Any, wanted: str) -> str:
    """Return a date or time. ISO's T and the server's blank mean the same."""
    if not isinstance(value, str):
        raise Misfit("send it as text, as in 2024-02-29 13:14:15")
    parts = _ISO.fullmatch(value)
    return _spell_typed(wanted.partition("(")[0].partition(" ")[0], f"{parts[1]} {parts[2]}" if parts else value)


def _interval(value: Any, wanted: str) -> str:
    if not isinstance(value, str):
        raise Misfit("send it as text, as in 2 03:04:05.678 or 1-2")
    return f"INTERVAL {text(value)} {wanted.upper().removeprefix('INTERVAL ')}"


def _array(value: Any, wanted: str) -> str:
    if not is_list(value):
        raise Misfit("send a list")
    return _elements(value, wanted[len("array(") : -1])


def _elements(values: Sequence[Any], wanted: str) -> str:
    return f"ARRAY[{', '.join(literal(value, wanted) for value in values)}]"


def _structure(value: Any, wanted: str) -> str:
    if not isinstance(value, list | dict):
        raise Misfit("send an object or a list")
    # With their lengths, the cast would silently cut texts.
    return f"CAST({_json(value, wanted)} AS {_LENGTH.sub('varchar', wanted)})"


def _generic(value: Any, wanted: str) -> str:
    if not isinstance(value, str):
        raise Misfit("send its text")
    return f"CAST({text(value)} AS {wanted})"


def _spell_named(value: Any, wanted: str) -> str:
    if not isinstance(value, str):
        raise Misfit("send its text")
    return _spell_typed(wanted, value)


def _spell_typed(name: str, digits: str) -> str:
    return f"{name.upper()} {text(digits)}"


def text(value: str) -> str:
    """Return a text as a literal on one line. Raises `Misfit` for an invalid text."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise Misfit("it is not valid text") from None
    doubled = value.replace("'", "''")
    if not _CONTROL.search(value):
        return f"'{doubled}'"
    escaped = _CONTROL.sub(lambda match: f"\\{ord(match[0]):04x}", doubled.replace("\\", "\\\\"))
    return f"U&'{escaped}'"


_NESTED = ("array(", "map(", "row(")
_LITERALS: dict[str, Callable[[Any, str], str]] = {
    UNKNOWN: _natural,
    "boolean": _boolean,
    **dict.fromkeys(("tinyint", "smallint", "integer", "bigint"), _integer),
    "decimal": _decimal,
    **dict.fromkeys(("real", "double"), _float),
    **dict.fromkeys(("varchar", "char"), _text),
    "varbinary": _binary,
    "json": _json,
    **dict.fromkeys(
        ("date", "time", "timestamp", "time with time zone", "timestamp with time zone"),
        _moment,
    ),
    **dict.fromkeys(("interval day to second", "interval year to month"), _interval),
    **dict.fromkeys(("uuid", "ipaddress"), _spell_named),
    "array": _array,
    **dict.fromkeys(("map", "row"), _structure),
}
