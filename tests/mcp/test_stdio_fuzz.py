"""Odd messages of every kind over stdio, in both eras: the server survives them, and answers every id it can read.

The messages are made from a fixed seed. Each batch ends with a good call, which has to work.
"""

import asyncio
import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
DEEP: Any = json.loads("[" * 150 + "]" * 150)
VALUES: list[Any] = [
    *(None, True, False, 0, -1, 7, 1.5, 1e300, 2**31, 2**63, 2**70, 10**400),
    *(
        "",
        "x",
        "é\u2028\U0001f600",
        "\x00\x1f",
        "x" * 70_000,
        [],
        [1, "a", None],
        {},
        {"": {}},
        {"requestId": {}},
        DEEP,
    ),
]
METHODS = [
    *("initialize", "ping", "tools/list", "tools/call", "server/discover", "resources/list", "resources/read"),
    *("prompts/get", "completion/complete", "logging/setLevel", "tasks/get", "sampling/createMessage", "no/such", ""),
]
NOTIFICATIONS = [
    *("notifications/cancelled", "notifications/initialized", "notifications/progress", "notifications/message"),
    *("notifications/roots/list_changed", "notifications/no/such", "initialize", "tools/call"),
]


class Maker:
    """Makes messages of one era from a seed."""

    def __init__(self, modern: bool, seed: int) -> None:
        self.random = random.Random(seed)
        self.modern = modern
        self._ids = itertools.count(1000)

    def id(self) -> int | str:
        """Return an id never used before: some are odd, and all are right."""
        number = next(self._ids)
        return self.random.choice(
            [number, number, -number, 2**53 + number, str(number), f'é {number} "\\', "x" * 300 + str(number)]
        )

    def value(self) -> Any:
        return self.random.choice(VALUES)

    def meta(self) -> Any:
        whole = dict(ENVELOPE) if self.modern else {}
        return self.random.choice(
            [
                whole,
                self.value(),
                {"progressToken": self.value(), **whole},
                {**whole, self.random.choice([*ENVELOPE, "traceparent", "x"]): self.value()},
                dict(self.random.sample(sorted(ENVELOPE.items(), key=str), self.random.randrange(3))),
            ]
        )

    def params(self, method: str) -> Any:
        name = self.random.choice(["echo", "echo", "fail", "crash", "count", "nothing", self.value()])
        shapes: list[Any] = [
            {"name": name, "arguments": {"a": self.value()}, "_meta": self.meta()},
            {"name": name, "arguments": self.value()},
            {"_meta": self.meta(), "cursor": self.value()},
            {"protocolVersion": self.value(), "capabilities": self.value(), "clientInfo": self.value()},
            {"requestId": self.value(), "reason": self.value()},
            {
                "requestId": [self.value()],
                "progressToken": self.value(),
                "progress": self.value(),
                "level": self.value(),
            },
            {"uri": self.value(), "ref": self.value(), "argument": self.value(), "_meta": self.meta()},
            self.value(),
        ]
        return self.random.choice(shapes)

    def request(self) -> tuple[Any, dict[str, Any]]:
        identifier, method = self.id(), self.random.choice([*METHODS, "tools/call", "tools/call", self.value()])
        message = {"jsonrpc": "2.0", "id": identifier, "method": method, "params": self.params(str(method))}
        if self.random.random() < 0.2:
            message[self.random.choice(["jsonrpc", "method", "params", "result", "error", "extra"])] = self.value()
        if self.random.random() < 0.1:
            del message[self.random.choice(["jsonrpc", "params"])]
        return identifier, dict(self.random.sample(list(message.items()), len(message)))

    def other(self) -> Any:
        """Return what is no request whose id could be read: notifications, answers, wrong ids, batches, no objects."""
        notification = {"jsonrpc": "2.0", "method": self.random.choice([*NOTIFICATIONS, self.value()])}
        notification["params"] = self.params("")
        _, request = self.request()
        wrong_id = {**request, "id": self.random.choice([None, True, 1.5, [], {}, [1]])}
        response = {"jsonrpc": "2.0", "id": self.id(), self.random.choice(["result", "error"]): self.value()}
        return self.random.choice([notification, notification, wrong_id, response, [request], self.value()])

    def broken(self) -> tuple[Any, bytes]:
        """Return a request that a strict parser refuses although its id stands there, and the id."""
        identifier = self.id()
        odd = self.random.choice(
            [
                rb'"\ud800"',
                rb'"\udc00\ud800"',
                rb'{"\ud83d": 1}',
                b"[" * 3000 + b"]" * 3000,
                b'{"a":' * 1000 + b"1" + b"}" * 1000,
                b'"\xff\xfe"',
                b'"\xed\xa0\x80"',
                b"nan",
                b"01",
                b"1" * 5000,
                b"[1,]",
                b"'x'",
                b'"\x01"',
                b'"\\x"',
                b"",
            ]
        )
        body = {"jsonrpc": "2.0", "method": "tools/call", "id": identifier}
        members = [b'"%b":%b' % (key.encode(), json.dumps(value).encode()) for key, value in body.items()]
        members.append(b'"params":{"name":"echo","arguments":{"id":5,"sql":%b}}' % odd)
        self.random.shuffle(members)
        return identifier, b"{" + b", ".join(members) + b"}"

    def doubled(self) -> tuple[Any, bytes]:
        """Return a request with a member twice: the last one counts."""
        identifier = self.id()
        first = b'{"jsonrpc":"2.0","id":"never","method":"ping","id":'
        return identifier, first + json.dumps(identifier).encode() + b',"params":{},"params":{}}'

    def good(self) -> tuple[Any, bytes]:
        identifier = self.id()
        params = {"name": "echo", "arguments": {"a": 1}} | ({"_meta": ENVELOPE} if self.modern else {})
        return identifier, encoded({"jsonrpc": "2.0", "id": identifier, "method": "tools/call", "params": params})

    def batch(self, size: int) -> Iterator[tuple[Any, bytes]]:
        """Yield lines, each with the id its answer must have, or None when it is no request with one."""
        for _ in range(size):
            kind = self.random.random()
            if kind < 0.55:
                identifier, message = self.request()
                yield identifier, encoded(message)
            elif kind < 0.75:
                yield None, encoded(self.other())
            elif kind < 0.9:
                yield self.broken()
            elif kind < 0.95:
                yield self.doubled()
            else:
                noise = self.random.choice(
                    [b"", b" \t", b"\xef\xbb\xbf{}", b"\x00", b"{", b'"', b'{"id":5', b"}{", b"\\"]
                )
                yield None, noise


