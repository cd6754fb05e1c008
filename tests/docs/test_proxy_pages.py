"""The proxies of docs/tls-and-proxy.md and docs/scaling.md, followed: nginx, and HAProxy in front of two servers."""

import json
import re
import shutil
import signal
import socket
import sqlite3
import ssl
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from queue import SimpleQueue
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any

import httpx2
import pytest
import trustme
from processes import free_port

DOCS = Path(__file__).parents[2] / "docs"
PROXY = (DOCS / "tls-and-proxy.md").read_text(encoding="utf-8").split("## Behind a proxy")[1]
MACHINES = (DOCS / "scaling.md").read_text(encoding="utf-8").split("## More machines")[1]
HEADERS = {"accept": "application/json, text/event-stream", "authorization": "Bearer hush", "host": "gw.example"}
PATIENCE = 30.0
"""Seconds in which a busy machine connects, starts a worker, and answers."""
ENDLESS = "WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c"
NGINX = """
daemon off; master_process off; pid nginx.pid; error_log stderr;
events {}
http {
    access_log off; client_body_temp_path body; proxy_temp_path proxy;
    fastcgi_temp_path fastcgi; uwsgi_temp_path uwsgi; scgi_temp_path scgi;
"""


def needs(program: str) -> str:
    """Return the path of a program that is not everywhere."""
    found = shutil.which(program, path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if found is None:
        pytest.skip(f"{program} is not installed here")
    return found


class Server(Popen[str]):
    """A server whose log is read all the time: it leaves lines out that nobody reads."""

    def __init__(self, folder: Path) -> None:
        super().__init__([sys.executable, "-m", "dragoman", "serve"], cwd=folder, stderr=PIPE, text=True)
        self.lines = SimpleQueue[str]()
        self.reader = Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self) -> None:
        assert self.stderr is not None
        for line in self.stderr:
            self.lines.put(line)


@contextmanager
def serving(folder: Path, drain: int = 0) -> Iterator[tuple[Server, int]]:
    """Run the server that the page configures; yield it and its port."""
    (given,) = re.findall(r"```toml\n(.*?)```", PROXY, re.DOTALL)
    with sqlite3.connect(folder / "shop.db") as connection:
        connection.execute("CREATE TABLE IF NOT EXISTS orders (id INTEGER)")
    connection.close()
    text = given.replace("port = 8080", f"port = 0\ndrain = {drain}").replace("${DRAGOMAN_TOKEN}", "hush")
    (folder / "dragoman.toml").write_text(f'{text}\n[databases.shop]\nurl = "sqlite:///shop.db"\n')
    with running(folder) as served:
        yield served


@contextmanager
def running(folder: Path) -> Iterator[tuple[Server, int]]:
    """Run the server of a folder; yield it and its port."""
    with Server(folder) as process:
        try:
            yield process, int(logged(process, r"serving on http://127\.0\.0\.1:(\d+)/mcp")[1])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=60)
            process.reader.join()


@contextmanager
def proxying(folder: Path, *command: str, port: int) -> Iterator[None]:
    """Run a proxy, in front as soon as it accepts connections."""
    with Popen(command, cwd=folder) as process:
        try:
            until = time.monotonic() + 30
            while time.monotonic() < until and process.poll() is None:
                with socket.socket() as probe:
                    if probe.connect_ex(("127.0.0.1", port)) == 0:
                        break
            yield
        finally:
            process.terminate()


def logged(server: Server, pattern: str) -> re.Match[str]:
    while True:
        if found := re.search(pattern, server.lines.get(timeout=PATIENCE)):
            return found


def call(sql: str) -> dict[str, Any]:
    params = {"name": "execute_query", "arguments": {"sql": sql}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def check_proxy(client: httpx2.Client, server: Server) -> None:
    """A call is answered, and a query ends with the request of its caller, every time."""
    answer = client.post("/mcp", json=call("SELECT count(*) FROM orders"))
    assert (answer.status_code, answer.json()["result"]["structuredContent"]["rows"]) == (200, [[0]])
    for _ in range(5):
        with pytest.raises(httpx2.ReadTimeout):
            client.post("/mcp", json=call(ENDLESS), timeout=httpx2.Timeout(PATIENCE, read=1))
        line = logged(server, r'"outcome":"QUERY_(CANCELLED|TIMEOUT)"').string
        assert json.loads(line)["call"]["outcome"] == "QUERY_CANCELLED"


def test_nginx_passes_calls_on_and_tells_when_a_caller_leaves(tmp_path: Path) -> None:
    nginx, port, authority = needs("nginx"), free_port(), trustme.CA()
    (block,) = re.findall(r"```\n(server \{.*?)```", PROXY, re.DOTALL)
    certificate = authority.issue_cert("gw.example")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "gw.pem")
    secure = f"listen 127.0.0.1:{port} ssl; ssl_certificate {tmp_path}/gw.pem; ssl_certificate_key {tmp_path}/gw.pem;"
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with serving(tmp_path) as (server, gateway):
        own = block.replace("listen 443 ssl;", secure).replace("127.0.0.1:8080", f"127.0.0.1:{gateway}")
        (tmp_path / "nginx.conf").write_text(f"{NGINX}{own}}}\n")
        with (
            proxying(tmp_path, nginx, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), port=port),
            httpx2.Client(
                base_url=f"https://127.0.0.1:{port}", verify=context, headers=HEADERS, timeout=PATIENCE
            ) as client,
        ):
            client.event_hooks["request"].append(lambda request: request.extensions.update(sni_hostname="gw.example"))
            check_proxy(client, server)


