"""The list of formats, and the one function that writes any of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol

from dragoman.errors import ParameterError, Unsupported
from dragoman.words import nearest

if TYPE_CHECKING:
    from dragoman.model import Column

Rows = Sequence[Sequence[Any]]


class Source(Protocol):
    """Rows as JSON values, in batches. They can be read repeatedly."""

    def __call__(self) -> Iterable[Rows]: ...


Write = Callable[[Path, Sequence["Column"], Source], tuple[str, ...]]
"""Writes a file; returns notices about values that the format could not represent unchanged."""

FORMATS: Final[Mapping[str, str]] = {
    "csv": "dragoman.exports.text",
    "jsonl": "dragoman.exports.text",
    "parquet": "dragoman.exports.arrow",
    "arrow": "dragoman.exports.arrow",
    "xlsx": "dragoman.exports.xlsx",
    "svg": "dragoman.exports.charts",
    "png": "dragoman.exports.charts",
}
"""The module that writes each format, in a function `write_FORMAT`."""
MEDIA_TYPES: Final[Mapping[str, str]] = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/jsonl",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.file",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "svg": "image/svg+xml",
    "png": "image/png",
}
TEXTS: Final = ("csv", "jsonl", "svg")
"""Formats whose files are text, in UTF-8."""
READ_TWICE: Final = ("parquet", "arrow")
"""Formats that need to read all rows once before writing, to find each column's type."""
PICTURES: Final = ("svg", "png")
CHARTS: Final = ("bar", "line", "scatter", "histogram")
"""The charts that a picture may show. Without one, the columns decide."""
_LIBRARIES: Final = {
    "parquet": ("pyarrow", "export"),
    "arrow": ("pyarrow", "export"),
    "xlsx": ("xlsxwriter", "export"),
    "svg": ("vl_convert", "charts"),
    "png": ("vl_convert", "charts"),
}
"""The module that a format needs, and the extra that installs it."""


def format_of(path: Path, given: str | None = None) -> str:
    """Return the format: the given one, else the one of the file's suffix. Raises `ParameterError`."""
    name = given or path.suffix.lower().lstrip(".")
    if name in FORMATS:
        return name
    near = nearest(name, FORMATS)
    known = f"Did you mean {near[0]}?" if near else f"Choose from {', '.join(FORMATS)}."
    raise ParameterError(f"There is no format {name!r}.", suggestion=known)


def working_folder(path: Path) -> Path:
    """Return the folder beside a file where a format may keep temporary files. It is removed after writing."""
    return path.with_name(f"{path.name}.work")


def export(
    path: Path,
    form: str,
    columns: Sequence[Column],
    source: Source,
    chart: str | None = None,
    *,
    check: Callable[[], None] = lambda: None,
) -> tuple[str, ...]:
    """Write rows to a file, in bounded memory, and return notices. Blocks: call it in a thread.

    `chart`: one of `CHARTS`, for a picture. `check` is called while it is drawn; an exception of it ends the drawing.
    Raises `Unsupported` if the library of the format is not installed or if there is no column, `ResultTooLarge` for
    more rows than a sheet holds, `ParameterError` for a chart that cannot show these columns, and `OSError`.
    """
    if not columns:  # most formats would lose the rows, and few readers read such a file
        raise Unsupported(
            "No file holds rows without a column.", suggestion="Name a column in the query, or use count(*)."
        )
    if chart is not None and form not in PICTURES:
        raise ParameterError("Only a picture has a chart.", suggestion="Choose the format svg or png.")
    try:
        module = importlib.import_module(FORMATS[form])
    except ModuleNotFoundError as missing:
        library, extra = _LIBRARIES.get(form, ("", ""))
        if missing.name != library:
            raise
        raise Unsupported(
            f"{form} needs {missing.name}, which is not installed.",
            suggestion=f"Install dragoman[{extra}], or export csv or jsonl.",
        ) from None
    write: Write = getattr(module, f"write_{form}")
    write = partial(write, **{"chart": chart, "check": check}) if form in PICTURES else write
    return write(path, columns, source)
