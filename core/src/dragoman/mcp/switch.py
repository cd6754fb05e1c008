"""The switch that sends everything through the MCP SDK."""

from __future__ import annotations

import logging
import os
import sys

from dragoman.config import wants_hot_path

LOGGER = logging.getLogger("dragoman.mcp")

TESTED = (2, 3)
"""The newest release of the SDK that the hot path was compared with. With a newer one, the hot path is off."""


def hot_path() -> bool:
    """Return whether calls may bypass the SDK. `DRAGOMAN_HOT_PATH=off`, or an SDK newer than tested, forbids it."""
    if not wants_hot_path():
        return False
    release = _release()
    if release[:2] <= TESTED:
        return True
    LOGGER.warning(
        "mcp %s is newer than %s, with which the hot path was tested: every message goes through the SDK",
        ".".join(map(str, release)),
        ".".join(map(str, TESTED)),
    )
    return False


def _release() -> tuple[int, ...]:
    """Return the installed SDK's release.

    It comes from the name of its metadata's folder, since reading the metadata takes longer.
    """
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith("mcp-") and name.endswith(".dist-info"):
                return _numbers(name.removeprefix("mcp-").removesuffix(".dist-info"))
    import importlib.metadata

    return _numbers(importlib.metadata.version("mcp"))


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".")[:3] if part.isdigit())
