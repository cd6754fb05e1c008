"""The process that runs callers' SQL. The executor starts it, and kills it if nothing else helps."""

from __future__ import annotations

import sys

from dragoman.workers.serving import limit_resources, serve

from dragoman_duckdb.frames import Setup
from dragoman_duckdb.worker.session import Session

MEBIBYTE = 1024 * 1024
BESIDE = 1024 * MEBIBYTE
"""Address space that DuckDB reserves beyond its memory limit: threads, allocators, mapped files."""
DEEPEST = 10_000
"""Levels of a tree that can be read: DuckDB nests expressions a thousand times, and each takes three or four."""


def _session(setup: Setup) -> Session:
    sys.setrecursionlimit(DEEPEST)
    # No file can be written, so a COPY that passed every other check fails as well.
    limit_resources(2 * setup.memory * MEBIBYTE + BESIDE, 0)
    return Session(setup)


if __name__ == "__main__":
    serve(Setup, _session)
