"""Turns files, environment and command line into values. No other package reads settings from the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.config.loading import load
from dragoman.config.settings import Audit, Auth, Configuration, ModelSettings, Results, Server, StaticToken
from dragoman.config.urls import ALIASES, is_path, parse_named, parse_url, split_name
from dragoman.config.variables import wants_hot_path, wants_telemetry
from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.config.showing import STARTER, show
    from dragoman.config.state import State, lock_state, read_state, suppose, write_state

__all__ = [
    "ALIASES",
    "STARTER",
    "Audit",
    "Auth",
    "Configuration",
    "ModelSettings",
    "Results",
    "Server",
    "State",
    "StaticToken",
    "is_path",
    "load",
    "lock_state",
    "parse_named",
    "parse_url",
    "read_state",
    "show",
    "split_name",
    "suppose",
    "wants_hot_path",
    "wants_telemetry",
    "write_state",
]


_HOMES = {
    "STARTER": "showing",
    "State": "state",
    "lock_state": "state",
    "read_state": "state",
    "show": "showing",
    "suppose": "state",
    "write_state": "state",
}
"""Names that load on first use, so that a server starts faster: each belongs to a few commands."""

__getattr__ = load_names(__name__, _HOMES)
