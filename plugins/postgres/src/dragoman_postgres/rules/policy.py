"""Reads policy.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import cache
from importlib.resources import files
from typing import Any

Policy = Mapping[str, Any]


def read_policy() -> Policy:
    """Return policy.toml."""
    return tomllib.loads((files("dragoman_postgres.rules") / "policy.toml").read_text(encoding="utf-8"))


def patterns(groups: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the patterns of several groups of names."""
    return tuple(name for group in groups for name in group["names"].split())


def read_substitutes(groups: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what to write instead of each function in the groups."""
    return {name: group["instead"] for group in groups for name in group["names"].split()}


def fits(name: str, wanted: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns."""
    return _one_of(tuple(wanted)).match(name) is not None


@cache
def _one_of(wanted: tuple[str, ...]) -> re.Pattern[str]:
    """Return one expression for many patterns: a server's three thousand functions are matched on the event loop."""
    return re.compile("|".join(map(translate, wanted)) or "(?!)")
