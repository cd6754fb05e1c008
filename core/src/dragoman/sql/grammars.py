"""The SQL dialects that sqlglot reads, listed without importing it where possible."""

from __future__ import annotations

import functools
import importlib.util
from pathlib import Path
from typing import Final

from dragoman.words import nearest

_NONE: Final = frozenset({"__init__", "dialect"})


def sqlglot_reads(name: str) -> bool:
    """Return whether sqlglot knows a dialect by this name, of its own or registered by another package."""
    if name in _own():
        return True
    from sqlglot.dialects.dialect import Dialect  # slow, and only for names that sqlglot does not ship

    try:
        Dialect.get_or_raise(name)
    except ValueError:
        return False
    return True


def near_grammar(name: str) -> str | None:
    """Return the name of a sqlglot dialect that `name` may be a misspelling of, or None."""
    return next(iter(nearest(name.lower(), _own())), None)


@functools.cache
def _own() -> frozenset[str]:
    """Return the names of sqlglot's own dialects. Each is a module of its own, compiled or not."""
    found = importlib.util.find_spec("sqlglot")
    folders = found.submodule_search_locations if found else None
    files = [file for folder in folders or () for file in (Path(folder) / "dialects").iterdir()]
    return frozenset(file.name.partition(".")[0] for file in files if file.suffix in {".py", ".so", ".pyd"}) - _NONE
