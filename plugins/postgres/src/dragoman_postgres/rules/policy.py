"""policy.toml, read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from typing import Any

Policy = Mapping[str, Any]


def read_policy() -> Policy:
    """Return policy.toml."""
    return tomllib.loads((files("dragoman_postgres.rules") / "policy.toml").read_text(encoding="utf-8"))


def patterns(groups: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the patterns of several groups of names."""
    return tuple(name for group in groups for name in group["names"].split())


def fits(name: str, wanted: Iterable[str]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)
