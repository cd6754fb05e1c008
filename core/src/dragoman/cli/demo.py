"""`dragoman demo`: demo databases, the real server, a real MCP client, and what it sees."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import os
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dragoman.cli.client_config import absolute, snippet
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
    parser.add_argument("--serve", action="store_true", help="keep the server up on HTTP instead of showing the tour")
    parser.add_argument(
        "--trino",
        dest="also",
        action="append_const",
        const="trino",
        default=[],
        help="a Trino server too: the first time 220 MB are fetched, and it takes some 500 MB of memory",
    )
    parser.add_argument("--port", help="where HTTP listens (8080)")
    add_source_arguments(parser)


@dataclasses.dataclass(frozen=True, slots=True)
class Scene:
    """What is shown: a configuration file, databases beside it, the folder and the environment the server starts in."""

    config: Path
    urls: tuple[str, ...]
    folder: Path
    environ: dict[str, str]

    @property
    def server(self) -> list[str]:
        """The arguments of the server that serves it."""
        return ["serve", *self.urls, "--config", str(self.config)]


def run(arguments: argparse.Namespace) -> int:
    """Show the tour, or serve, the demo databases or those of `--config`."""
    from dragoman.cli.stage import Stage

    stage = Stage()
    with stage.working("Building the demo databases"):
        scene = _own_scene(arguments) if arguments.config else _demo_scene(arguments)
    server = {"transport": "http" if arguments.serve else "stdio", "port": arguments.port}
    given = {key: value for key, value in server.items() if value}
    configuration = load(
        scene.config, urls=scene.urls, environ=scene.environ, folder=scene.folder, overrides={"server": given}
    )
    stage.opening(configuration.databases.values(), scene.folder)
    if arguments.serve:
        _serve(stage, configuration)
    else:
        run_async(_show_tour(stage, scene))
        stage.closing(*(snippet(client, configuration, scene.urls) for client in ("generic", "claude-code")))
    return 0


def _own_scene(arguments: argparse.Namespace) -> Scene:
    return Scene(Path(arguments.config).resolve(), tuple(map(absolute, arguments.urls)), Path.cwd(), dict(os.environ))


def _demo_scene(arguments: argparse.Namespace) -> Scene:
    """Build the demo where nothing of the user's own configuration reaches it."""
    folder = Path(tempfile.mkdtemp(prefix="dragoman-demo-")).resolve()
    return Scene(
        write_configuration(folder, build(folder, arguments.also)), tuple(map(absolute, arguments.urls)), folder, {}
    )


def _serve(stage: Stage, configuration: Configuration) -> None:
    from dragoman import mcp
    from dragoman.cli.logs import log_to_stderr

    log_to_stderr("text", "info")
    stage.serving(snippet("generic", configuration))
    asyncio.run(mcp.serve(configuration))


async def _show_tour(stage: Stage, scene: Scene) -> None:
    from dragoman.mcp.tour import take_tour

    async with aclosing(take_tour(scene.server, scene.folder, scene.environ)) as steps:
        with stage.working("Starting the server and connecting a client"):
            first = await anext(steps)
        stage.step(first)
        async for step in steps:
            stage.step(step)


def build(folder: Path, also: Sequence[str] = ()) -> list[Database]:
    """Have every installed dialect build its demo databases, costly ones only when they are among `also`.

    Raises `DialectError` when there are none, or when what is asked for cannot be had.
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
        raise DialectError(
            "No installed dialect has a demo database.", suggestion="Install one: `pip install dragoman-sqlite`."
        )
    return list(databases.values())


def write_configuration(folder: Path, databases: Iterable[Database]) -> Path:
    """Write the file that configures these databases, readable by its owner only, and return its path."""
    path = folder / "dragoman.toml"
    # The server writes to the same terminal: only what is wrong belongs there.
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
    """Return a setting as JSON values, as a file would have it."""
    if isinstance(value, Secret):
        return value.reveal()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {name: _plain(each) for name, each in dataclasses.asdict(value).items() if each}
    if is_mapping(value):
        return {name: _plain(each) for name, each in value.items()}
    return [_plain(each) for each in value] if is_collection(value) else value
