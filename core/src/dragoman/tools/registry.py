"""The tools that a server offers: the ten of `standard`, the toolsets, and the words that choose among them.

Every session of every agent pays for every byte of a tool, so descriptions do not repeat what a schema says.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dragoman.errors import ConfigurationError
from dragoman.tools import admin, ask, knowledge, results, saved
from dragoman.tools.spec import MAX_NAMED, Spec, Tool
from dragoman.tools.standard import SPECS as STANDARD
from dragoman.words import nearest

if TYPE_CHECKING:
    from dragoman.access import Access
    from dragoman.config import Configuration
    from dragoman.model import Principal

Offer = Callable[["Configuration"], Sequence[Spec]]
"""Returns the tools of a toolset under a configuration; none if it is not configured."""

TOOLSETS: dict[str, Offer] = {
    "knowledge": knowledge.offer,
    "results": results.offer,
    "saved": saved.offer,
    "ask": ask.offer,
    "admin": admin.offer,
}
"""The toolsets beside `standard`, by name. A toolset that is not configured offers nothing and is not listed."""

EXCLUDED_FROM_FULL = ("admin",)
PROFILES: dict[str, tuple[str, ...]] = {
    "minimal": ("list_databases", "search_catalog", "describe_table", "execute_query"),
    "standard": tuple(spec.name for spec in STANDARD),
}
_FULL = ("standard", *(name for name in TOOLSETS if name not in EXCLUDED_FROM_FULL))


def choose(words: str | Sequence[str], configuration: Configuration, key: str = "server.tools") -> tuple[Spec, ...]:
    """Return the tools that profiles, toolsets and names choose. Raises `ConfigurationError`, which names `key`."""
    offered = {name: tuple(offer(configuration)) for name, offer in TOOLSETS.items()}
    known = {spec.name: spec for spec in (*STANDARD, *(spec for specs in offered.values() for spec in specs))}
    sets = {**PROFILES, **{name: tuple(spec.name for spec in specs) for name, specs in offered.items()}}
    names = {name for word in _words(words) for name in _expand(word, sets, known, key)}
    return tuple(spec for name, spec in known.items() if name in names)


def _words(words: str | Sequence[str]) -> Sequence[str]:
    given = (words,) if isinstance(words, str) else words
    return [part for word in given for part in (_FULL if word == "full" else (word,))]


def _expand(word: str, sets: Mapping[str, Sequence[str]], known: Mapping[str, Spec], key: str) -> Sequence[str]:
    if word in sets:
        return sets[word]
    if word in known:
        return (word,)
    choices = ("full", *sets, *known)
    close = nearest(word, choices, 1, 0.5)
    remedy = f"Did you mean {close[0]!r}?" if close else f"Known: {', '.join(choices)}."
    raise ConfigurationError(f"{key}: there is no profile, toolset or tool {word!r}.", suggestion=remedy)


@dataclass(frozen=True, slots=True)
class Shown:
    """What a model sees of a server: the tools, and the instructions before any call."""

    specs: tuple[Spec, ...]
    tools: tuple[Tool, ...]
    instructions: str


def show(
    configuration: Configuration,
    profile: str | Sequence[str],
    result_format: str,
    access: Access | None = None,
) -> Shown:
    """Return what a server with these databases shows. `access`: what the viewer may do; None: everything.

    Raises `ConfigurationError` for an unknown word in `profile`.
    """
    specs, databases, default = choose(profile, configuration), configuration.databases, default_of(configuration)
    if access is not None:
        specs = tuple(_usable(specs, access, configuration))
    structured, offered = result_format != "text", {spec.name for spec in specs}
    tools = tuple(spec.tool(list(databases), default, structured=structured, offered=offered) for spec in specs)
    return Shown(specs, tools, instructions(specs, [(name, each.dialect) for name, each in databases.items()]))


def _usable(specs: Sequence[Spec], access: Access, configuration: Configuration) -> Iterator[Spec]:
    """Yield the tools that somebody may use; administrators' tools only if a role lists them."""
    listed = choose(access.listed, configuration)
    for spec in specs:
        if spec in listed or (access.tools is None and spec.name not in admin.NAMES):
            yield spec


def show_to(
    principal: Principal, configuration: Configuration, profile: str | Sequence[str], result_format: str
) -> Shown:
    """Return what a server shows to a principal: the tools it may use, and the databases it may read something of."""
    if _is_open(configuration):
        return show(configuration, profile, result_format)
    from dragoman.access import Roles, act_for, delegations, narrow

    roles = Roles(configuration)
    access = roles.of(principal) if roles else None
    acting = act_for(delegations(configuration), principal, access.names if access else ())
    names = configuration.databases if access is None else access.databases
    mine = narrow(configuration, [name for name in names if acting.get(name, True)])
    return show(mine if access or acting else configuration, profile, result_format, access)


def _is_open(configuration: Configuration) -> bool:
    """Return whether every caller sees the same: there are no roles, and no engine applies the rights of callers."""
    return not configuration.roles and all(each.identity == "gateway" for each in configuration.databases.values())


def allows(access: Access | None, configuration: Configuration, tool: str) -> bool:
    """Return whether callers may use a tool of ours, as far as their roles say. `access` None: everybody may.

    Reads no file: saved queries that are tools are none of ours.
    """
    words = None if access is None else access.tools
    return words is None or any(tool in _of_ours(word, configuration) for word in _words(words))


def _of_ours(word: str, configuration: Configuration) -> Collection[str]:
    """Return the tools of ours that a profile, toolset or name chooses."""
    if word in PROFILES:
        return PROFILES[word]
    if word in TOOLSETS:
        offer = saved.offer_ours if word == "saved" else TOOLSETS[word]
        return [spec.name for spec in offer(configuration)]
    return (word,)


def check_roles(configuration: Configuration) -> None:
    """Raise `ConfigurationError` for a role whose `tools` names an unknown tool, with file and key."""
    for role in configuration.roles.values():
        key = f"roles.{role.name}.tools"
        file = configuration.sources.get(key)
        choose(role.tools or (), configuration, f"{file}: {key}" if file else key)


def default_of(configuration: Configuration) -> str | None:
    """Return the database of a call that names none: the configured default, or the only one."""
    names = list(configuration.databases)
    return configuration.default_database or (names[0] if len(names) == 1 else None)


def instructions(specs: Sequence[Spec], databases: Sequence[tuple[str, str]]) -> str:
    """Return the instructions for a model: the databases with their dialects, and the way to work."""
    listed = ", ".join(f"{name} ({dialect})" for name, dialect in databases)
    where = f"Databases: {listed}." if 0 < len(databases) <= MAX_NAMED else "Databases: see list_databases."
    steps = {
        "search_catalog": "find tables with search_catalog",
        "describe_table": "read columns with describe_table",
        "execute_query": "then execute_query",
    }
    way = ", ".join(words for name, words in steps.items() if name in {spec.name for spec in specs})
    return f"Read-only SQL. {where} {way[:1].upper()}{way[1:]}{'.' if way else ''}".strip()
