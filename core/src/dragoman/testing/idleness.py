"""Whether this process and its children still compute: how the kit sees that work was ended, and not only left."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import anyio

WINDOW: Final = 0.4
BUSY_SHARE: Final = 0.1
"""A runaway statement takes a whole processor; on a machine shared by many it still takes a part, most of the time."""
QUIET: Final = 2
"""Windows without work, one after the other, that are believed."""


async def becomes_idle(seconds: float) -> bool:
    """Whether this process and its children stop computing within some seconds."""
    quiet = 0
    with anyio.move_on_after(seconds):
        while quiet < QUIET:
            before = cpu_seconds()
            await anyio.sleep(WINDOW)
            quiet = quiet + 1 if cpu_seconds() - before < WINDOW * BUSY_SHARE else 0
    return quiet == QUIET


def cpu_seconds() -> float:
    """Processor seconds of this process and its living descendants so far; only its own where there is no /proc."""
    processes = _processes()
    if os.getpid() not in processes:
        return time.process_time()
    return sum(processes[pid][1] for pid in _family(processes))


def children() -> set[int]:
    """The living descendants of this process, ended ones that nobody waited for included."""
    processes = _processes()
    return set(_family(processes)) - {os.getpid()}


def family() -> list[int]:
    """Return this process and its living descendants, where the system tells them."""
    return _family(_processes())


def _family(processes: dict[int, tuple[int, float]]) -> list[int]:
    offspring: dict[int, list[int]] = defaultdict(list)
    for pid, (parent, _) in processes.items():
        offspring[parent].append(pid)
    family = [os.getpid()]
    for pid in family:
        family += offspring[pid]
    return family


def _processes() -> dict[int, tuple[int, float]]:
    """Parent and processor seconds of every process we may see."""
    found: dict[int, tuple[int, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended while we looked
        found[int(stat.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
