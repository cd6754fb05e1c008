"""The tools agents use: described as data, answered from a gateway. Knows nothing of MCP.

Names load on first use: the tools' schemas are sent before anything that answers them is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

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

__getattr__ = load_names(__name__, _HOMES)
