"""What a query may use, as data: policy.toml says it and why, functions.toml is what it makes of a live server."""

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

# Of Hive, Iceberg, Delta Lake and Hudi. A table of another name may hold the mark itself.
_ASPECT = re.compile(
    r"\$(?:properties|partitions|history|snapshots|metadata_log_entries|manifests|all_manifests|entries|all_entries"
    r"|files|refs|data|changes|transactions|timeline)(?:@\d+)?$",
    re.IGNORECASE,
)
Policy = Mapping[str, Any]
BUILTIN = "system.builtin."
"""What may stand before the engine's own functions."""


@dataclass(frozen=True, slots=True)
class Allowed:
    """The shipped lists; names are lower case.

    `functions`: by plain name. `tables`: fits dotted names of table functions. `system`: fits schema and table of the
    relations of the system catalog that are open. `closed`: fits schema and table of what is closed everywhere.
    """

    functions: frozenset[str]
    tables: re.Pattern[str]
    system: re.Pattern[str]
    closed: re.Pattern[str]


@functools.cache
def load_allowed() -> Allowed:
    """Return the shipped lists, read once."""
    policy, listed = read_policy(), _read("functions.toml")
    added = names(policy["forms"]) + names(policy["plugins"])
    return Allowed(
        functions=frozenset(word for words in listed.values() for word in words.split()).union(added),
        tables=_fitting(policy["tables"]),
        system=_fitting(policy["system"]),
        closed=_fitting(policy["closed"]),
    )


def rules() -> Rules:
    """Return the lists as the core's rules. Names without a schema mean the engine's own first."""
    lists = load_allowed()
    system = lists.system.pattern
    return Rules(
        # It reads a table that its arguments name.
        telling={"*.table_changes": ()},
        telling_statements=(re.compile(r"show\s+(?:create|session|functions)\b.*", re.IGNORECASE | re.DOTALL),),
        aspect=_ASPECT,
        functions=lists.functions | {BUILTIN + name for name in lists.functions},
        table_function_patterns=(re.compile(f"(?:{re.escape(BUILTIN)})?(?:{lists.tables.pattern})"),),
        refused_relations=(
            re.compile(rf"(?s:.*\.)?(?:{lists.closed.pattern})"),
            # With no catalog to be in, what is called as the engine's own is taken for it.
            re.compile(rf"(?s:system\.(?!{system}).*|runtime\.(?!{system})[^.]*)"),
        ),
    )


def read_policy() -> Policy:
    """Return policy.toml."""
    return _read("policy.toml")


def names(groups: Iterable[Mapping[str, str]]) -> tuple[str, ...]:
    """Return the names, or patterns of names, of several groups."""
    return tuple(name for group in groups for name in group["names"].split())


def fits(name: str, wanted: Iterable[str]) -> bool:
    """Whether a name fits one of the patterns."""
    return any(fnmatchcase(name, pattern) for pattern in wanted)


def sort_out(policy: Policy, functions: Iterable[tuple[str, str, bool]]) -> dict[str, set[str]]:
    """Return what the policy lets pass of functions given as name, kind and whether they are deterministic, by kind.

    A name is as doubtful as its worst overload.
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
