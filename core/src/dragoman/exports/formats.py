"""Which formats there are, and the one function that writes any of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from dragoman.errors import ParameterError, Unsupported
from dragoman.model import Column
from dragoman.words import nearest

Rows = Sequence[Sequence[Any]]


class Source(Protocol):
    """Rows as JSON values, in batches, as often as they are asked for."""

    def __call__(self) -> Iterable[Rows]: ...


Write = Callable[[Path, Sequence[Column], Source], tuple[str, ...]]
"""Writes a file; returns notices: what the format could not carry as it was."""

FORMATS: Final[Mapping[str, str]] = {
    "csv": "dragoman.exports.text",
    "jsonl": "dragoman.exports.text",
    "parquet": "dragoman.exports.arrow",
    "arrow": "dragoman.exports.arrow",
    "xlsx": "dragoman.exports.xlsx",
}
"""The module that writes each format, in a function `write_FORMAT`."""
_LIBRARIES: Final = {"parquet": "pyarrow", "arrow": "pyarrow", "xlsx": "xlsxwriter"}


def format_of(path: Path, given: str | None = None) -> str:
    """Return the format meant: the one given, else by the file's suffix. Raises `ParameterError`."""
    name = given or path.suffix.lower().lstrip(".")
    if name in FORMATS:
        return name
    near = nearest(name, FORMATS)
    known = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(FORMATS)}."
    raise ParameterError(f"There is no format {name!r}.", suggestion=known)


def export(path: Path, form: str, columns: Sequence[Column], source: Source) -> tuple[str, ...]:
    """Write rows to a file, in bounded memory, and return notices. Blocks: call it in a thread.

    Raises `Unsupported` when the library of the format is not installed, `ResultTooLarge` for more rows than a sheet
    holds, and `OSError`.
    """
    try:
        module = importlib.import_module(FORMATS[form])
    except ModuleNotFoundError as missing:
        if missing.name != _LIBRARIES.get(form):
            raise
        raise Unsupported(
            f"{form} needs {missing.name}, which is not installed.",
            suggestion="Install dragoman[export], or export csv or jsonl.",
        ) from None
    write: Write = getattr(module, f"write_{form}")
    return write(path, columns, source)
