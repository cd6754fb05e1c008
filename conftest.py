"""What holds for every test of the workspace: examples of property tests, and the lanes tests run in."""

import asyncio
import inspect
import os
import pickle
import re
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from dragoman.errors import DragomanError
from dragoman.gateway import gateway, hints, offload
from hypothesis import settings
from xdist.scheduler import LoadFileScheduling

pytest_plugins = ["pytester"]

# A run that decides whether a change lands must not depend on chance; everybody else's runs look for new cases.
settings.register_profile("dragoman", derandomize="CI" in os.environ, deadline=None)
settings.register_profile("nightly", max_examples=2_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dragoman"))

ROOT = Path(__file__).parent
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    # Without bytecode each of the many programs that tests start would compile all of our source again. The tree that
    # shall have none stays clean.
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = str(ROOT / ".pytest_cache" / "bytecode")
    sys.dont_write_bytecode = False
FAST = (
    "core/tests",
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
        "test_duckdb.py",
        "test_memory.py",
        "test_metrics_page.py",
        "test_new_dialect.py",
        "test_offload.py",
        "test_processes.py",
        "test_proxy_pages.py",
        "test_running.py",
        "test_scaling_page.py",
        "test_shapes.py",
        "test_terminal.py",
        "test_work.py",
    }
)
"""Modules that need no server and yet seconds: they start programs, write large files, or wait for deadlines."""


LONG = frozenset(
    {
        "plugins/duckdb/tests/test_hidden_types.py",
        "plugins/duckdb/tests/test_macros.py",
        "plugins/duckdb/tests/test_reading.py",
        "plugins/postgres/tests/test_channels.py",
        "plugins/postgres/tests/test_delegation.py",
        "plugins/postgres/tests/test_gate_live.py",
        "plugins/postgres/tests/test_names.py",
        "plugins/postgres/tests/test_parts.py",
        "plugins/postgres/tests/test_places.py",
        "plugins/postgres/tests/test_plantings.py",
        "plugins/postgres/tests/test_roles.py",
        "plugins/postgres/tests/test_visible.py",
        "plugins/trino/tests/test_channels.py",
        "plugins/trino/tests/test_conformance.py",
        "plugins/trino/tests/test_gate_differential.py",
        "plugins/trino/tests/test_gate_live.py",
        "plugins/trino/tests/test_parts.py",
        "plugins/trino/tests/test_roles.py",
        "plugins/trino/tests/test_visible.py",
        "tests/differential/test_columns.py",
        "tests/differential/test_nested_with.py",
        "tests/differential/test_whole_parts.py",
        "tests/fuzz/test_damaged_files.py",
        "tests/fuzz/test_fuzz_tools.py",
        "tests/fuzz/test_large_catalogs.py",
        "tests/fuzz/test_voice.py",
    }
)
"""Modules that keep a processor busy for half a minute or more, so they are in the lane `full`: generated corpora, each
form of a statement under each kind of hiding, and the kit on Trino.
"""
NEWEST = frozenset(
    f"plugins/postgres/tests/test_{name}.py"
    for name in ("channels", "delegation", "encodings", "keywords", "names", "plantings", "roles", "visible")
)
"""Modules of Postgres that are so long that CI runs them on the newest version alone."""
TRINO = ("plugins/trino/", "tests/matrix/", "tests/differential/", "tests/fuzz/", "tests/routing/")
"""Folders of tests. Those files of them that name Trino share its server, and so a process."""
FIND_SOURCE = hints._find_source  # pyright: ignore[reportPrivateUsage]


class SharedOffload:
    """A process that finds the hints of a whole run. Each of thousands of gateways would start one of its own."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        pool.submit(int)  # starts it now, so that no test finds it among what the test has started

    async def attempt(self, seconds: float, function: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a function returns, however long that takes on a busy machine."""
        work = offload._pickle(_Called(function, arguments))  # pyright: ignore[reportPrivateUsage]
        if work is None:
            return function(*arguments)
        try:
            return await asyncio.wrap_future(self._pool.submit(pickle.loads, work))
        except ImportError:  # a plugin that only this process can import
            return function(*arguments)
        except (DragomanError, BrokenProcessPool):
            return None


@dataclass
class _Called:
    """A call that is made where it is unpickled."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...]

    def __reduce__(self) -> tuple[Any, ...]:
        return self.function, self.arguments


@pytest.fixture(scope="session", autouse=True)
def shared_hints() -> Iterator[None]:
    """Finds the hints of every test in one process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool, pytest.MonkeyPatch.context() as patched:
        shared: Any = SharedOffload(pool)
        patched.setattr(
            hints, "_find_source", lambda sql, dialect, seconds, _: FIND_SOURCE(sql, dialect, seconds, shared)
        )
        yield


@pytest.fixture(scope="session", autouse=True)
def patient_start() -> Iterator[None]:
    """Lets the start look at the roles for longer: on a busy machine it would go on before it finds what is wrong."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(gateway, "PATIENCE", 60.0)
        yield


@pytest.fixture(scope="module")
def hints_of_each_gateway(shared_hints: None) -> Iterator[None]:
    """Finds hints as a server does, in a process of the gateway's own."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hints, "_find_source", FIND_SOURCE)
        patched.setattr(hints, "STARTING", 60.0)
        yield


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one process more than there are processors, at most four, for a whole lane; 0 for what is named.

    One waits: a third of the time goes to deadlines and servers.
    """
    named = config.option.keyword or config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return 0 if named else min(processors + 1, 4)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> "ByServer":
    """Return the scheduler of a run with several processes."""
    return ByServer(config, log)


class ByServer(LoadFileScheduling):
    """Gives a process whole files, for what a module's fixtures make, and all that needs Trino to one."""

    def _split_scope(self, nodeid: str) -> str:
        return "trino" if _may_need_trino(nodeid) else super()._split_scope(nodeid)


def _may_need_trino(nodeid: str) -> bool:
    return nodeid.startswith(TRINO) and "trino" in _text(nodeid.partition("::")[0])


@cache
def _text(file: str) -> str:
    return (ROOT / file).read_text(encoding="utf-8").lower()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Name bytes by their argument: names are the same in every process, and what is compressed may hold the time."""
    return argname if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is fast and what is long."""
    for item in items:
        marks = {mark.name for mark in item.iter_markers()}
        if _place(item) in LONG and "nightly" not in marks:
            item.add_marker("full")
        elif not marks & {"full", "nightly"} and _is_fast(item):
            item.add_marker("fast")
        if _place(item) in NEWEST and "[postgres13" in item.name:
            item.add_marker("nightly")


def _place(item: pytest.Item) -> str:
    return item.path.relative_to(ROOT).as_posix() if item.path.is_relative_to(ROOT) else ""


def _is_fast(item: pytest.Item) -> bool:
    return _place(item).startswith(FAST) and item.path.name not in LONGER and not _needs_server(item)


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
