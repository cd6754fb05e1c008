"""The gateway: opens databases and leads every call through its life. Knows nothing of MCP."""

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.opened import OpenDatabase, Status

__all__ = ["Gateway", "OpenDatabase", "Status"]
