"""What our child processes share: how they are started, and the limits they set for themselves."""

from __future__ import annotations

import os
import resource
import sys
from typing import Final

_MEMORY: Final = frozenset({resource.RLIMIT_AS, resource.RLIMIT_DATA})


def serving_command(module: str, *arguments: str) -> list[str]:
    """Return the command of a Python process that calls `serve` of a module."""
    # -P keeps the current folder off its path.
    return [sys.executable, "-P", "-c", f"from {module} import serve; serve()", *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a child that can import every module that this process can."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def limit_resource(kind: int, most: int) -> None:
    """Limit a resource of this process, or keep the system's limit if that is lower. macOS cannot limit memory."""
    if sys.platform == "darwin" and kind in _MEMORY:
        return
    _, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
