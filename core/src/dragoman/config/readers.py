"""Readers: each takes a value from a file or a variable and returns ours, or raises `Wrong`.

Text is accepted for every type, since the environment and interpolation give only text. No message repeats a value.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, time
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeGuard

from dragoman.model import Secret
from dragoman.words import nearest

Reader = Callable[[Any], Any]


class Wrong(ValueError):
    """A value does not match its key: says what was expected, and perhaps what was meant."""

    def __init__(self, expected: str, remedy: str = "") -> None:
        super().__init__(expected)
        self.expected = expected
        self.remedy = remedy


_BOOLEANS = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def suggest(word: str, known: tuple[str, ...]) -> str:
    """Return `Did you mean ...?` if `word` is similar to a known one, else an empty text."""
    near = nearest(word, known)
    return f"Did you mean {near[0]}?" if near else ""


def text(value: Any) -> str:
    """Read any text."""
    if not isinstance(value, str):
        raise Wrong("expected text (in quotes)")
    return value


def secret(value: Any) -> Secret:
    """Read a text that is never shown."""
    return value if isinstance(value, Secret) else Secret(text(value))


def closing(read: Reader) -> Reader:
    """Return a reader of what keeps somebody out.

    It refuses an empty text, such as that of an empty variable, alone or in a list.
    """

    def refuse_empty(value: Any) -> Any:
        written = value.reveal() if isinstance(value, Secret) else value
        values = written if is_list(written) else [written]
        if any(isinstance(each, str) and not each.strip(" \t,") for each in values):
            raise Wrong("expected a value, not an empty text", "Leave the key out to set nothing.")
        return read(value)

    return refuse_empty


def path(value: Any) -> Path:
    """Read the path of a file."""
    if isinstance(value, Path):
        return value
    if not text(value) or "\0" in value:
        raise Wrong("expected the path of a file")
    return Path(os.path.expanduser(text(value)))


def boolean(value: Any) -> bool:
    """Read true or false."""
    known = (
        value if isinstance(value, bool) else _BOOLEANS.get(value.strip().lower()) if isinstance(value, str) else None
    )
    if known is None:
        raise Wrong("expected true or false")
    return known


def whole(minimum: int, maximum: int | None = None) -> Reader:
    """Return a reader of whole numbers within these bounds."""
    expected = f"expected a whole number of at least {minimum}"
    if maximum is not None:
        expected = f"expected a whole number from {minimum} to {maximum}"

    def read(value: Any) -> int:
        if isinstance(value, str) and value.strip().isascii() and value.strip().isdigit():
            value = int(value)
        if type(value) is not int or value < minimum or (maximum is not None and value > maximum):
            raise Wrong(expected)
        return value

    return read


def integer(value: Any) -> int:
    """Read any whole number."""
    if isinstance(value, str) and re.fullmatch(r"\s*[+-]?[0-9]+\s*", value):
        value = int(value)
    if type(value) is not int:
        raise Wrong("expected a whole number")
    return value


def number(value: Any) -> float:
    """Read any finite number."""
    try:
        read = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        read = math.nan
    if not math.isfinite(read):
        raise Wrong("expected a number")
    return read


def seconds(*, zero: bool = False) -> Reader:
    """Return a reader of durations in seconds. `zero`: 0 is allowed."""
    expected = "expected seconds, 0 or more" if zero else "expected seconds, more than 0"

    def read(value: Any) -> float:
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                raise Wrong(expected) from None
        if type(value) not in (int, float) or not math.isfinite(value) or value < 0 or (value == 0 and not zero):
            raise Wrong(expected)
        return float(value)

    return read


def positive(value: Any) -> float:
    """Read a number above 0."""
    try:
        number: float = seconds()(value)
    except Wrong:
        raise Wrong("expected a number above 0") from None
    return number


def choice(*words: str) -> Reader:
    """Return a reader that accepts one of these words."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise Wrong(f"expected one of {', '.join(words)}")
        if value not in words:
            raise Wrong(f"expected one of {', '.join(words)}", suggest(value, words))
        return value

    return read


