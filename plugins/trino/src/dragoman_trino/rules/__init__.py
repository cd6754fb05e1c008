"""What a query may use, as data.

policy.toml decides and gives reasons; functions.toml applies it to a live server's list.
"""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase, translate
from importlib.resources import files
from typing import Any

from dragoman import Rules

# Marks of Hive, Iceberg, Delta Lake and Hudi. A table of another name may contain the mark itself.
_ASPECT = re.compile(
    r"\$(?:properties|partitions|history|snapshots|metadata_log_entries|manifests|all_manifests|entries|all_entries"
    r"|files|refs|data|changes|transactions|timeline)(?:@\d+)?$",
    re.IGNORECASE,
)
Policy = Mapping[str, Any]
BUILTIN = "system.builtin."
"""Names that may stand before the engine's own functions."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The shipped lists. Names are in lower case.

    - `functions`: by plain name.
    - `tables`: matches dotted names of table functions.
    - `system`: matches schema and table of the open relations of the system catalog.
    - `closed`: matches schema and table of relations that are closed everywhere.
    - `substitutes`: what to write instead of a function of another database.
    """

    functions: frozenset[str]
    tables: re.Pattern[str]
    system: re.Pattern[str]
    closed: re.Pattern[str]
    substitutes: dict[str, str]


@functools.cache
def load_allowed() -> Allowed:
    """Return the shipped lists. They are read once."""
    policy, listed = read_policy(), _read("functions.toml")
    added = names(policy["forms"]) + names(policy["plugins"])
    return Allowed(
        functions=frozenset(word for words in listed.values() for word in words.split()).union(added),
        tables=_fitting(policy["tables"]),
        system=_fitting(policy["system"]),
        closed=_fitting(policy["closed"]),
        substitutes=read_substitutes(policy["substitutes"]),
    )


def rules() -> Rules:
    """Return the lists as the core's rules. Names without a schema mean the engine's own functions first."""
    lists = load_allowed()
    system = lists.system.pattern
    return Rules(
        # It reads a table that its arguments name.
        telling={"*.table_changes": ()},
        telling_path={"current_schema": (), "current_path": ()},
        telling_statements=(re.compile(r"show\s+(?:create|session|functions)\b.*", re.IGNORECASE | re.DOTALL),),
        aspect=_ASPECT,
        functions=lists.functions | {BUILTIN + name for name in lists.functions},
        substitutes=lists.substitutes,
        table_function_patterns=(re.compile(f"(?:{re.escape(BUILTIN)})?(?:{lists.tables.pattern})"),),
        refused_relations=(
            re.compile(rf"(?s:.*\.)?(?:{lists.closed.pattern})"),
            # Without a catalog, a function with an engine function's name is treated as that function.
            re.compile(rf"(?s:system\.(?!{system}).*|runtime\.(?!{system})[^.]*)"),
        ),
    )


def read_policy() -> Policy:
    """Return policy.toml."""
    return _read("policy.toml")


def names(groups: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the names, or patterns of names, of several groups."""
    return tuple(name for group in groups for name in group["names"].split())


def read_substitutes(groups: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return what to write instead of each function in the groups."""
    return {name: group["instead"] for group in groups for name in group["names"].split()}


def fits(name: str, wanted: Iterable[str]) -> bool:
    """Return whether a name matches one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)


def sort_out(policy: Policy, functions: Iterable[tuple[str, str, bool]]) -> dict[str, set[str]]:
    """Return which functions the policy allows, by kind.

    A function is given as name, kind and whether it is deterministic.

    The worst overload decides about a name.
    """
    changing, refused, geospatial = names(policy["changing"]), names(policy["refused"]), policy["geospatial"]
    kinds: dict[str, str] = {}
    doubtful: set[str] = set()
    for written, kind, deterministic in functions:
        name = written.lower()
        kinds[name] = "geospatial" if fits(name, geospatial["names"].split()) else kind
        if fits(name, refused) or not (deterministic or name in changing):
            doubtful.add(name)
    lists: dict[str, set[str]] = {}
    for name in kinds.keys() - doubtful:
        lists.setdefault(kinds[name], set()).add(name)
    return lists


def _fitting(groups: Iterable[Mapping[str, str]]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, names(groups))))


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files(__name__) / name).read_text(encoding="utf-8"))
