"""The gateway opens databases and handles every call from start to end. Knows nothing of MCP."""

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.health import Status
from dragoman.gateway.opened import OpenDatabase

__all__ = ["Gateway", "OpenDatabase", "Status"]
