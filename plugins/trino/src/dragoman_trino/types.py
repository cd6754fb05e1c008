"""Columns: what their types are called, and how their values arrive, which the tree the server sends tells."""

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
    # Their values, and those of every type that is not here, are the server's own text; of binaries it is base64.
}
_INTERVAL = re.compile(r"\bINTERVAL (?:DAY TO SECOND|YEAR TO MONTH)\b")
# As texts two keys of these types may be one.
_AMBIGUOUS = frozenset({"array", "map", "row"})

Signature = Mapping[str, Any]


def columns_of(told: Sequence[Mapping[str, Any]]) -> tuple[Column, ...]:
    """Return the columns the protocol tells."""
    return tuple(Column(each["name"], type_text(each["type"]), kind_of(each["typeSignature"])) for each in told)


def type_text(told: str) -> str:
    """Return a type's text as the catalog has it too."""
    return _INTERVAL.sub(lambda match: match[0].lower(), short_type(told))


def kind_of(signature: Signature) -> Kind:
    """Return how values of a type arrive."""
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
    """The types, or the named ones of a row, that a type is made of; lengths and digits left out."""
    arguments: list[dict[str, Any]] = signature.get("arguments") or []
    return [argument["value"] for argument in arguments if isinstance(argument["value"], dict)]


def has_ambiguous_keys(signature: Signature) -> bool:
    """Whether values of a type hold maps whose keys, as texts, may not tell them apart."""
    inner: list[Signature] = [argument.get("typeSignature", argument) for argument in _arguments(signature)]
    if signature["rawType"] == "map" and inner[0]["rawType"] in _AMBIGUOUS:
        return True
    return any(has_ambiguous_keys(each) for each in inner)
