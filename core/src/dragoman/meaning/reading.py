"""Reads the files of `knowledge.files`, each according to its kind. Errors name the file and the line."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.errors import ConfigurationError
from dragoman.meaning.values import Meaning, WrongFile
from dragoman.model import Database
from dragoman.text_files import read_text

MAX_BYTES: Final = 256 * 1024 * 1024
"""The most bytes of one file: manifests of large dbt projects have tens of megabytes."""
KNOWN: Final = (
    "A knowledge file is markdown (.md), dbt's manifest.json, catalog.json or semantic_manifest.json, or Ossie."
)


def read_meaning(database: Database) -> Meaning:
    """Return the contents of a database's files. Raises `ConfigurationError`, which names every wrong file and line."""
    problems: list[str] = []
    parts: list[Meaning] = []
    remedy = ""
    for path in database.knowledge.files:
        try:
            parts.append(read_file(database.folder / path))
        except WrongFile as wrong:
            problems.append(f"{path.name}:{wrong.line}: {wrong.message}")
            remedy = remedy or wrong.remedy
    if problems:
        raise ConfigurationError(
            f"databases.{database.name}.knowledge.files: {'; '.join(problems)}.",
            suggestion=remedy or "Correct the files.",
        )
    return Meaning.join(parts)


def stamps(database: Database) -> tuple[object, ...]:
    """Return what tells a database's present files from other ones: their times, sizes and numbers."""
    return tuple(_stamp(database.folder / path) for path in database.knowledge.files)


def _stamp(path: Path) -> object:
    try:
        state = path.stat()
    except OSError:
        return None
    return state.st_mtime_ns, state.st_size, state.st_ino


def read_file(path: Path) -> Meaning:
    """Return the contents of one file. Raises `WrongFile`."""
    # The parsers are imported only if there are files.
    from dragoman.meaning import markdown, ossie

    readers = {".md": markdown.read, ".json": _read_json, ".yaml": ossie.read_yaml, ".yml": ossie.read_yaml}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise WrongFile(1, "the kind of the file is not known", KNOWN)
    try:
        return read(_text(path), path.name)
    except RecursionError:
        raise WrongFile(1, "the file is nested too deeply") from None


def _text(path: Path) -> str:
    try:
        return read_text(path, MAX_BYTES)
    except OSError as error:
        raise WrongFile(1, f"the file cannot be read ({error.strerror})", "Correct knowledge.files.") from None
    except ValueError as wrong:
        raise WrongFile(1, str(wrong)) from None


def _read_json(text: str, name: str) -> Meaning:
    from dragoman.meaning import dbt, ossie

    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise WrongFile(_line(text, error), f"this is not JSON: {error}") from None
    kinds: Sequence[tuple[Callable[[Any], bool], Callable[[Any, str], Meaning]]] = (
        (dbt.is_manifest, dbt.read_manifest),
        (dbt.is_catalog, dbt.read_catalog),
        (dbt.is_semantic, dbt.read_semantic),
        (ossie.is_model, ossie.read),
    )
    for fits, read in kinds if isinstance(document, dict) else ():
        if fits(document):  # pyright: ignore[reportUnknownArgumentType]
            try:
                return read(document, name)
            except msgspec.ValidationError as error:
                raise WrongFile(1, str(error).rstrip(".")) from None
    raise WrongFile(1, "the kind of the file is not known", KNOWN)


def _line(text: str, error: msgspec.DecodeError) -> int:
    """Return the line of an error, as far as the error shows its byte."""
    position = str(error).rpartition("(byte ")[2].rstrip(")")
    end = int(position) if position.isdigit() else len(text.encode())
    return text.encode()[:end].count(b"\n") + 1
