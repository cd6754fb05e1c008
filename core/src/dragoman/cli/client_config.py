"""`dragoman client-config`: print the text to paste into an MCP client."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dragoman.cli.common import add_source_arguments, load_configuration, warn
from dragoman.cli.output import put
from dragoman.config import Configuration, is_path, parse_named, split_name
from dragoman.config.urls import bracket_host

EXAMPLES = """\
examples:
  dragoman client-config claude-code
  dragoman client-config vscode --config dragoman.toml > .vscode/mcp.json
  dragoman client-config --url sqlite:///shop.db
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("client", nargs="?", choices=list(CLIENTS), default="generic")
    add_source_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print the snippet."""
    configuration = load_configuration(arguments)
    put(snippet(arguments.client, configuration, arguments.urls))
    warn(PLACES[arguments.client])
    if any(parse_named(url).password for url in arguments.urls):
        warn("this text contains a password: use a configuration file with ${NAME}, or give the text to nobody else")
    if configuration.variables:
        warn(
            f"put the values of {', '.join(configuration.variables)} into env: the client does "
            "not pass on its environment"
        )
    return 0


def snippet(client: str, configuration: Configuration, urls: Sequence[str] = ()) -> str:
    """Return the text to paste into `client` to reach the databases of a configuration."""
    return CLIENTS[client](configuration, urls)


def paste(client: str, command: Sequence[str]) -> str:
    """Return the text to paste into `client` so that it starts a command and speaks MCP to it."""
    if client == "claude-code":
        return shlex.join(["claude", "mcp", "add", "dragoman", "--", *command])
    return _pretty({"mcpServers": {"dragoman": {"command": command[0], "args": list(command[1:])}}})


def _command(configuration: Configuration, urls: Sequence[str]) -> dict[str, Any]:
    """Return the program to start, with absolute paths: a client runs it from a folder of its own."""
    arguments = ["-m", "dragoman", "serve", *map(absolute, urls)]
    if configuration.source:
        arguments += ["--config", str(configuration.source.resolve())]
    if configuration.server.transport != "stdio":
        arguments += ["--transport", "stdio"]
    entry: dict[str, Any] = {"command": sys.executable, "args": arguments}
    if configuration.variables:
        entry["env"] = {name: f"<{name}>" for name in configuration.variables}
    return entry


def absolute(url: str) -> str:
    """Return the URL of a file, existing or not, with an absolute path; any other URL unchanged."""
    name, text = split_name(url)
    database = parse_named(url)
    file = Path(database.database or "")
    if database.host or file.is_absolute() or not (is_path(text) or file.suffix):
        return url
    _, mark, options = ("", "", "") if is_path(text) else text.partition("?")
    start = f"{name}=" if name else ""
    return f"{start}{database.dialect}:///{quote(file.resolve().as_posix())}{mark}{options}"


def address(configuration: Configuration) -> str:
    """Return the address of an HTTP server with this configuration."""
    server = configuration.server
    return f"{server.scheme}://{bracket_host(server.host)}:{server.port}/mcp"


def _header(configuration: Configuration) -> dict[str, str]:
    server = configuration.server
    return {"Authorization": "Bearer <token>"} if server.token or server.tokens else {}


def _entry(configuration: Configuration, urls: Sequence[str], **kind: str) -> dict[str, Any]:
    if configuration.server.transport == "stdio":
        return {**({"type": "stdio"} if kind else {}), **_command(configuration, urls)}
    header = _header(configuration)
    return {**kind, "url": address(configuration), **({"headers": header} if header else {})}


def _claude_desktop(configuration: Configuration, urls: Sequence[str]) -> str:
    return _pretty({"mcpServers": {"dragoman": _command(configuration, urls)}})


def _generic(configuration: Configuration, urls: Sequence[str]) -> str:
    return _pretty({"mcpServers": {"dragoman": _entry(configuration, urls)}})


def _vscode(configuration: Configuration, urls: Sequence[str]) -> str:
    return _pretty({"servers": {"dragoman": _entry(configuration, urls, type="http")}})


def _claude_code(configuration: Configuration, urls: Sequence[str]) -> str:
    if configuration.server.transport == "http":
        words = ["claude", "mcp", "add", "--transport", "http", "dragoman", address(configuration)]
        header = [f"{name}: {value}" for name, value in _header(configuration).items()]
        return shlex.join([*words, *(word for line in header for word in ("--header", line))])
    entry = _command(configuration, urls)
    environment = [word for name in configuration.variables for word in ("--env", f"{name}=<{name}>")]
    return shlex.join(["claude", "mcp", "add", "dragoman", *environment, "--", entry["command"], *entry["args"]])


def _pretty(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)


CLIENTS: dict[str, Callable[[Configuration, Sequence[str]], str]] = {
    "claude-desktop": _claude_desktop,
    "claude-code": _claude_code,
    "cursor": _generic,
    "vscode": _vscode,
    "generic": _generic,
}

PLACES = {
    "claude-desktop": "paste it into claude_desktop_config.json: Settings, Developer, Edit Config; then restart Claude",
    "claude-code": "run it in a terminal; `claude mcp list` shows whether it answers",
    "cursor": "paste it into .cursor/mcp.json of a project, or ~/.cursor/mcp.json for all of them",
    "vscode": "paste it into .vscode/mcp.json of a workspace, or run MCP: Open User Configuration",
    "generic": "paste it into the client's MCP configuration",
}
"""The configuration file of each client."""