def encoded(message: Any) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


async def begin(peer: Any, modern: bool) -> None:
    if modern:
        await peer.request(0, "server/discover", _meta=ENVELOPE)
    else:
        await peer.handshake()


async def answers(peer: Any, expected: set[Any]) -> dict[Any, list[dict[str, Any]]]:
    """Read until every expected id was answered; return all that came, by id."""
    found: dict[Any, list[dict[str, Any]]] = {}
    while expected - found.keys():
        message = await peer.receive()
        if "method" not in message:
            found.setdefault(message["id"], []).append(message)
    return found


@pytest.mark.parametrize("modern", [False, True], ids=["2025", "2026"])
@pytest.mark.parametrize("batches", [12, pytest.param(400, marks=[pytest.mark.nightly, pytest.mark.timeout(900)])])
async def test_whatever_comes_in_every_readable_id_is_answered_once(peer: Any, modern: bool, batches: int) -> None:
    maker = Maker(modern, seed=batches)
    await begin(peer, modern)
    for _ in range(batches):
        lines = list(maker.batch(40))
        last, good = maker.good()
        expected = {identifier for identifier, _ in lines if identifier is not None} | {last}
        # Sent while answers are read: both pipes are bounded.
        _, found = await asyncio.gather(peer.send(*(line for _, line in lines), good), answers(peer, expected))
        assert {key: len(said) for key, said in found.items() if key is not None and len(said) > 1} == {}
        assert found.keys() <= expected | {None}
        assert found[last][0]["result"]["structuredContent"]["arguments"] == {"a": 1}
    peer.close_stdin()
    assert await peer.ended(20) == 0
    told = [line for line in peer.log if "Traceback" in line or line.startswith("the toolbox failed on crash")]
    assert told == ["the toolbox failed on crash", "Traceback (most recent call last):"] * (len(told) // 2)


OPENINGS = {
    "a cancel of an object": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}',
    "a cancel of a list": b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":[[]]}}',
    "a cancel without anything": b'{"jsonrpc":"2.0","method":"notifications/cancelled"}',
    "a lone surrogate": rb'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"x":"\ud800"}}',
    "an answer to nothing": b'{"jsonrpc":"2.0","id":1,"result":{}}',
    "half an envelope": b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{}}}',
    "an initialize without params": b'{"jsonrpc":"2.0","id":1,"method":"initialize"}',
}


@pytest.mark.parametrize("opening", OPENINGS)
async def test_an_odd_opening_does_not_end_the_server(peer: Any, opening: str) -> None:
    await peer.send(OPENINGS[opening])
    await peer.handshake()
    assert "result" in await peer.call(9, "echo")
