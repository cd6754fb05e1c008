"""The MCP face of the gateway, and the only part that imports the MCP SDK.

Every call ends in `Toolbox.call`: arguments, policy, limits, the log line and the deadline exist once, there. What is
here only carries calls to it, over stdio or Streamable HTTP, in both eras of the protocol. The SDK takes most of the
start-up time, so it is imported when serving begins and not before.
"""

from __future__ import annotations

import gc
import importlib
import logging
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.config import Configuration


async def serve(configuration: Configuration) -> None:
    """Serve the configured databases until the client leaves (stdio) or the process is told to stop.

    Returns after the databases were closed and every worker process is gone. Raises `ConfigurationError` when the
    HTTP address cannot be bound.
    """
    from dragoman.gateway import Gateway
    from dragoman.tools import Toolbox

    _import_sdk()
    from dragoman.mcp.http import serve_http
    from dragoman.mcp.stdio import serve_stdio

    settings = configuration.server
    # At info it tells of every request that it came and went; what matters of a call is in our own line.
    logging.getLogger("mcp").setLevel(logging.WARNING)
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway, profile=settings.tools, result_format=settings.result_format)
        if settings.transport == "http":
            await serve_http(toolbox, settings)
        else:
            await serve_stdio(toolbox)


def _import_sdk() -> None:
    # Importing builds thousands of classes that live as long as the process: collecting in between only costs time.
    gc.disable()
    try:
        importlib.import_module("mcp.server")
    finally:
        gc.enable()
        gc.freeze()
