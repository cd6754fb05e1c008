"""Files, environment and command line become values here. The only reader of the environment."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from dragoman.config.loading import load
from dragoman.config.settings import Audit, Auth, Configuration, ModelSettings, Results, Server, StaticToken
from dragoman.config.state import State, read_state, write_state
from dragoman.config.urls import is_path, parse_named, parse_url, split_name
from dragoman.config.variables import wants_hot_path, wants_telemetry

if TYPE_CHECKING:
    from dragoman.config.showing import STARTER, show

__all__ = [
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
    "parse_named",
    "parse_url",
    "read_state",
    "show",
    "split_name",
    "wants_hot_path",
    "wants_telemetry",
    "write_state",
]


def __getattr__(name: str) -> Any:
    # Showing is what one command does; a server that starts need not wait for it.
    if name in ("STARTER", "show"):
        return getattr(importlib.import_module("dragoman.config.showing"), name)
    raise AttributeError(f"module 'dragoman.config' has no attribute {name!r}")
