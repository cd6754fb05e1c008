"""Columns: the names of their types, and the kinds of their values, from the type tree that the server sends."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from dragoman import Column, Kind

from dragoman_trino.spelling import short_type

TEXT = Kind("text")
_SCALARS = {
    "boolean": Kind("boolean"),
    "tinyint": Kind("integer"),
    "smallint": Kind("integer"),
    "integer": Kind("integer"),
    "bigint": Kind("integer"),
    "real": Kind("float"),
    "double": Kind("float"),
    "json": Kind("json"),
    "varbinary": Kind("binary"),
    # Values of these types, and of every type not listed, are the server's own text; binaries are base64.
}
_INTERVAL = re.compile(r"\bINTERVAL (?:DAY TO SECOND|YEAR TO MONTH)\b")
# Two different keys of these types may have the same text.
_AMBIGUOUS = frozenset({"array", "map", "row"})

Signature = Mapping[str, Any]


def columns_of(told: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return the columns in the protocol's answer."""
    return tuple(Column(each["name"], type_text(each["type"]), kind_of(each["typeSignature"])) for each in told)


def type_text(told: str) -> str:
    """Return a type's text, spelled as in the catalog."""
    return _INTERVAL.sub(lambda match: match[0].lower(), short_type(told))


def kind_of(signature: Signature) -> Kind:
    """Return the kind of a type's values."""
    arguments = _arguments(signature)
    match signature["rawType"]:
        case "array":
            return Kind.array(kind_of(arguments[0]))
        case "map":
            return Kind.map(TEXT, kind_of(arguments[1]))
        case "row":
            names = [_field_name(field) for field in arguments]
            return Kind.row([kind_of(field["typeSignature"]) for field in arguments], names if all(names) else ())
        case scalar:
            return _SCALARS.get(scalar, TEXT)


def _field_name(field: Signature) -> str:
    name: dict[str, str] | None = field.get("fieldName")
    return name["name"] if name else ""


def _arguments(signature: Signature) -> list[dict[str, Any]]:
    """Return the types, or the named ones of a row, that a type consists of, without lengths and digits."""
    arguments: list[dict[str, Any]] = signature.get("arguments") or []
    return [argument["value"] for argument in arguments if isinstance(argument["value"], dict)]


def has_ambiguous_keys(signature: Signature) -> bool:
    """Return whether values of a type contain maps whose keys may be ambiguous as texts."""
    inner: list[Signature] = [argument.get("typeSignature", argument) for argument in _arguments(signature)]
    if signature["rawType"] == "map" and inner[0]["rawType"] in _AMBIGUOUS:
        return True
    return any(has_ambiguous_keys(each) for each in inner)
