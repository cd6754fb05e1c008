"""Reads and writes the files of saved queries."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from dragoman.errors import ConfigurationError, ParameterError
from dragoman.private import create_private
from dragoman.saved.queries import NAME, REQUIRED, TYPES, Parameter, SavedQuery, front_matter
from dragoman.text_files import find_visible, read_text
from dragoman.words import nearest

MAX_BYTES: Final = 128 * 1024
_LINE = re.compile(r"--[ \t]*(?P<key>[A-Za-z_]+)[ \t]*:[ \t]*(?P<value>.*)")
_PARAMETER = re.compile(
    r"(?P<name>[A-Za-z_][A-Za-z0-9_]{0,62})[ \t]+(?P<type>[a-z]+)"
    r'(?:[ \t]*=[ \t]*(?P<default>"(?:[^"\\]|\\.)*"|[^"\s]+))?'
    r'(?:[ \t]+"(?P<words>(?:[^"\\]|\\.)*)")?'
)
KEYS: Final = ("name", "description", "database", "param", "expose")


@dataclass(frozen=True, slots=True)
class FileProblem:
    """A problem in a file: `file` is its name, `line` counts from 1, `remedy` says what to do."""

    file: str
    line: int
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}. {self.remedy}".rstrip()


class _Wrong(ValueError):
    def __init__(self, line: int, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.line, self.message, self.remedy = line, message, remedy


@dataclass(frozen=True, slots=True)
class SavedQueries:
    """The queries of a folder by name, and the problems of the files that are left out."""

    queries: Mapping[str, SavedQuery]
    problems: tuple[FileProblem, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> SavedQueries:
        """Read every `*.sql` of a folder, without asking a database. A missing folder is a problem."""
        if not os.path.isdir(folder):  # False for a name that is too long for the system, where `Path` raises
            return cls({}, (FileProblem(folder.name, 0, "there is no such folder", "Create it."),))
        queries: dict[str, SavedQuery] = {}
        problems: list[FileProblem] = []
        for path in find_visible(folder, ".sql"):
            try:
                query = parse(path)
                if query.name in queries:
                    raise _Wrong(1, f"a second query is named {query.name}", "Give each a name of its own.")
                queries[query.name] = query
            except _Wrong as wrong:
                problems.append(FileProblem(path.name, wrong.line, wrong.message, wrong.remedy))
        return cls(MappingProxyType(queries), tuple(problems))

    def find(self, name: str) -> SavedQuery:
        """Return a query. Raises `ParameterError` with the nearest names."""
        if name in self.queries:
            return self.queries[name]
        near = nearest(name, self.queries)
        remedy = f"Did you mean {near[0]}?" if near else "list_queries lists them."
        raise ParameterError(f"There is no saved query {name[:100]!r}.", suggestion=remedy)


def parse(path: Path) -> SavedQuery:
    """Return the query of a file. Raises `ValueError` with the line and the problem."""
    try:
        text = read_text(path, MAX_BYTES)
    except OSError as error:
        raise _Wrong(1, f"the file cannot be read ({error.strerror})") from None
    except ValueError as wrong:
        raise _Wrong(1, str(wrong)) from None
    return replace(parse_text(text, path.stem), path=path)


def parse_text(text: str, name: str) -> SavedQuery:
    """Return the query of a file's text. `name` is used if the front matter has none. Raises `ValueError`."""
    fields: dict[str, str] = {}
    parameters: dict[str, Parameter] = {}
    for number, key, value in _front_matter(text):
        if key == "param":
            parameter = _parameter(value, number)
            if parameter.name in parameters:
                raise _Wrong(number, f"a second parameter is named {parameter.name}")
            parameters[parameter.name] = parameter
        elif key in fields:
            raise _Wrong(number, f"{key} is given twice", "Remove one.")
        else:
            fields[key] = _check(key, value, number)
    sql = _body(text)
    if not sql:
        raise _Wrong(text.count("\n") + 1, "there is no SQL below the front matter")
    return SavedQuery(
        name=check_name(fields.get("name", name)),
        sql=sql,
        description=fields.get("description", ""),
        database=fields.get("database") or None,
        parameters=tuple(parameters.values()),
        is_tool=fields.get("expose") == "tool",
    )


