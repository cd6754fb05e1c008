"""What holds for every test of the workspace: examples of property tests, and the lanes tests run in."""

import inspect
import os
import re
from functools import cache
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
SERVERS = frozenset({"server", "trino_server", "database_name"})
"""Fixtures that start a server, by a function of their own."""
STARTS = re.compile(r"\bServer\.start\(|(?<!asyncio\.)\bstart_server\(|\bshared_server\(")
"""What starts a server, in the text of a test or a fixture."""
LONGER = frozenset(
    {
        "test_ci.py",
        "test_conformance.py",
        "test_deadline.py",
        "test_demo.py",
        "test_new_dialect.py",
        "test_offload.py",
        "test_processes.py",
        "test_running.py",
        "test_shapes.py",
        "test_work.py",
    }
)
"""Modules that need no server and yet more than a moment: they start programs, or wait for a deadline."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is fast."""
    for item in items:
        if not {mark.name for mark in item.iter_markers()} & {"full", "nightly"} and _is_fast(item):
            item.add_marker("fast")


def _is_fast(item: pytest.Item) -> bool:
    place = item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""
    return place.startswith(FAST) and item.path.name not in LONGER and not _needs_server(item)


def _needs_server(item: pytest.Item) -> bool:
    if set(getattr(item, "fixturenames", ())) & SERVERS:
        return True
    info = getattr(item, "_fixtureinfo", None)
    fixtures = [each.func for found in info.name2fixturedefs.values() for each in found] if info else []
    return any(map(_starts_server, [getattr(item, "function", None), *fixtures]))


@cache
def _starts_server(function: object) -> bool:
    try:
        return STARTS.search(inspect.getsource(function)) is not None  # type: ignore[arg-type]
    except (OSError, TypeError):  # it has no text, as what pytest makes
        return False
