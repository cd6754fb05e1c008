"""MCP in plain bytes over pipes and sockets: a client that costs next to nothing, so that the server is measured."""

import json
import os
import select
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

LEGACY, MODERN = "2025-06-18", "2026-07-28"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(era: str, method: str, params: dict[str, Any], number: int = 1) -> bytes:
    """Return a request as bytes, with the envelope of its era."""
    sent = params | {"_meta": ENVELOPE} if era == MODERN else params
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": sent}).encode()


def call(sql: str, **more: Any) -> dict[str, Any]:
    return {"name": "execute_query", "arguments": {"sql": sql, **more}}


def _processor_clock(pid: int) -> int:
    """Return the clock of a process's processor time, as `clock_getcpuclockid(3)` of Linux does."""
    return (~pid << 3) | 2


# An installed program has its bytecode. Without it a start compiles every module, which takes longer than all else.
ENVIRON = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


class Process:
    """A server process: what it uses, and its end."""

    def __init__(self, command: list[str], environ: dict[str, str] | None = None, **pipes: Any) -> None:
        self.begun = time.perf_counter()
        self.popen = subprocess.Popen(command, env={**ENVIRON, **(environ or {})}, **pipes)

    def cpu(self) -> float:
        """Seconds of processor time so far, in nanoseconds: /proc counts ticks, and a call takes a thirtieth of one."""
        return time.clock_gettime(_processor_clock(self.popen.pid))

    def ran_and_waited(self) -> tuple[float, float]:
        """Seconds that its threads ran on a processor, and that they could have and waited for one."""
        told = [path.read_text().split() for path in Path(f"/proc/{self.popen.pid}/task").glob("*/schedstat")]
        return sum(int(each[0]) for each in told) / 1e9, sum(int(each[1]) for each in told) / 1e9

    def memory(self) -> float:
        """MiB of resident memory."""
        status = open(f"/proc/{self.popen.pid}/status").read()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def close(self) -> None:
        if self.popen.stdin:
            self.popen.stdin.close()
        else:
            self.popen.terminate()
        self.popen.wait(20)


class Stdio(Process):
    """A server over stdio, after the handshake of its era."""

    def __init__(self, command: list[str], era: str, environ: dict[str, str] | None = None) -> None:
        super().__init__(command, environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        assert self.popen.stdin
        assert self.popen.stdout
        self.era = era
        self._in, self._out = self.popen.stdin.fileno(), self.popen.stdout.fileno()
        if era == LEGACY:
            given = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
            self.exchange(message(era, "initialize", given))
            os.write(self._in, b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')

    def exchange(self, request: bytes) -> bytes:
        """Send a line and return the next one, or several that came at once."""
        os.write(self._in, request + b"\n")
        return self._lines()

    def _lines(self) -> bytes:
        pieces = [os.read(self._out, 1 << 20)]
        while pieces[-1] and not pieces[-1].endswith(b"\n"):
            pieces.append(os.read(self._out, 1 << 20))
        return b"".join(pieces)

    def request(self, method: str, params: dict[str, Any]) -> Any:
        """Return the reply to a request; what the server tells before it is dropped."""
        lines = self.exchange(message(self.era, method, params))
        while not (replies := [reply for line in lines.splitlines() if "id" in (reply := json.loads(line))]):
            lines = self._lines()
        return replies[0]


class Http(Process):
    """A server over HTTP on a port of loopback."""

    def __init__(self, command: list[str], port: int, environ: dict[str, str] | None = None) -> None:
        super().__init__(command, environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.port = port
        while not self._answers():
            if self.popen.poll() is not None:
                sys.exit(f"the server ended: {command}")
            time.sleep(0.05)

    def _answers(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def connect(self) -> "Connection":
        return Connection(self.port)


class Connection:
    """One connection that is kept; requests follow one another."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def head(self, era: str, body: bytes) -> bytes:
        routing = "mcp-method: tools/call\r\nmcp-name: execute_query\r\n" if era == MODERN else ""
        return (
            f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{self._port}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\nmcp-protocol-version: {era}\r\n{routing}"
            f"content-length: {len(body)}\r\n\r\n"
        ).encode() + body

    def receive(self) -> bytes:
        """Return the body of the next answer, chunks as they are."""
        read = b""
        while b"\r\n\r\n" not in read:
            read += self._some()
        head, _, body = read.partition(b"\r\n\r\n")
        lower = head.lower()
        if b"content-length: " in lower:
            length = int(lower.partition(b"content-length: ")[2].split()[0])
            pieces, have = [body], len(body)
            while have < length:
                pieces.append(self._some())
                have += len(pieces[-1])
            return b"".join(pieces)
        pieces = [body]
        while not (pieces[-1][-5:] == b"0\r\n\r\n" or b"".join(pieces[-2:])[-5:] == b"0\r\n\r\n"):
            pieces.append(self._some())
        return b"".join(pieces)

    def _some(self) -> bytes:
        some = self.socket.recv(1 << 20)
        if not some:
            raise EOFError("the server closed the connection")
        return some

    def exchange(self, request: bytes) -> bytes:
        self.socket.sendall(request)
        return self.receive()


def per_second(server: Http, era: str, clients: int, requests: list[bytes], seconds: float) -> float:
    """Return how many answers a second `clients` connections get that always wait for one."""
    connections = {each.socket.fileno(): each for each in (server.connect() for _ in range(clients))}
    poll = select.epoll()
    for turn, (number, each) in enumerate(connections.items()):
        poll.register(number, select.EPOLLIN)
        each.socket.sendall(each.head(era, requests[turn % len(requests)]))
    done, begun = 0, time.perf_counter()
    while (passed := time.perf_counter() - begun) < seconds:
        for number, _ in poll.poll(1):
            each = connections[number]
            each.receive()
            done += 1
            each.socket.sendall(each.head(era, requests[done % len(requests)]))
    for each in connections.values():
        each.receive()
        each.socket.close()
    return done / passed