def _front_matter(text: str) -> Iterator[tuple[int, str, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        found = _LINE.fullmatch(line.strip())
        if found and found["key"].lower() in KEYS:
            yield number, found["key"].lower(), found["value"].strip()
        elif found and (near := nearest(found["key"].lower(), KEYS)):
            raise _Wrong(number, f"there is no key {found['key']}", f"Did you mean {near[0]}?")
        elif line.strip() and not line.lstrip().startswith("--"):
            return


def _body(text: str) -> str:
    """Return the text from the first line that is not a comment."""
    lines = text.splitlines(keepends=True)
    first = next((n for n, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("--")), len(lines))
    return "".join(lines[first:]).strip().rstrip(";").rstrip()


def check_name(name: str, line: int = 1) -> str:
    """Return `name` if a query, its file and its tool can have it. Raises `ValueError` for any other."""
    if not NAME.fullmatch(name):
        remedy = "Begin with a letter; then letters, digits, _ . -, 49 characters at most."
        raise _Wrong(line, f"a query cannot be named {name[:100]!r}", remedy)
    return name


def _check(key: str, value: str, line: int) -> str:
    if key == "name":
        return check_name(value, line)
    if key == "expose" and value != "tool":
        raise _Wrong(line, f"a query cannot be exposed as {value[:100]!r}", "Write `-- expose: tool`, or leave it out.")
    return value


def _parameter(value: str, line: int) -> Parameter:
    found = _PARAMETER.fullmatch(value)
    if not found:
        raise _Wrong(line, "this is not a parameter", 'Write `-- param: since date = 2026-01-01 "First day"`.')
    if found["type"] not in TYPES:
        near = nearest(found["type"], TYPES)
        known = f"Did you mean {near[0]}?" if near else f"Known: {', '.join(TYPES)}."
        raise _Wrong(line, f"there is no type {found['type']}", known)
    parameter = Parameter(found["name"], found["type"], description=_unescape(found["words"] or ""))
    return replace(parameter, default=_default(parameter, found["default"], line))


def _default(parameter: Parameter, written: str | None, line: int) -> Any:
    if written is None:
        return REQUIRED
    if written.lower() == "null":
        return None
    if written[0] == "'":
        raise _Wrong(line, f"the default of {parameter.name} is in single quotes", 'Write "..." around a text.')
    value: Any = _unescape(written[1:-1]) if written[0] == '"' else written
    try:
        return parameter.read(value)
    except ParameterError as error:
        raise _Wrong(line, f"the default of {error.message.rstrip('.')}") from None


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text)


def write(folder: Path, query: SavedQuery, exists: Callable[[str], bool]) -> Path:
    """Write a query as `NAME.sql`, atomically.

    Raises `ParameterError` if the name is taken, and `ConfigurationError` if the folder cannot be written.
    """
    path = folder / f"{query.name}.sql"
    if exists(query.name) or _is_taken(path.name, (each.name for each in folder.glob("*"))):
        raise ParameterError(f"A query is already named {query.name}.", suggestion="Choose another name.")
    try:
        create_private(path, f"{front_matter(query)}\n{query.sql}\n".encode())
    except FileExistsError:  # a file of that name was created meanwhile
        raise ParameterError(f"A query is already named {query.name}.", suggestion="Choose another name.") from None
    except OSError as error:
        raise ConfigurationError(
            f"server.queries_dir cannot be written ({error.strerror}).", suggestion="Tell the server's administrator."
        ) from None
    return path


def _is_taken(name: str, names: Iterable[str]) -> bool:
    """Return whether a name is taken, regardless of case: some file systems ignore it."""
    return name.lower() in {each.lower() for each in names}
