"""Whether this process and its children still compute, so that the kit sees whether work was really ended."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from pathlib import Path
from typing import Final

import anyio

WINDOW: Final = 0.4
BUSY_SHARE: Final = 0.1
"""The share of a processor from which this counts as busy.

A runaway statement takes a whole processor, or a part of it on a busy machine.
"""
QUIET: Final = 2
"""The number of consecutive idle windows that prove idleness."""


async def becomes_idle(seconds: float) -> bool:
    """Return whether this process and its children stop computing within `seconds`."""
    quiet = 0
    with anyio.move_on_after(seconds):
        while quiet < QUIET:
            before = cpu_seconds()
            await anyio.sleep(WINDOW)
            quiet = quiet + 1 if cpu_seconds() - before < WINDOW * BUSY_SHARE else 0
    return quiet == QUIET


def cpu_seconds() -> float:
    """Return the processor seconds of this process and its living descendants so far; only its own without /proc."""
    processes = _processes()
    if os.getpid() not in processes:
        return time.process_time()
    return sum(processes[pid][1] for pid in _family(processes))


def children() -> set[int]:
    """Return the living descendants of this process, and ended ones that nobody waited for."""
    processes = _processes()
    return set(_family(processes)) - {os.getpid()}


def family() -> list[int]:
    """Return this process and its living descendants, if the system reports them."""
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
    """Return parent and processor seconds of every visible process."""
    found: dict[int, tuple[int, float]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        found[int(stat.parent.name)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found
