"""`dragoman serve`: the MCP server."""

from __future__ import annotations

import argparse
import signal
import sys

from dragoman.cli.client_config import address
from dragoman.cli.common import LOGGER, add_caller_argument, add_source_arguments, load_configuration
from dragoman.config import Configuration
from dragoman.errors import ConfigurationError
from dragoman.model import Principal

EXAMPLES = """\
examples:
  dragoman serve sqlite:///shop.db
  dragoman serve sqlite:///shop.db crm=postgresql://reader@db/crm
  dragoman serve --config dragoman.toml --transport http --port 8080
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("positional", metavar="[NAME=]URL", nargs="*", help="additional databases")
    add_source_arguments(parser)
    add_caller_argument(parser)
    parser.add_argument("--transport", choices=["stdio", "http"], help="how clients connect (stdio)")
    parser.add_argument("--host", help="the address that HTTP listens on (127.0.0.1)")
    parser.add_argument("--port", help="the port that HTTP listens on (8080)")
    parser.add_argument("--tools", metavar="PROFILE", help="profiles, toolsets or tools, separated by commas")
    parser.add_argument("--allow-unauthenticated", action="store_true", help="serve other machines without a token")


def run(arguments: argparse.Namespace) -> int:
    """Serve until the client leaves or a signal arrives."""
    from dragoman import mcp
    from dragoman.cli.logs import log_to_stderr

    arguments.urls += arguments.positional
    keys = ("transport", "host", "port", "tools")
    given = {key: getattr(arguments, key) for key in keys if getattr(arguments, key) is not None}

    def read() -> Configuration:
        return load_configuration(arguments, {"server": given} if given else None)

    configuration = read()
    server = configuration.server
    if server.transport == "stdio" and given.keys() & {"host", "port"}:
        raise ConfigurationError("--host and --port need HTTP.", suggestion="Add --transport http.")
    if server.transport == "http" and arguments.principal != Principal():
        raise ConfigurationError("--as is for stdio.", suggestion="Over HTTP callers sign in: see docs/sign-in.md.")
    server.check_exposure(allow_unauthenticated=arguments.allow_unauthenticated)
    log_to_stderr(_log_format(configuration), server.log_level)
    for warning in configuration.warnings:
        LOGGER.warning(warning)
    if sys.stderr.isatty():
        print(_banner(configuration), file=sys.stderr)
    # Until the server can reload: without a handler the signal would end the process.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    mcp.run(configuration, arguments.principal, read)
    return 0


def _log_format(configuration: Configuration) -> str:
    """Return the configured format, or else text for a terminal and JSON for anything else."""
    configured_format = configuration.server.log_format
    if "server.log_format" in configuration.sources:
        return configured_format
    return "text" if sys.stderr.isatty() else configured_format


def _banner(configuration: Configuration) -> str:
    """Return what a person at a terminal must know: what is served, where, and how to connect."""
    server = configuration.server
    names = ", ".join(configuration.databases)
    if server.transport == "stdio":
        return (
            f"dragoman serves {names} over stdin and stdout.\n"
            "A client starts this command itself: `dragoman client-config` prints what to paste into it.\n"
            "Ctrl-D or Ctrl-C ends it."
        )
    place = address(configuration) if server.port else f"a free port of {server.host}, named below"
    return f"dragoman serves {names} on {place}\nGive a client that address. Ctrl-C ends it."
