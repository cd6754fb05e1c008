"""A toolbox no database is behind: it waits, crashes and reports progress when told to.

It stands in where a test is about the protocol or the process. As a program it serves itself: over stdio, or over HTTP
with the token, and the limits (JSON) and the folder of its certificate if any, given on the command line.
"""

import asyncio
import json
import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dragoman.errors import Busy
from dragoman.model import Principal
from dragoman.tools.surfaces import Change, Content, Prompt, Resource, Template, UnknownPrompt, UnknownResource
from dragoman.tools.surfaces.items import PromptArgument

ANY = {"type": "object"}


@dataclass(frozen=True)
class Tool:
    name: str
    title: str | None = None
    description: str = "Does what it is called."
    input_schema: dict[str, Any] = field(default_factory=lambda: dict(ANY))
    output_schema: dict[str, Any] | None = None
    read_only: bool = True


@dataclass(frozen=True)
class Answer:
    text: str
    structured: dict[str, Any] | None
    meta: dict[str, Any] = field(default_factory=dict)
    is_error: bool = False
    links: tuple[Any, ...] = ()

    @property
    def body(self) -> bytes | None:
        return None if self.structured is None else json.dumps(self.structured).encode()


class Silence:
    """Tells of changes only what a test does."""

    def __init__(self) -> None:
        self.listeners: list[Any] = []
        self.watched: list[str] = []

    @contextmanager
    def listening(self, listener: Any, owner: Any = None) -> Iterator[None]:
        self.listeners.append(listener)
        try:
            yield
        finally:
            self.listeners.remove(listener)

    @contextmanager
    def watching(self, addresses: Any) -> Iterator[None]:
        self.watched += addresses
        try:
            yield
        finally:
            for uri in addresses:
                self.watched.remove(uri)

    def watch(self, uri: str) -> None:
        self.watched.append(uri)

    def leave(self, uri: str) -> None:
        self.watched.remove(uri)

    def tell(self, change: Any) -> None:
        for listener in tuple(self.listeners):
            listener(change)


class Surfaces:
    """What the official conformance suite reads: resources of its own, and prompts."""

    listed = (
        Resource(uri="test://static-text", name="static-text", description="A text.", mime="text/plain"),
        Resource(uri="test://static-binary", name="static-binary", description="An image.", mime="image/png"),
    )
    kinds = (
        Template(uri="test://template/{id}/data", name="template", description="Data.", tags=("test",)),
        Template(uri="test://other/{id}", name="other", description="Others."),
    )
    texts = (
        Prompt(name="test_simple_prompt", text="This is a simple prompt for testing.", description="Simple."),
        Prompt(
            name="test_prompt_with_arguments",
            text="Prompt with arguments: arg1='{arg1}', arg2='{arg2}'",
            description="With arguments.",
            arguments=(PromptArgument("arg1", "One.", required=True), PromptArgument("arg2", "Two.", required=True)),
            tags=("test",),
        ),
    )

    def __init__(self) -> None:
        self.changes = Silence()

    def may_read(self, uri: str, principal: Principal) -> bool:
        return uri.startswith("test://")

    def databases(self, principal: Principal) -> frozenset[str]:
        return frozenset()

    async def resources(self, principal: Principal) -> list[Resource]:
        return list(self.listed)

    def templates(self, principal: Principal) -> list[Template]:
        return list(self.kinds)

    async def read(self, uri: str, principal: Principal) -> Content:
        if uri == "test://crash":
            raise RuntimeError("password=hunter2")
        if uri == "test://busy":
            raise Busy("Too much at once.", suggestion="Wait.")
        if uri == "test://static-text":
            return Content(uri, "text/plain", "This is the content of the static text resource.")
        if uri == "test://static-binary":
            return Content(uri, "image/png", b"\x89PNG\r\n\x1a\n")
        if found := re.fullmatch(r"test://template/(\w+)/data", uri):
            return Content(uri, "application/json", json.dumps({"id": found[1], "templateTest": True}))
        raise UnknownResource(uri)

    def prompts(self) -> list[Prompt]:
        return list(self.texts)

    def prompt(self, name: str) -> Prompt:
        try:
            return next(prompt for prompt in self.texts if prompt.name == name)
        except StopIteration:
            raise UnknownPrompt from None

    async def fill_prompt(self, name: str, given: Mapping[str, str], principal: Principal) -> tuple[Prompt, str]:
        prompt = self.prompt(name)
        return prompt, prompt.fill(given)


