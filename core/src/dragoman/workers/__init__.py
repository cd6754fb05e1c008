"""Worker processes for dialects whose engine is a library. A process is killed if nothing else ends a statement.

`executor` sends statements to them and returns rows. `process` starts and kills them, and `dragoman.pool` lends them.
`frames` defines the messages. `serving` and `sending` run in the worker process itself. Names load on first use: that
process needs neither an event loop nor the contract.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.workers.executor import WorkerExecutor
    from dragoman.workers.frames import Cancel, Columns, Done, Failed, Report, Rows, Run, Told
    from dragoman.workers.process import Worker

__all__ = [
    "Cancel",
    "Columns",
    "Done",
    "Failed",
    "Report",
    "Rows",
    "Run",
    "Told",
    "Worker",
    "WorkerExecutor",
]

_FRAMES = ("Cancel", "Columns", "Done", "Failed", "Report", "Rows", "Run", "Told")
_HOMES = {"WorkerExecutor": "executor", "Worker": "process", **dict.fromkeys(_FRAMES, "frames")}
__getattr__ = load_names(__name__, _HOMES)