def test_haproxy_asks_whether_servers_are_ready_and_no_call_is_lost_when_one_stops(tmp_path: Path) -> None:
    haproxy, port = needs("haproxy"), free_port()
    (block,) = re.findall(r"```\n(defaults.*?)```", MACHINES, re.DOTALL)
    block = block.replace("balance source", "balance roundrobin")  # all calls come from one address here
    with ExitStack() as stack:
        servers = list[Server]()
        for number, address in enumerate(("10.0.3.1:8080", "10.0.3.2:8080")):
            folder = tmp_path / str(number)
            folder.mkdir()
            server, gateway = stack.enter_context(serving(folder, drain=4))
            servers.append(server)
            block = block.replace(address, f"127.0.0.1:{gateway}")
        (tmp_path / "haproxy.cfg").write_text(block.replace("10.0.3.9:8080", f"127.0.0.1:{port}"))
        stack.enter_context(proxying(tmp_path, haproxy, "-f", str(tmp_path / "haproxy.cfg"), port=port))
        client = stack.enter_context(
            httpx2.Client(base_url=f"http://127.0.0.1:{port}", headers=HEADERS, timeout=PATIENCE)
        )
        for path in ("/ready", "/health", "/metrics", "//metrics", "/%6detrics", "/mcp/../metrics", "/"):
            assert client.get(path).status_code == 404, path
        # A server that its check calls down gets no call any more: long enough for two checks.
        until = time.monotonic() + 3
        while time.monotonic() < until:
            assert client.post("/mcp", json=call("SELECT 1")).status_code == 200
        servers[1].send_signal(signal.SIGTERM)
        while servers[1].poll() is None:
            assert client.post("/mcp", json=call("SELECT 1")).status_code == 200
        check_proxy(client, servers[0])


TRUSTING = """
[server]
transport = "http"
port = 0
trusted_proxies = ["127.0.0.1"]
[databases.shop]
url = "sqlite:///shop.db"
[roles.reader]
principals = ["ann"]
[[roles.reader.grants]]
database = "shop"
tables = ["*"]
"""
NAMING = "http-request set-header X-Forwarded-User mallory\n    http-request deny"
HEAD, DATA, END, END_OF_HEAD = 1, 0, 1, 4
ACCEPT = "application/json, text/event-stream"


class Streams(socket.socket):
    """A client of HTTP/2 that sends frames as it likes."""

    def __init__(self, port: int) -> None:
        super().__init__()
        self.settimeout(PATIENCE)
        self.connect(("127.0.0.1", port))
        self.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        self.frame(4, 0, 0, b"")
        self.frames = self.makefile("rb")

    def frame(self, kind: int, flags: int, stream: int, content: bytes) -> None:
        self.sendall(len(content).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + content)

    def begin(self, stream: int, host: str, length: int) -> None:
        fields = {":method": "POST", ":scheme": "http", ":path": "/mcp", ":authority": host, "accept": ACCEPT}
        fields |= {"content-type": "application/json", "content-length": str(length)}
        plain = ((name.encode(), value.encode()) for name, value in fields.items())
        literal = (b"\0%c%b%c%b" % (len(name), name, len(value), value) for name, value in plain)
        self.frame(HEAD, END_OF_HEAD, stream, b"".join(literal))

    def answer(self, stream: int) -> bytes:
        """Return what arrives until a stream ends."""
        content = b""
        while head := self.frames.read(9):
            content += self.frames.read(int.from_bytes(head[:3]))
            if int.from_bytes(head[5:]) == stream and head[3] in (HEAD, DATA) and head[4] & END:
                break
        return content


def test_nobody_behind_haproxy_writes_the_head_of_a_request(tmp_path: Path) -> None:
    """HAProxy sends the next request on a connection on which it has not sent the body of a refused one."""
    haproxy, port = needs("haproxy"), free_port()
    (tmp_path / "dragoman.toml").write_text(TRUSTING)
    sqlite3.connect(tmp_path / "shop.db").execute("CREATE TABLE orders (id INTEGER)").connection.close()
    body = json.dumps(call("SELECT 40 + 2")).encode()
    own = f"POST /mcp HTTP/1.1\r\nhost: localhost\r\nx-forwarded-user: ann\r\naccept: {ACCEPT}\r\n"
    own += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    hidden = b"\r\n" * 500 + own.encode() + body  # the first request's length is somewhere in the empty lines
    (block,) = re.findall(r"```\n(defaults.*?)```", MACHINES, re.DOTALL)
    with running(tmp_path) as (_, gateway):
        block = block.replace("10.0.3.9:8080", f"127.0.0.1:{port} proto h2").replace("http-request deny", NAMING)
        block = re.sub(r"server two .*", "", block).replace("10.0.3.1:8080", f"127.0.0.1:{gateway}")
        (tmp_path / "haproxy.cfg").write_text(block)
        with proxying(tmp_path, haproxy, "-f", str(tmp_path / "haproxy.cfg"), port=port):
            for _ in range(3):
                with Streams(port) as client, client.frames:
                    client.begin(1, "evil.example", 800)
                    assert b"unknown_host" in client.answer(1)
                    client.frame(DATA, END, 1, b"")
                    client.begin(3, "localhost", len(hidden))
                    client.frame(DATA, END, 3, hidden)
                    assert b"Parse error" in client.answer(3)
