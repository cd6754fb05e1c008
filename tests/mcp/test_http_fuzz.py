"""Odd requests of every shape over HTTP: without the token no call runs, none holds the server up, none breaks it.

The requests are made from a fixed seed: good ones and those of the other tests, cut, spliced, doubled and changed.
"""

import asyncio
import random
import re
from collections.abc import AsyncIterator
from typing import Any

import pytest
import trustme
from certificates import certify, trusting
from test_middleware import AMBIGUOUS, BODY, HALVES, HASTY, TOKEN, Clients, head

CROWD = 40
"""Connections at once."""
IDLE = 2
"""Seconds after which the server ends a connection that asks nothing more: the tests read until its end."""
ODD = [b"\0", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b"\xff", b"\x80", b"%00", b"\x1b[2J", b"HTTP/9.9"]
LINES = [
    *(b"transfer-encoding: chunked", b"transfer-encoding: identity", b"content-length: 0", b"content-length: 9e9"),
    *(b"content-length: 18446744073709551616", b"authorization: Bearer", b"authorization: Basic eDp5", b"host: x"),
    *(b"origin: null", b"expect: 100-continue", b"upgrade: h2c", b"connection: upgrade", b"x-forwarded-user: root"),
    *(b"mcp-session-id: " + b"a" * 300, b"x: " + b"y" * 70_000, b": nameless", b"no colon", b"content-type: x/y"),
]
STARTS = [b"GET /mcp HTTP/1.1", b"POST http://x/mcp HTTP/1.1", b"POST //mcp HTTP/1.0", b"OPTIONS * HTTP/1.1", b""]


class Maker:
    """Makes what a client without the token may send, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def sent(self) -> bytes:
        """Return the bytes of one connection."""
        kinds = [*HALVES.values(), *AMBIGUOUS.values(), *[head(authorization=None) + BODY] * 40]
        sent = self.random.choice(kinds).replace(TOKEN.encode(), b"a-token-somebody-guessed")
        for _ in range(self.random.randrange(4)):
            sent = self.random.choice([self.cut, self.insert, self.splice, self.line, self.start, self.flip])(sent)
        return sent

    def place(self, sent: bytes) -> int:
        return self.random.randrange(len(sent) + 1)

    def cut(self, sent: bytes) -> bytes:
        return sent[: self.place(sent)]

    def insert(self, sent: bytes) -> bytes:
        place = self.place(sent)
        return sent[:place] + self.random.choice(ODD) * self.random.choice([1, 1, 3, 1000]) + sent[place:]

    def splice(self, sent: bytes) -> bytes:
        return sent + sent[self.place(sent) :]

    def line(self, sent: bytes) -> bytes:
        lines = sent.split(b"\r\n")
        lines.insert(self.random.randrange(len(lines)), self.random.choice([*LINES, *lines]))
        return b"\r\n".join(lines)

    def start(self, sent: bytes) -> bytes:
        return self.random.choice(STARTS) + sent[max(sent.find(b"\r\n"), 0) :]

    def flip(self, sent: bytes) -> bytes:
        changed = bytearray(sent)
        for _ in range(min(len(changed), 3)):
            changed[self.random.randrange(len(changed))] = self.random.randrange(256)
        return bytes(changed)

    def pieces(self, sent: bytes) -> list[bytes]:
        """Cut into up to three writes."""
        first, second = sorted((self.place(sent), self.place(sent)))
        return [sent[:first], sent[first:second], sent[second:]]


@pytest.fixture(scope="module", params=["http", "https"])
async def server(
    anyio_backend: str, serve_standin: Any, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Any]:
    if request.param == "http":
        async with serve_standin(TOKEN, **HASTY, idle=IDLE) as (peer, url):
            yield peer, url, None
    else:
        authority, folder = trustme.CA(), tmp_path_factory.mktemp("secured")
        certify(folder, authority)
        # The handshakes of the crowd keep this process busy, and so the good client who comes beside it.
        async with serve_standin(TOKEN, folder / "tls", **HASTY | {"head": 4.0}, idle=IDLE) as (peer, url):
            yield peer, url, trusting(authority)


async def _exchange(clients: Clients, pieces: list[bytes]) -> bytes:
    """Connect, and send what a connection has to say; return all that is answered until the server ends it."""
    try:
        client = await clients.connect()
    except ConnectionError:  # with TLS the time for a head may be over before the handshake
        return b""
    try:
        for piece in pieces:
            await client.send(piece)
    except ConnectionError:
        pass
    return await client.rest()


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "rounds", [1, pytest.param(6, marks=pytest.mark.full), pytest.param(200, marks=pytest.mark.nightly)]
)
async def test_whatever_comes_in_no_call_runs_without_the_token_and_others_are_answered(server: Any, rounds: int):
    peer, url, tls = server
    maker = Maker(rounds)
    for _ in range(rounds):
        async with Clients(url, tls) as clients:
            crowd = [maker.sent() for _ in range(CROWD)]
            work = [asyncio.create_task(_exchange(clients, maker.pieces(sent))) for sent in crowd]
            await clients.answers()
            answers = await asyncio.gather(*work)
            await clients.answers()
        for sent, answer in zip(crowd, answers, strict=True):
            assert b'"result"' not in answer, sent
            statuses = {int(found) for found in re.findall(rb"HTTP/1.1 (\d+)", answer)}
            assert statuses <= {100, 200, 202, 204, 400, 401, 403, 404, 405, 413, 421, 431, 501}, sent
    assert "Traceback" not in "".join(peer.log), "\n".join(peer.log)
    refusals = [line for line in peer.log if line.startswith("refused")]
    assert refusals
    assert all(line.startswith("refused 127.0.0.1") for line in refusals)


async def test_the_fuzz_sees_calls_that_run(serve_standin: Any):
    async with serve_standin("", **HASTY) as (_, url), Clients(url) as clients:
        sent = head(authorization=None, connection="close") + BODY
        assert b'"result"' in await _exchange(clients, [sent])
