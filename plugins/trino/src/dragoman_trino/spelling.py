"""The spelling of types, in the catalog and in results."""

from __future__ import annotations

import re

# First the parts that must not change: the quoted names of a row's fields.
_TOKEN = re.compile(
    r'"(?:[^"]|"")*"'
    r"|\b(?P<text>varchar|char)\(\d+\)"
    r"|\b(?P<time>timestamp|time)\(3\)"
    r"|\bdecimal\((?P<digits>\d+), ?(?P<scale>\d+)\)"
)


def short_type(told: str) -> str:
    """Return a type in the shortest spelling that the server accepts, texts without their length."""
    return _TOKEN.sub(_short, told)


def _short(match: re.Match[str]) -> str:
    if match["digits"]:
        return f"decimal({match['digits']},{match['scale']})"
    return match["text"] or match["time"] or match[0]
