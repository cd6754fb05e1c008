"""What sign-in, roles, quotas, audit and metrics add to a call: `python tests/benchmarks/service_cost.py`.

Processor time of each part, best of 25 rounds, and of a repeated query on SQLite without them. Exit code 1 when they
take more than 50 microseconds together and more than 5 % of that query: on a slow machine the ratio counts.
"""

from __future__ import annotations

import asyncio
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dragoman import Gateway
from dragoman.auth.tokens import hash_token, make_token
from dragoman.config import load
from dragoman.gateway.calls import Admission, CallRecord, Limiter
from dragoman.gateway.recording import Recorder
from dragoman.gateway.sinks import Sinks
from dragoman.mcp.identity import SignIn
from dragoman.tools import Answer, Toolbox

ROUNDS, TIMES, QUERIES = 25, 1000, 50
MOST, SHARE = 50.0, 0.05
TOKENS = [make_token() for _ in range(1000)]
SQL = "SELECT count(*) AS n FROM orders"
BARE = '[databases.shop]\nurl = "sqlite:///shop.db"\n'
WHOLE = BARE + "".join(
    f'[[server.tokens]]\nname = "t{place}"\nhash = "{hash_token(each)}"\n' for place, each in enumerate(TOKENS)
)
WHOLE += """
[audit]
path = "audit/calls.jsonl"
[roles.reader]
tokens = ["t500"]
[[roles.reader.grants]]
database = "shop"
tables = ["main.*"]
[roles.reader.limits]
calls_per_minute = 100000000
"""


async def main() -> int:
    """Print what each part takes."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sqlite3.connect(folder / "shop.db").execute("CREATE TABLE orders (id INTEGER)").connection.close()
        base, parts = await query(folder), await measure(folder)
    for name, taken in parts.items():
        print(f"{name:10} {taken:7.2f} us", file=sys.stderr)
    whole = sum(parts.values())
    print(f"{'together':10} {whole:7.2f} us beside a query of {base:.0f} us: {whole / base:.1%}", file=sys.stderr)
    return int(whole > MOST and whole / base > SHARE)


async def query(folder: Path) -> float:
    """Return the microseconds of a repeated query without any of the parts."""
    (folder / "bare.toml").write_text(BARE)
    async with Gateway.open(load(folder / "bare.toml", environ={}, folder=folder)) as gateway:
        toolbox = Toolbox(gateway)
        best, answer = float("inf"), Answer("")
        for _ in range(ROUNDS):
            began = time.process_time()
            for _ in range(QUERIES):
                answer = await toolbox.call("execute_query", {"sql": SQL})
            best = min(best, (time.process_time() - began) / QUERIES * 1e6)
            assert not answer.is_error, answer.text
        return best


async def measure(folder: Path) -> dict[str, float]:
    """Return the microseconds of each part of a call."""
    (folder / "whole.toml").write_text(WHOLE)
    configuration = load(folder / "whole.toml", environ={}, folder=folder)
    sign_in = SignIn(configuration.server, "/mcp")
    scope: Any = {"type": "http", "headers": [(b"authorization", b"Bearer " + TOKENS[500].encode())]}
    principal = await sign_in(scope)
    async with Gateway.open(configuration) as gateway:
        toolbox = Toolbox(gateway)
        await gateway.query("shop", SQL, principal=principal)
        quotas = gateway._calls.quotas
        assert quotas is not None
        record = CallRecord(Admission(Limiter("calls", 1, 1)), principal, "execute_query", "shop", rows=1, bytes=9)
        record.sql, record.relations = SQL, ("orders",)
        recorder = Recorder(Sinks(configuration.audit))
        file = recorder._sinks.file
        assert file is not None
        parts: dict[str, Callable[[], object]] = {
            "sign-in": lambda: drive(sign_in(scope)),
            "roles": lambda: (
                toolbox.offers("execute_query", principal),
                gateway.for_principal(principal).database("shop"),
            ),
            "quotas": lambda: (quotas.charge(principal), quotas.spend(principal, 1, 9)),
            "audit": lambda: recorder._write(file, record, encoded(recorder, record)),
            "metrics": lambda: recorder.metrics.observe(record),
        }
        try:
            return {name: best(part) for name, part in parts.items()}
        finally:
            await recorder.aclose()


def encoded(recorder: Any, record: CallRecord) -> bytes:
    """Return a call as the audit keeps it."""
    from dragoman.audit import encode

    return encode(recorder._make_record(record))


def drive(coroutine: Any) -> None:
    """Run what never waits."""
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise AssertionError("it waited")


def best(part: Callable[[], object]) -> float:
    """Return the microseconds of one part in the best round."""
    rounds: list[float] = []
    for _ in range(ROUNDS):
        began = time.process_time()
        for _ in range(TIMES):
            part()
        rounds.append((time.process_time() - began) / TIMES * 1e6)
    return min(rounds)


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
