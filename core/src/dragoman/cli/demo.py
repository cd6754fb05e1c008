"""`dragoman demo`: demo databases, the real server, a real MCP client, and what the client sees."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from dragoman.cli.client_config import absolute, paste, snippet
from dragoman.cli.common import add_source_arguments, run_async, warn
from dragoman.cli.config import to_toml
from dragoman.config import Configuration, load
from dragoman.config.readers import is_collection, is_mapping
from dragoman.errors import DialectError
from dragoman.model import Database, Secret

if TYPE_CHECKING:
    from dragoman.cli.stage import Stage

EXAMPLES = """\
examples:
  dragoman demo
  dragoman demo --serve
  dragoman demo --trino
  dragoman demo --config dragoman.toml
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    parser.add_argument("--serve", action="store_true", help="run the server on HTTP instead of showing the tour")
    parser.add_argument(
        "--stdio", action="store_true", help="serve an MCP client over stdin and stdout; the client starts this"
    )
    parser.add_argument(
        "--trino",
        dest="also",
        action="append_const",
        const="trino",
        default=[],
        help="start a Trino server too: the first run downloads 220 MB; it takes some 500 MB of memory",
    )
    parser.add_argument("--port", help="the port that HTTP listens on (8080)")
    add_source_arguments(parser)


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """What is shown: a configuration file, the databases beside it, and the folder and environment of the server."""

    config: Path
    urls: tuple[str, ...]
    folder: Path
    environ: dict[str, str]

    @property
    def server(self) -> list[str]:
        """The arguments of the server for it."""
        return ["serve", *self.urls, "--config", str(self.config)]


def run(arguments: argparse.Namespace) -> int:
    """Show the tour, or serve, the demo databases or those of `--config`. Leaves nothing of the demo behind."""
    from dragoman.cli.stage import Stage

    stage = Stage()
    with _scene(stage, arguments) as scene:
        if arguments.stdio or arguments.serve:
            _serve(stage, scene, arguments)
        else:
            _tour(stage, scene, arguments)
    return 0


@contextmanager
def _scene(stage: Stage, arguments: argparse.Namespace) -> Generator[Scene]:
    """Yield what is shown: the user's own configuration, or a demo in a folder that is removed afterwards."""
    if arguments.config:
        yield Scene(
            Path(arguments.config).resolve(), tuple(map(absolute, arguments.urls)), Path.cwd(), dict(os.environ)
        )
        return
    with TemporaryDirectory(prefix="dragoman-demo-", ignore_cleanup_errors=True) as name:
        # The demo must not use any of the user's own configuration.
        folder = Path(name).resolve()
        with stage.working("Building the demo databases"):
            file = write_configuration(folder, build(folder, arguments.also))
        yield Scene(file, tuple(map(absolute, arguments.urls)), folder, {})


def _serve(stage: Stage, scene: Scene, arguments: argparse.Namespace) -> None:
    from dragoman import mcp
    from dragoman.cli.logs import log_to_stderr

    given = {"transport": "stdio" if arguments.stdio else "http", "port": arguments.port}
    configuration = _load(scene, {key: value for key, value in given.items() if value})
    log_to_stderr("text", "error" if arguments.stdio else "info")
    if not arguments.stdio:
        stage.serving(snippet("generic", configuration))
    mcp.run(configuration)


def _load(scene: Scene, server: Mapping[str, Any]) -> Configuration:
    return load(scene.config, urls=scene.urls, environ=scene.environ, folder=scene.folder, overrides={"server": server})


def _tour(stage: Stage, scene: Scene, arguments: argparse.Namespace) -> None:
    configuration = _load(scene, {"transport": "stdio"})
    stage.opening(configuration.databases.values())
    run_async(_show_tour(stage, scene))
    stage.closing(*_snippets(configuration, scene, arguments))


def _snippets(configuration: Configuration, scene: Scene, arguments: argparse.Namespace) -> tuple[str, str]:
    """Return what to paste. For the demo it is a command that builds it again, since this one is removed."""
    if arguments.config:
        generic, claude_code = (snippet(client, configuration, scene.urls) for client in ("generic", "claude-code"))
        return generic, claude_code
    also = (f"--{name}" for name in arguments.also)
    command = [sys.executable, "-m", "dragoman", "demo", "--stdio", *also]
    return paste("generic", command), paste("claude-code", command)


async def _show_tour(stage: Stage, scene: Scene) -> None:
    from dragoman.mcp.tour import take_tour

    async with aclosing(take_tour(scene.server, scene.folder, scene.environ)) as steps:
        with stage.working("Starting the server and connecting a client"):
            first = await anext(steps)
        stage.step(first)
        async for step in steps:
            stage.step(step)


def build(folder: Path, also: Sequence[str] = ()) -> list[Database]:
    """Have every installed dialect build its demo databases. Costly ones are built only if `also` names them.

    Raises `DialectError` if there are none, or if a named one cannot be built.
    """
    from dragoman.plugins import Plugins

    plugins = Plugins.discover()
    databases: dict[str, Database] = {}
    asked: list[Any] = []
    for name in also:
        plugins.load(name)
    for name in plugins.names:
        try:
            plugin = plugins.load(name)
        except DialectError as error:
            warn(error.message)
            continue
        if plugin not in asked and (name in also or not plugin.demo_on_request):
            asked.append(plugin)
            databases |= {database.name: database for database in plugin.demo(folder)}
    if not databases:
        raise DialectError("No installed dialect has a demo database.", suggestion="Install one: dragoman-sqlite.")
    return list(databases.values())


def write_configuration(folder: Path, databases: Iterable[Database]) -> Path:
    """Write a file that configures these databases, readable only by its owner, and return its path."""
    path = folder / "dragoman.toml"
    # The server writes to the same terminal, so it logs only errors.
    lines = ["[server]", 'log_level = "error"', ""]
    lines += [line for database in databases for line in _section(database)]
    path.touch(mode=0o600)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _section(database: Database) -> Iterator[str]:
    yield f"[databases.{database.name}]"
    for field in dataclasses.fields(database):
        value = getattr(database, field.name)
        if value and field.name not in ("name", "folder") and value != field.default:
            yield f"{field.name} = {to_toml(_plain(value))}"
    yield ""


def _plain(value: Any) -> Any:
    """Return a setting as JSON values, as in a file."""
    if isinstance(value, Secret):
        return value.reveal()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(each) for name, each in dataclasses.asdict(value).items() if each}
    if is_mapping(value):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if is_collection(value) else value