class Nothing:
    """A gateway without databases."""

    names: tuple[str, ...] = ()
    stopping = False

    def stop(self) -> None:
        self.stopping = True

    def for_principal(self, principal: Principal) -> "Nothing":
        return self


class StandIn:
    tools = (
        Tool("echo", output_schema=ANY),
        *(Tool(name) for name in ("wait", "fail", "crash", "count", "big", "touch")),
        *(Tool(name) for name in ("test_simple_text", "test_error_handling", "test_tool_with_progress")),
    )
    instructions = "A stand-in."
    gateway = Nothing()

    def __init__(self) -> None:
        self.surfaces = Surfaces()
        self.log: list[str] = []
        self.parts: list[Any] = []

    def note(self, event: str) -> None:
        self.log.append(event)
        print(event, file=sys.stderr, flush=True)

    def show_to(self, principal: Principal) -> "StandIn":
        return self

    async def hidden_tools(self, principal: Principal) -> frozenset[str]:
        return frozenset()

    def is_plain(self, name: str, principal: Principal) -> bool:
        return any(tool.name == name for tool in self.tools)

    async def knows(self, name: str, principal: Principal) -> bool:
        return self.is_plain(name, principal)

    async def refuse(self, name: str, principal: Principal) -> None:
        self.note(f"refused {name}")

    async def call(self, name: str, arguments: dict, *, progress: Any = None, principal: Principal) -> Answer:
        return await getattr(self, name)(arguments, progress, principal)

    async def echo(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        print("a stray print")
        answer = {"arguments": arguments, "who": principal.name}
        return Answer(json.dumps(answer), answer, {"dragoman/elapsed_ms": 1.5})

    async def wait(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        self.note("waiting")
        try:
            await asyncio.sleep(arguments.get("seconds", 60))
        except asyncio.CancelledError:
            self.note("cancelled")
            raise
        return Answer("{}", {})

    async def fail(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        return Answer('{"error":{"code":"QUERY_ERROR"}}', {"never": "shown"}, is_error=True)

    async def crash(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        raise RuntimeError("password=hunter2")

    async def count(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        for number in range(1, 4):
            await progress(number, 3, f"step {number}")
        return Answer("{}", {})

    async def big(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        return Answer("x" * arguments["bytes"], None)

    async def touch(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        self.surfaces.changes.tell(Change(arguments["kind"], arguments.get("uri", "")))
        return Answer("{}", {})

    # What the official conformance suite calls.

    async def test_simple_text(self, arguments: dict, progress: Any, principal: Principal) -> Answer:
        return Answer("This is a simple text response for testing.", None)

    test_error_handling = fail
    test_tool_with_progress = count


async def main(arguments: list[str]) -> None:
    toolbox: Any = StandIn()
    if not arguments:
        from dragoman.mcp.stdio import serve_stdio

        await serve_stdio(toolbox)
        return
    from dragoman.config import Server
    from dragoman.mcp.connections import Limits
    from dragoman.mcp.http import serve_http
    from dragoman.model import Secret

    token, limits, folder = [*arguments, *("", "{}", "")[len(arguments) :]]
    settings = Server(
        transport="http",
        port=0,
        token=Secret(token) if token else None,
        tls_cert=Path(folder, "cert.pem") if folder else None,
        tls_key=Path(folder, "key.pem") if folder else None,
        allowed_hosts=("gw.example", "other.example:8443"),
        allowed_origins=("https://app.example", "http://dev.example:3000/"),
    )
    await serve_http(toolbox, settings, Limits(**json.loads(limits)))


if __name__ == "__main__":
    import logging

    logging.basicConfig(level="INFO", stream=sys.stderr, format="%(message)s")
    asyncio.run(main(sys.argv[1:]))
