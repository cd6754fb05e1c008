"""Servers as processes, spoken to in plain bytes, and what they write to stderr."""

import asyncio
import importlib.util
import json
import re
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

STANDIN = Path(__file__).with_name("standin.py")
PATIENCE = 60.0
INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


def _standin() -> ModuleType:
    spec = importlib.util.spec_from_file_location("standin", STANDIN)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["standin"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def standin() -> ModuleType:
    """The module `standin.py`."""
    return _standin()


class Peer:
    """The other end of a server process: sends lines, reads answers, watches its stderr."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.log: list[str] = []
        self._logged = asyncio.Condition()
        self._watch = asyncio.create_task(self._read_log())

    async def _read_log(self) -> None:
        assert self.process.stderr is not None
        async for line in self.process.stderr:
            async with self._logged:
                self.log.append(line.decode().rstrip())
                self._logged.notify_all()

    async def logged(self, pattern: str) -> re.Match[str]:
        """Wait until a line of stderr matches."""

        def found() -> re.Match[str] | None:
            return next((match for line in self.log if (match := re.search(pattern, line))), None)

        try:
            async with asyncio.timeout(PATIENCE), self._logged:
                await self._logged.wait_for(lambda: found() is not None)
        except TimeoutError:
            raise AssertionError(f"no line matches {pattern!r}; status {self.process.returncode}: {self.log}") from None
        match = found()
        assert match is not None
        return match

    async def send(self, *messages: dict[str, Any] | bytes) -> None:
        assert self.process.stdin is not None
        for message in messages:
            line = message if isinstance(message, bytes) else json.dumps(message).encode()
            self.process.stdin.write(line + b"\n")
        await self.process.stdin.drain()

    async def receive(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), PATIENCE)
        assert line, "the server closed its output"
        return json.loads(line)

    async def answer(self, request_id: int) -> dict[str, Any]:
        """Wait for the answer to a request, whatever comes before it."""
        while True:
            message = await self.receive()
            if message.get("id") == request_id:
                return message

    async def request(self, request_id: int, method: str, **params: Any) -> dict[str, Any]:
        await self.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        return await self.answer(request_id)

    async def call(self, request_id: int, tool: str, **arguments: Any) -> dict[str, Any]:
        return await self.request(request_id, "tools/call", name=tool, arguments=arguments)

    async def handshake(self) -> dict[str, Any]:
        answer = await self.request(0, "initialize", **INITIALIZE)
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return answer

    def close_stdin(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    async def ended(self, within: float) -> int:
        """Wait until the process is gone, at most `within` seconds."""
        code = await asyncio.wait_for(self.process.wait(), within)
        await self._watch
        return code

    async def aclose(self) -> None:
        if self.process.returncode is None:
            self.process.send_signal(signal.SIGKILL)
        await self.process.wait()
        await self._watch


Start = Callable[..., AbstractAsyncContextManager[Peer]]


@asynccontextmanager
async def started(*command: str, **options: Any) -> AsyncIterator[Peer]:
    pipes: dict[str, Any] = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE, "limit": 2**26}
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE, **pipes | options)
    async with AsyncExitStack() as stack:
        peer = Peer(process)
        stack.push_async_callback(peer.aclose)
        yield peer


@pytest.fixture(scope="session", params=["hot", pytest.param("sdk", marks=pytest.mark.full)])
def way(request: pytest.FixtureRequest) -> Iterator[str]:
    """How calls go: past the SDK, or everything through it. What a client sees is the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DRAGOMAN_HOT_PATH", "on" if request.param == "hot" else "off")
        yield request.param


@pytest.fixture(scope="session")
def run(way: str) -> Start:
    """Run a program as a server process: `async with run(*command) as peer`."""
    return started


@pytest.fixture
async def peer(way: str) -> AsyncIterator[Peer]:
    """The stand-in over stdio, before the handshake."""
    async with started(sys.executable, str(STANDIN)) as peer:
        yield peer


@pytest.fixture(scope="module")
async def steady(anyio_backend: str, way: str) -> AsyncIterator[Peer]:
    """The stand-in over stdio, after the handshake, one for all tests of a module."""
    async with started(sys.executable, str(STANDIN)) as peer:
        await peer.handshake()
        yield peer


@pytest.fixture(scope="session")
def serve_standin(way: str) -> Callable[..., AbstractAsyncContextManager[tuple[Peer, str]]]:
    """The stand-in over HTTP: `async with serve_standin(token, head=1) as (peer, url)`.

    It has TLS with a certificate in `folder`.
    """

    @asynccontextmanager
    async def serve(token: str = "", folder: Path | None = None, **limits: float) -> AsyncIterator[tuple[Peer, str]]:
        async with started(sys.executable, str(STANDIN), token, json.dumps(limits), str(folder or "")) as peer:
            yield peer, (await peer.logged(r"serving on (https?://\S+)/mcp"))[1]

    return serve
