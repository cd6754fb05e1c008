"""Names as SQL."""

from __future__ import annotations


def quote_name(name: str) -> str:
    """Return a name as SQL, always in quotes."""
    return '"' + name.replace('"', '""') + '"'
