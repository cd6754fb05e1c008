"""A server that speaks OpenAI's protocol over a real socket and says what a test wrote. Keeps what it received."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

KEY = "sk-test-0123456789"
QUERY = {"kind": "query", "text": "What was asked.", "assumptions": [], "tables": [], "confidence": "high"}
VALID = {"valid": True, "reason": ""}


def query(sql: str, **more: Any) -> dict[str, Any]:
    """Return a reply that is a query."""
    return {**QUERY, "sql": sql, **more}


def says(kind: str, text: str = "", **more: Any) -> dict[str, Any]:
    """Return a reply that is no query."""
    return {**QUERY, "kind": kind, "sql": "", "text": text, "confidence": "low", **more}


@dataclass
class Failure:
    """An answer that is no completion: a status, headers, a body; `cut`: the connection ends in the middle of it."""

    status: int = 500
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b'{"error": {"message": "no", "type": "server_error"}}'
    cut: bool = False


@dataclass
class Text:
    """A completion whose text is this, JSON or not."""

    text: str
    usage: Any = field(default_factory=lambda: {"prompt_tokens": 100, "completion_tokens": 20})


@dataclass
class Endless:
    """A response that never ends: `chunk` again and again. `sent`: the bytes that were taken."""

    chunk: bytes
    sent: int = 0


class Never:
    """No answer at all, until the client goes away."""


Reply = dict[str, Any] | Failure | Text | Endless | Never
Script = Sequence[Reply] | Callable[[dict[str, Any]], Reply]


class ScriptedServer:
    """Answers requests in turn, or by a function of the request. `requests`: the bodies that came, in order.

    `left`: set when a client went away before its answer.
    """

    def __init__(self, script: Script) -> None:
        self._script = script
        self.requests: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.waiting = asyncio.Event()
        self.left = asyncio.Event()
        self.url = ""
        self.serving: dict[asyncio.Task, asyncio.StreamWriter] = {}

    @property
    def seen(self) -> str:
        """Everything that ever came, as one text."""
        return "\n".join(message["content"] for request in self.requests for message in request["messages"])

    @property
    def told(self) -> str:
        """The same without the model's own replies."""
        messages = (message for request in self.requests for message in request["messages"])
        return "\n".join(message["content"] for message in messages if message["role"] != "assistant")

    def last(self, number: int = -1) -> str:
        """The last message of a request."""
        return self.requests[number]["messages"][-1]["content"]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.serving[task] = writer
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.headers.append(head.decode())
                length = re.search(rb"content-length: (\d+)", head, re.I)
                assert length is not None
                request = json.loads(await reader.readexactly(int(length[1])))
                self.requests.append(request)
                await self._answer(request, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, request: dict[str, Any], reader, writer) -> None:
        reply = self._next(request)
        if isinstance(reply, Never):
            self.waiting.set()
            await reader.read(1)
            self.left.set()
            raise ConnectionError
        if isinstance(reply, Endless):
            writer.write(b"HTTP/1.1 200 X\r\ntransfer-encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"%x\r\n%b\r\n" % (len(reply.chunk), reply.chunk))
                await writer.drain()
                reply.sent += len(reply.chunk)
        if isinstance(reply, Failure):
            self._send(writer, reply.status, reply.body, reply.headers, cut=reply.cut)
            await writer.drain()
            if reply.cut:
                raise ConnectionError
            return
        text = reply if isinstance(reply, Text) else Text(json.dumps(reply))
        message = {"role": "assistant", "content": text.text}
        completion = {
            "id": "c",
            "object": "chat.completion",
            "created": 0,
            "model": request["model"],
            "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
            **({"usage": text.usage} if text.usage is not None else {}),
        }
        self._send(writer, 200, json.dumps(completion).encode(), {})
        await writer.drain()

    def _next(self, request: dict[str, Any]) -> Reply:
        if callable(self._script):
            return self._script(request)
        number = len(self.requests) - 1
        assert number < len(self._script), f"one request too many:\n{self.last()}"
        return self._script[number]

    def _send(self, writer, status: int, body: bytes, headers: dict[str, str], *, cut: bool = False) -> None:
        lines = [f"HTTP/1.1 {status} X", "content-type: application/json", f"content-length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode() + (body[: len(body) // 2] if cut else body))


@asynccontextmanager
async def scripted(script: Script) -> AsyncIterator[ScriptedServer]:
    """Serve a script."""
    model = ScriptedServer(script)
    server = await asyncio.start_server(model.serve, "127.0.0.1", 0)
    model.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    try:
        yield model
    finally:
        server.close()
        for writer in model.serving.values():
            writer.transport.abort()
        await asyncio.gather(*model.serving, return_exceptions=True)
