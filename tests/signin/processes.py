"""Programs that serve on loopback while a test runs."""

import asyncio
import os
import re
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2

PATIENCE = 240


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


@asynccontextmanager
async def answering(command: Sequence[str], url: str, settings: Mapping[str, str]) -> AsyncIterator[None]:
    """Run a program with these variables, from when it answers at `url`."""
    process = await asyncio.create_subprocess_exec(
        *command, env=os.environ | settings, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await _answers(url, process)
        yield
    finally:
        if process.returncode is None:
            process.terminate()  # which a script passes on to what it runs
        await process.wait()


async def _answers(url: str, process: asyncio.subprocess.Process) -> None:
    """Wait until the server answers well; it says nothing when it is ready."""
    async with asyncio.timeout(PATIENCE), httpx2.AsyncClient() as client:
        while process.returncode is None:
            try:
                if (await client.get(url)).is_success:
                    return
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.1)
    raise RuntimeError(f"the server ended with {process.returncode}")


@asynccontextmanager
async def gateway_in(folder: Path) -> AsyncIterator[tuple[str, list[str]]]:
    """Run `dragoman serve` in a folder with its configuration; yield its address and its log, whole once it ended."""
    command = [sys.executable, "-m", "dragoman", "serve"]
    process = await asyncio.create_subprocess_exec(*command, cwd=folder, stderr=asyncio.subprocess.PIPE)
    assert process.stderr is not None
    log: list[str] = []
    found = None
    while found is None:
        log.append((await process.stderr.readline()).decode())
        assert log[-1], log
        found = re.search(r"serving on (http://\S+/mcp)", log[-1])
    rest = asyncio.create_task(process.stderr.read())
    try:
        yield found[1], log
    finally:
        process.terminate()
        log.append((await rest).decode())
        await process.wait()
