"""Variables that are no settings: those of other tools that name a database, and the switch of the hot path."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from dragoman.config.sources import Layer, Problem, problems_error
from dragoman.model import EnvironmentDatabase

ENVIRONMENTS = "dragoman.environment"
"""Group of entry points: functions that find a database in the environment. A function, not a hook of the plugin, since
plugins take long to import and a server that starts answers at once."""


def foreign_layers(environ: Mapping[str, str], folder: Path) -> Iterator[Layer]:
    """Yield the databases that variables of other tools name, as plugins find them. Raises `ConfigurationError`."""
    from importlib.metadata import entry_points  # only for those who have configured nothing

    for entry_point in sorted(entry_points(group=ENVIRONMENTS)):
        try:
            found: EnvironmentDatabase | None = entry_point.load()(environ)
        except Exception as error:  # a plugin's own code: what it says may repeat a value
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
    """Whether OpenTelemetry's variables name a collector and do not switch it off."""
    given = os.environ if environ is None else environ
    disabled = given.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and any(given.get(name) for name in _OTEL)


def wants_hot_path(environ: Mapping[str, str] | None = None) -> bool:
    """Whether calls may take the short way past the MCP SDK: yes, unless DRAGOMAN_HOT_PATH is off, 0, no or false."""
    given = (os.environ if environ is None else environ).get("DRAGOMAN_HOT_PATH", "on")
    return given.strip().lower() not in ("off", "0", "no", "false")
