"""Merges the sources of a configuration, and remembers where each value came from."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dragoman.config.keys import CONNECTION
from dragoman.config.readers import is_mapping
from dragoman.config.sources import KeyPath, Layer, Problem, interpolate
from dragoman.config.state import grants_of, read_state, settings_of
from dragoman.config.urls import split_name, split_url
from dragoman.errors import ConfigurationError

STATE = "server.state_dir"
"""The source of changes that administrators made while the server ran."""


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The place of a value: its source, its key as written there, and the folder that its paths are relative to."""

    file: str
    key: str
    folder: Path


class Merge:
    """The merged values, where each of them came from, and the problems so far."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.origins: dict[KeyPath, Origin] = {}
        self.problems: list[Problem] = []
        self.warnings: list[str] = []
        self.variables: list[str] = []
        self.secrets: list[KeyPath] = []

    def add(self, layer: Layer) -> None:
        """Merge a stronger source into the values."""
        self.variables += layer.names.values()
        self._merge(self.values, layer.values, (), (), layer)

    def _merge(
        self, into: dict[str, Any], values: Mapping[str, Any], path: KeyPath, written: KeyPath, layer: Layer
    ) -> None:
        if "url" in values and path[:1] == ("databases",):
            for part in CONNECTION:
                into.pop(part, None)
        for name, value in values.items():
            own = _same_name(name, into) if path == ("databases",) else name
            here, there = (*path, own), (*written, name)
            origin = Origin(layer.origin, layer.spell(there), layer.folder)
            if is_mapping(value):
                if not isinstance(into.get(own), dict):
                    into[own] = {}
                self.origins.setdefault(here, origin)
                self._merge(into[own], value, here, there, layer)
            else:
                into[own] = value
                self.origins[here] = origin

    def add_urls(self, urls: Iterable[str], origin: str, folder: Path) -> None:
        """Merge `[NAME=]URL` texts into the values. Two URLs with the same name are a problem."""
        given: set[str] = set()
        for place in urls:
            try:
                name, url = split_name(place)
                own = name or split_url(url).name
            except ConfigurationError as error:
                self.problems.append(Problem(origin, "URL", error.message.rstrip("."), error.suggestion))
                continue
            taken = own in given or (name is None and own in self.values.get("databases", {}))
            if taken:
                remedy = (
                    f"Give this one a name of its own: NAME=URL, for example {own}_2={url.partition('://')[0]}://..."
                )
                self.problems.append(Problem(origin, own, "a second database of that name", remedy))
                continue
            given.add(own)
            self.add(Layer(origin, {"databases": {own: {"url": url}}}, folder))

    def add_state(self, known: Mapping[str, str]) -> None:
        """Merge the changes of administrators into the values: databases, and the grants that come with them."""
        path = ("server", "state_dir")
        server = self.values.get("server")
        written = server.get("state_dir") if is_mapping(server) else None
        if not isinstance(written, str) or not written:
            return
        folder = self.path_of(path, written)
        state = {name: kept for name, kept in read_state(folder).items() if self._is_somewhere(name, kept)}
        kept = Layer(STATE, {"databases": settings_of(state)}, self.origins[path].folder)
        interpolated = interpolate(kept, known)
        self.problems += interpolated.problems
        self.secrets += interpolated.secrets
        self.add(interpolated.layer)
        given = self.values.get("roles")
        roles: Mapping[str, Any] = given if is_mapping(given) else {}
        for role, grants in grants_of(state).items():
            if role in roles:
                roles[role]["grants"] = [*roles[role].get("grants", ()), *grants]
                self.origins.setdefault(("roles", role, "grants"), Origin(STATE, f"roles.{role}.grants", folder))
            elif roles:
                self._leave_out(f"roles.{role}", "the databases that they gave it")
            else:  # without roles everybody would see what they gave to a few
                remedy = "Configure the role, or remove its databases from databases.json in that folder."
                self.problems.append(Problem(STATE, f"roles.{role}", "no such role is configured", remedy))

    def _is_somewhere(self, name: str, kept: Mapping[str, Any]) -> bool:
        """Return whether a changed database has an address, which is in the change or in an earlier source."""
        known = self.values.get("databases")
        found = "url" in kept["settings"] or (is_mapping(known) and name in known)
        if not found:
            self._leave_out(f"databases.{name}", "what they changed of it")
        return found

    def _leave_out(self, key: str, what: str) -> None:
        """Warn of a change to what nobody configures any more. It keeps nothing else from being applied."""
        self.warnings.append(f"{STATE}: {key} is configured no longer, so {what} is left out.")

    def path_of(self, path: KeyPath, written: str) -> Path:
        """Return a path, made relative to the folder of its source."""
        return (self.origins[path].folder / os.path.expanduser(written)).absolute()


def _same_name(name: str, databases: Mapping[str, Any]) -> str:
    """Return a database's name as the file has it. A variable cannot spell the `-` of `my-shop`."""
    return next((known for known in databases if known.replace("-", "_") == name.replace("-", "_")), name)
