"""Worker processes for dialects whose engine runs in our process: killed when nothing else ends a statement.

`executor` hands statements to them and rows back, `process` starts and kills them, `dragoman.pool` lends them, `frames`
are the messages; `serving` and `sending` are what the process itself is made of.
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