def texts(value: Any) -> tuple[str, ...]:
    """Read a list of texts; from the environment a JSON array, or texts separated by commas."""
    if isinstance(value, str):
        value = _json(value) if value.lstrip().startswith("[") else _commas(value)
    if not is_list(value) or not all(isinstance(each, str) for each in value):
        raise Wrong("expected a list of texts")
    return tuple(value)


def text_set(value: Any) -> frozenset[str]:
    """Read a list of texts whose order does not matter."""
    return frozenset(texts(value))


def tools(value: Any) -> str | tuple[str, ...]:
    """Read a profile, a toolset, a tool's name, or a list of them. The tools themselves check the names."""
    if isinstance(value, str) and "," not in value and not value.lstrip().startswith("["):
        return value.strip()
    return texts(value)


_HASH = re.compile(r"sha256:[0-9a-f]{64}")


def token_hash(value: Any) -> str:
    """Read the hash of a token."""
    if not isinstance(value, str) or not _HASH.fullmatch(value):
        raise Wrong("expected sha256: and 64 hexadecimal digits", "Make one with `dragoman token create NAME`.")
    return value


def moment(value: Any) -> datetime:
    """Read a point in time. A date means its beginning; a time without a zone is in UTC."""
    try:
        read = datetime.fromisoformat(value) if isinstance(value, str) else value
    except ValueError:
        read = None
    if isinstance(read, date) and not isinstance(read, datetime):
        read = datetime.combine(read, time())
    if not isinstance(read, datetime):
        raise Wrong("expected a date or a time such as 2027-01-31T12:00:00Z")
    return read if read.tzinfo else read.replace(tzinfo=UTC)


_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+")


def scopes(value: Any) -> tuple[str, ...]:
    """Read a list of OAuth scopes."""
    given = texts(value)
    if not all(_SCOPE.fullmatch(each) for each in given):
        raise Wrong("expected a list of scopes, which have no spaces, quotes or backslashes")
    if "offline_access" in given:
        raise Wrong("offline_access is not a scope of a server", "Clients ask for it themselves; leave it out.")
    return given


def scopes_by_scope(value: Any) -> Mapping[str, tuple[str, ...]]:
    """Read lists of OAuth scopes, by the broader scope that implies them."""
    return MappingProxyType({name: scopes(each) for name, each in table(value).items()})


def http_url(value: Any) -> str:
    """Read an HTTP URL."""
    from urllib.parse import urlsplit

    try:
        split = urlsplit(text(value))
    except ValueError:
        split = urlsplit("")
    if split.scheme not in ("http", "https") or not split.hostname or split.username or split.fragment:
        raise Wrong("expected a URL: https://...")
    return text(value)


def networks(value: Any) -> tuple[str, ...]:
    """Read a list of IP addresses and networks."""
    import ipaddress

    given = texts(value)
    try:
        return tuple(str(ipaddress.ip_network(each.strip())) for each in given)
    except ValueError:
        raise Wrong("expected IP addresses or networks such as 10.0.0.0/8") from None


def table(value: Any) -> dict[str, Any]:
    """Read a table; from the environment a JSON object."""
    value = _json(value) if isinstance(value, str) else value
    if not is_mapping(value):
        raise Wrong("expected a table of names and values")
    return dict(value)


def tables(value: Any) -> list[dict[str, Any]]:
    """Read a list of tables; from the environment a JSON array of objects."""
    value = _json(value) if isinstance(value, str) else value
    if not is_list(value):
        raise Wrong("expected a list of tables")
    return [table(each) for each in value]


def is_list(value: Any) -> TypeGuard[list[Any]]:
    """Return whether it is a list, of anything."""
    return isinstance(value, list)


def is_mapping(value: Any) -> TypeGuard[Mapping[Any, Any]]:
    """Return whether it is a mapping, of anything."""
    return isinstance(value, Mapping)


def is_collection(value: Any) -> TypeGuard[Collection[Any]]:
    """Return whether it is a list, a tuple or a set, of anything."""
    return isinstance(value, list | tuple | frozenset)


def _json(value: str) -> Any:
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        raise Wrong("expected JSON") from None


def _commas(value: str) -> list[str]:
    return [each.strip() for each in value.split(",") if each.strip()]
