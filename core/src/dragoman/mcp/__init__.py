"""The MCP server. No other package imports the MCP SDK.

Every call ends in `Toolbox.call`, the only place with arguments, policy, limits, the log line and the deadline. This
package only carries calls to it, over stdio or Streamable HTTP, in both eras of the protocol. The SDK takes most of the
start-up time and most of the time of a small call. So well-formed calls bypass it (`gate`), and over stdio the
handshake is answered before it is imported (`early`). Everything else goes to the SDK.
"""

from __future__ import annotations

import importlib
import logging
from typing import TYPE_CHECKING, Any

from dragoman.model import LOCAL, Principal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Coroutine

    from dragoman.config import Configuration
    from dragoman.mcp.early import Early
    from dragoman.mcp.prefork import Worker
    from dragoman.mcp.reloading import Reread
    from dragoman.tools.registry import Shown

_LOADED_BEHIND = (
    "asyncio",
    "dragoman.gateway",
    "dragoman.tools.toolbox",
    "dragoman.mcp.stdio",
)


def run(configuration: Configuration, principal: Principal = LOCAL, reread: Reread | None = None) -> None:
    """Serve as `serve` does, in an event loop of its own.

    Over stdio the handshake is answered before the loop starts.
    """
    from dragoman.mcp.switch import hot_path

    hot = hot_path()
    if configuration.server.transport == "http" and configuration.server.workers > 1:
        _run_workers(configuration, hot, reread)
        return
    if configuration.server.transport != "stdio" or not hot:
        _run(serve(configuration, hot=hot, principal=principal, reread=reread), hot)
        return
    from dragoman.mcp.descriptors import standard_streams
    from dragoman.mcp.early import Early, answer_early

    with standard_streams() as (source, sink):
        early = Early(source, sink)
        answer_early(early, _handshake(configuration, principal), _load)
        if not early.stopped:
            _run(serve(configuration, early, hot=hot, principal=principal, reread=reread), hot)


def _run_workers(configuration: Configuration, hot: bool, reread: Reread | None) -> None:
    """Serve in several processes. The first one returns when all have ended, and each of the others when it ends."""
    from dragoman.mcp.sdk import import_sdk

    import_sdk()
    _load()
    from dragoman.mcp.http import listening
    from dragoman.mcp.prefork import prefork
    from dragoman.mcp.tls import tls_context

    tls_context(configuration.server)  # each worker has its own; a wrong file stops the start here
    forked = prefork(configuration, reread, listening(configuration.server))
    if forked is not None:
        worker, taken = forked
        try:
            _run(serve(taken, hot=hot, reread=reread, worker=worker), hot)
        except BaseException:
            worker.turn_away()
            raise


def _handshake(configuration: Configuration, principal: Principal) -> Any:
    from dragoman._version import VERSION
    from dragoman.mcp.handshake import Handshake
    from dragoman.tools.registry import show_to

    settings = configuration.server
    told = show_to(principal, configuration, settings.tools, settings.result_format)
    return Handshake(told.tools, told.instructions, VERSION, lists=not _may_be_hidden(told, configuration))


def _may_be_hidden(told: Shown, configuration: Configuration) -> bool:
    """Return whether some tool is a saved query that may read more than this caller may.

    The database must then be asked.
    """
    if not any(spec.handler == "run_tool" for spec in told.specs):
        return False
    from importlib.metadata import entry_points

    delegated = any(database.identity != "gateway" for database in configuration.databases.values())
    return bool(configuration.roles) or delegated or bool(entry_points(group="dragoman.policies"))


def _load() -> None:
    import gc

    gc.disable()
    try:
        for module in _LOADED_BEHIND:
            importlib.import_module(module)
        _fast_loop()
    finally:
        gc.enable()
        gc.freeze()


def _run(serving: Coroutine[Any, Any, None], hot: bool) -> None:
    """Run in uvloop if it is installed and the hot path is on, else in asyncio's own loop."""
    import asyncio

    with asyncio.Runner(loop_factory=_fast_loop() if hot else None) as runner:
        runner.run(serving)


def _fast_loop() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


async def serve(
    configuration: Configuration,
    early: Early | None = None,
    *,
    hot: bool | None = None,
    principal: Principal = LOCAL,
    reread: Reread | None = None,
    worker: Worker | None = None,
) -> None:
    """Serve the configured databases until the client leaves (stdio) or the process is told to stop.

    - `early`: the state of the handshake.
    - `hot`: whether calls may bypass the SDK; None: `hot_path` decides.
    - `principal`: the caller over stdio.
    - `reread`: reads the configuration again, at every SIGHUP.
    - `worker`: which of several processes this is.

    Returns after the databases were closed and every worker process has ended. Raises `ConfigurationError` if the HTTP
    address cannot be bound.
    """
    from dragoman.gateway import Gateway
    from dragoman.gateway.exporting import home_of
    from dragoman.mcp.reloading import reload_on_signal, reload_with_others
    from dragoman.tools.toolbox import Toolbox

    settings = configuration.server
    # At level info it logs the beginning and end of every request, and our own line has the facts of a call. Addresses
    # of exported files, which another worker is asked for, are as good as a token.
    for chatty in ("mcp", "httpx2", "httpcore2"):
        logging.getLogger(chatty).setLevel(logging.WARNING)
    async with Gateway.open(configuration, again=worker is not None and worker.again) as gateway:
        await gateway.kept.adopt(lambda owner: worker is None or home_of(owner) % len(worker.doors) == worker.index)
        toolbox = Toolbox(gateway, profile=settings.tools, result_format=settings.result_format, reread=reread)
        with reload_with_others(toolbox, worker) if worker else reload_on_signal(toolbox, reread):
            if settings.transport == "http":
                from dragoman.mcp.sdk import import_sdk

                import_sdk()
                from dragoman.mcp.http import serve_http

                await serve_http(toolbox, settings, hot=hot, worker=worker)
            else:
                from dragoman.mcp.stdio import serve_stdio

                await serve_stdio(toolbox, early, hot=hot, principal=principal)
