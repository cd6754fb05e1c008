"""The gateway opens databases and handles every call from start to end. Knows nothing of MCP.

Names load on first use: a process that only takes work off a gateway (`offload`) needs no gateway.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.gateway.gateway import Gateway
    from dragoman.gateway.health import Status
    from dragoman.gateway.opened import OpenDatabase

__all__ = ["Gateway", "OpenDatabase", "Status"]

__getattr__ = load_names(__name__, {"Gateway": "gateway", "OpenDatabase": "opened", "Status": "health"})
