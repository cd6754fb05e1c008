"""Finds the lines of keys in a configuration file. Only a file with problems is read a second time."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

_HEADER = re.compile(r"\s*(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?")
_ENTRY = re.compile(r"""\s*((?:"[^"]*"|'[^']*'|[\w.\s-])+?)\s*=""")
_PART = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*\.?""")
_FENCE = re.compile(r'"{3}|\'{3}')


Lines = Mapping[tuple[str, ...], int]
"""The line, from 1, of each key that a file shows."""


def read_lines(file: Path) -> Lines:
    """Return the lines of a file's keys, none if it cannot be read."""
    try:
        text = file.read_text(encoding="utf-8-sig")
        return dict(_yaml_lines(text) if file.suffix.lower() in (".yaml", ".yml") else _toml_lines(text))
    except (OSError, ValueError):
        return {}


def line_of(lines: Lines, key: Sequence[str]) -> int | None:
    """Return the line of a key or of the nearest table around it; None if the file does not show it.

    Items of lists are counted from 0, as in `("databases", "shop", "keys", "0", "table")`.
    """
    ends = (tuple(key[:end]) for end in range(len(key), 0, -1))
    return next((lines[path] for path in ends if path in lines), None)


def _toml_lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the keys of a TOML file. A key inside a list or an inline table gets the line of the key before it."""
    section: tuple[str, ...] = ()
    counts: dict[tuple[str, ...], int] = {}
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        within, fenced = fenced, fenced ^ bool(len(_FENCE.findall(line)) % 2)
        if within:
            continue
        if header := _HEADER.fullmatch(line):
            section = _parts(header[2])
            if header[1] == "[[":
                place = counts[section] = counts.get(section, -1) + 1
                if not place:
                    yield section, number
                section = (*section, str(place))
            yield section, number
        elif entry := _ENTRY.match(line):
            yield (*section, *_parts(entry[1])), number


def _parts(written: str) -> tuple[str, ...]:
    return tuple(next(filter(None, part.groups()), "") for part in _PART.finditer(written))


def _yaml_lines(text: str) -> Iterator[tuple[tuple[str, ...], int]]:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return
    yield from _node_lines(root, ())


def _node_lines(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], int]]:
    import yaml

    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield (*path, key.value), key.start_mark.line + 1
            yield from _node_lines(value, (*path, key.value))
    elif isinstance(node, yaml.SequenceNode):
        for place, value in enumerate(node.value):
            yield (*path, str(place)), value.start_mark.line + 1
            yield from _node_lines(value, (*path, str(place)))
