"""What holds for every test of the workspace: examples of property tests, and the lanes tests run in."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ["pytester"]

# A run that decides whether a change lands must not depend on chance; everybody else's runs look for new cases.
settings.register_profile("dragoman", derandomize="CI" in os.environ, deadline=None)
settings.register_profile("nightly", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dragoman"))

ROOT = Path(__file__).parent
FAST = (
    "core/tests",
    "ask/tests",
    "plugins/duckdb/tests",
    "plugins/postgres/tests",
    "plugins/sqlite/tests",
    "plugins/trino/tests",
    "tests/docs",
)
"""Where fast tests may be; elsewhere programs are started and packages are built."""
SERVERS = frozenset({"server", "trino_server", "secure_port", "database_name"})
"""Fixtures that start a server."""
LONGER = frozenset(
    {"test_shapes.py", "test_demo.py", "test_processes.py", "test_new_dialect.py", "test_conformance.py"}
)
"""Modules that need no server and yet more than a moment."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is fast."""
    for item in items:
        if not {mark.name for mark in item.iter_markers()} & {"full", "nightly"} and _is_fast(item):
            item.add_marker("fast")


def _is_fast(item: pytest.Item) -> bool:
    place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    fixtures = set(getattr(item, "fixturenames", ()))
    return place.startswith(FAST) and item.path.name not in LONGER and not fixtures & SERVERS
