"""The process that runs callers' SQL on one file. The executor starts it, and kills it if nothing else helps.

A C loop inside SQLite ignores every interrupt, so the deadline is enforced from outside as well.
"""

from __future__ import annotations

from dragoman.workers.serving import limit_resources, serve

from dragoman_sqlite.frames import Setup
from dragoman_sqlite.worker.session import Session


def _session(setup: Setup) -> Session:
    limit_resources(2 * setup.memory, 4 * setup.memory)
    return Session(setup)


if __name__ == "__main__":
    serve(Setup, _session)
