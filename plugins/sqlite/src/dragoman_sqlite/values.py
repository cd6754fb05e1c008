"""Values of parameters, and texts of rows that are not valid in their encoding."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from dragoman import ParameterError

_NUMBERED = re.compile(r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|(?<![\w$])\$(\d+)""")

Bindings = dict[str, Any] | tuple[Any, ...]


def storable(parameters: Sequence[Any]) -> list[Any]:
    """Return JSON values as SQLite stores them: booleans are 0 and 1, arrays and objects are their JSON text.

    Raises `ParameterError` for values that SQLite cannot store.
    """
    return [_storable(number, value) for number, value in enumerate(parameters, 1)]


def _storable(number: int, value: Any) -> Any:
    match value:
        case bool():
            return int(value)
        case int() if not -(2**63) <= value < 2**63:
            raise ParameterError(
                f"Parameter {number} is too large for SQLite's 64-bit integers.",
                suggestion="Send it as a text or as a float.",
            )
        case list() | dict():
            return _storable(number, json.dumps(value, ensure_ascii=False, separators=(",", ":")))
        case str() if not _is_unicode(value):
            raise ParameterError(
                f"Parameter {number} contains half of a surrogate pair, which no text can contain.",
                suggestion="Send the whole character.",
            )
        case None | int() | float() | str() | bytes():
            return value
        case _:
            raise ParameterError(
                f"Parameter {number} is a {type(value).__name__}, which SQLite cannot store.",
                suggestion="Send it as a text.",
            )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def bind(sql: str, values: Sequence[Any]) -> Bindings:
    """Return `values` as the driver takes them: by number for `$1`, by position for `?`. Raises `ParameterError`."""
    numbers = {int(found[1]) for found in _NUMBERED.finditer(sql) if found[1]} if "$" in sql else set[int]()
    if not numbers:
        return tuple(values)
    if numbers != set(range(1, len(values) + 1)):
        raise ParameterError(
            f"The statement uses {', '.join(f'${number}' for number in sorted(numbers))}; {len(values)} values came.",
            suggestion="Give one value for each of $1, $2, ... in order.",
        )
    return {str(number): value for number, value in enumerate(values, 1)}


def rescue(sql: str, width: int, encoding: str) -> tuple[str, Callable[[Sequence[Any]], list[Any]]]:
    """Return `sql` wrapped so that texts come as bytes, and the function that restores its rows.

    For texts that are not valid in their encoding: the driver cannot return them otherwise.
    """
    names = [f"c{number}" for number in range(width)]
    picked = (
        f"typeof({name}) = 'text', CASE typeof({name}) WHEN 'text' THEN CAST({name} AS BLOB) ELSE {name} END"
        for name in names
    )
    # In UTF-16, only half of a surrogate pair can be wrong.
    errors = "surrogateescape" if encoding == "UTF-8" else "surrogatepass"

    def decode(row: Sequence[Any]) -> list[Any]:
        pairs = zip(row[::2], row[1::2], strict=True)
        return [value.decode(encoding, errors) if text else value for text, value in pairs]

    # With an OFFSET, SQLite computes each value once. It would write an expression for each use of its column, and call
    # random() for each.
    once = f"SELECT * FROM (\n{sql.rstrip(' ;')}\n) LIMIT -1 OFFSET 0"
    return f"WITH _q({', '.join(names)}) AS ({once}) SELECT {', '.join(picked)} FROM _q", decode
