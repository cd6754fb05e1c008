"""The gateway: opens databases and leads every call through its life. Knows nothing of MCP."""

from dragoman.gateway.gateway import Gateway
from dragoman.gateway.health import Status
from dragoman.gateway.opened import OpenDatabase

__all__ = ["Gateway", "OpenDatabase", "Status"]
