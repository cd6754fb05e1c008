"""Worker processes for dialects whose engine is a library. A process is killed if nothing else ends a statement.

`executor` sends statements to them and returns rows. `process` starts and kills them, and `dragoman.pool` lends them.
`frames` defines the messages. `serving` and `sending` run in the worker process itself.
"""

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
