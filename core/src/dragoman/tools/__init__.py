"""The tools agents use: described as data, answered from a gateway. Knows nothing of MCP.

Names load on first use: the tools' schemas are sent before anything that answers them is imported.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dragoman.tools.answer import Answer
    from dragoman.tools.registry import PROFILES
    from dragoman.tools.spec import Tool
    from dragoman.tools.toolbox import Toolbox, UnknownTool

__all__ = ["PROFILES", "Answer", "Tool", "Toolbox", "UnknownTool"]

_HOMES = {
    "Answer": "answer",
    "PROFILES": "registry",
    "Tool": "spec",
    "Toolbox": "toolbox",
    "UnknownTool": "toolbox",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'dragoman.tools' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dragoman.tools.{_HOMES[name]}"), name)
