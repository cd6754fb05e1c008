"""Environment variables that are not settings: those of other tools that name a database.

Also the switch of the hot path, and whether telemetry is wanted.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.config.sources import Layer, Problem, problems_error
from dragoman.model import EnvironmentDatabase

ENVIRONMENTS = "dragoman.environment"
"""The group of entry points whose functions find a database in the environment.

They are functions, not a hook of the plugin: plugins take long to import, and a starting server answers at once.
"""


def foreign_layers(environ: Mapping[str, str], folder: Path) -> Iterator[Layer]:
    """Yield the databases that variables of other tools name, as plugins find them. Raises `ConfigurationError`."""
    from importlib.metadata import entry_points  # only if nothing is configured

    for entry_point in sorted(entry_points(group=ENVIRONMENTS)):
        try:
            found: EnvironmentDatabase | None = entry_point.load()(environ)
        except Exception as error:  # a plugin's own code, whose message may repeat a value
            owner = entry_point.dist.name if entry_point.dist else entry_point.value
            message = f"{owner} failed to read the variables of {entry_point.name} ({type(error).__name__})"
            problem = Problem(
                "environment", "databases", message, "Name a database, or report it to the plugin's authors."
            )
            raise problems_error([problem]) from None
        if found:
            names = {("databases", found.name, *key): variable for key, variable in found.variables.items()}
            yield Layer("environment", {"databases": {found.name: found.values}}, folder, names)


_OTEL = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")


def wants_telemetry(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether OpenTelemetry's variables name a collector and do not switch it off."""
    given = os.environ if environ is None else environ
    disabled = given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(given.get(name) for name in _OTEL)


def wants_hot_path(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether calls may bypass the MCP SDK: True, unless DRAGOMAN_HOT_PATH is off, 0, no or false."""
    given = (os.environ if environ is None else environ).get("DRAGOMAN_HOT_PATH", "on")
    return given.strip().lower() not in ("off", "0", "no", "false")
