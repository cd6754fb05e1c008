"""The tools agents use: described as data, answered from a gateway. Knows nothing of MCP."""

from dragoman.tools.answer import Answer
from dragoman.tools.registry import PROFILES, Tool
from dragoman.tools.toolbox import Toolbox, UnknownTool

__all__ = ["PROFILES", "Answer", "Tool", "Toolbox", "UnknownTool"]
