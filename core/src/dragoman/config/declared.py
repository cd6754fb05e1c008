"""Readers of declared types. They read the options in a plugin's dataclass as settings are read."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

from dragoman.config import readers
from dragoman.config.readers import Reader, Wrong, is_collection
from dragoman.model import Secret

_LISTS: Mapping[Any, Callable[[list[Any]], Any]] = {list: list, tuple: tuple, set: set, frozenset: frozenset}
_PLAIN: Mapping[Any, Reader] = {
    str: readers.text,
    bool: readers.boolean,
    int: readers.integer,
    float: readers.number,
    Secret: readers.secret,
    Path: readers.path,
    Any: lambda value: value,
}


def reader_of(wanted: Any) -> Reader:
    """Return the reader of a type: a plain one, Literal, a union, a list or mapping of these, or else an instance."""
    origin, arguments = typing.get_origin(wanted) or wanted, typing.get_args(wanted)
    if origin is Literal:
        return readers.choice(*arguments)
    if origin in (typing.Union, types.UnionType):
        return _any_of(arguments)
    if origin in _LISTS:
        return _list_of(_LISTS[origin], reader_of(arguments[0]) if arguments else _PLAIN[Any])
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _table_of(reader_of(arguments[1]) if arguments else _PLAIN[Any])
    return _PLAIN.get(origin) or _instance_of(origin)


def _any_of(kinds: tuple[Any, ...]) -> Reader:
    """Return a reader of several types.

    A text is read as the first type that accepts it; another value must be of one of them.
    """
    ways = [(kind, reader_of(kind)) for kind in kinds if kind is not types.NoneType]

    def read(value: Any) -> Any:
        if value is None and types.NoneType in kinds:
            return None
        if not isinstance(value, str):
            ways.sort(key=lambda way: way[0] is not type(value))
        wrong: list[Wrong] = []
        for _, way in ways:
            try:
                return way(value)
            except Wrong as error:
                wrong.append(error)
        raise Wrong(" or ".join(dict.fromkeys(each.expected for each in wrong)), wrong[0].remedy)

    return read


def _list_of(build: Callable[[list[Any]], Any], item: Reader) -> Reader:
    def read(value: Any) -> Any:
        given = readers.texts(value) if isinstance(value, str) else value
        if not is_collection(given):
            raise Wrong("expected a list")
        return build([item(each) for each in given])

    return read


def _table_of(item: Reader) -> Reader:
    return lambda value: {str(name): item(each) for name, each in readers.table(value).items()}


def _instance_of(kind: Any) -> Reader:
    def read(value: Any) -> Any:
        if isinstance(kind, type) and isinstance(value, kind):
            return value
        raise Wrong(f"expected a value of {getattr(kind, '__name__', kind)}")

    return read
