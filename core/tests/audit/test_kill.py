"""Processes that are killed in the middle of their work: every answer that left has its record, and the chain holds."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from dragoman.audit import records, verify_files

# Imports everything once. For each name it is told, forks a process that answers queries as fast as it can, from
# several tasks, and says its id, then each answer's number once it has it. For an id, it waits for the end of that
# process and says how it ended.
NURSERY = """
import asyncio, os, sys
from pathlib import Path
from dragoman import Database, Gateway
from dragoman.config import Audit, Configuration
import dragoman_sqlite.plugin

async def answer(folder, name, said):
    # A process waits while nobody reads what it says: that may not be the end of its queries.
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder, timeout=3_600.0, pool_size=1)
    configuration = Configuration(databases={"shop": shop}, audit=Audit(path=folder / "audit.jsonl"))
    async with Gateway.open(configuration) as gateway:
        async def ask(first):
            for number in range(first, 10**9, 3):
                await gateway.query("shop", f"SELECT '{name}-{number}'")
                os.write(said, f"{name}-{number}\\n".encode())
        await asyncio.gather(*(ask(first) for first in range(3)))

def work(folder, name):
    try:
        said = os.open(folder / name, os.O_WRONLY)
        os.write(said, f"{os.getpid()}\\n".encode())
        asyncio.run(answer(folder, name, said))
    finally:
        os._exit(1)

for line in sys.stdin:
    word, told = line.split()
    if word == "end":
        print(os.waitstatus_to_exitcode(os.waitpid(int(told), 0)[1]), flush=True)
    elif os.fork() == 0:
        work(Path(sys.argv[1]), told)
"""


class Nursery:
    """Starts processes that answer, and tells how they ended."""

    def __init__(self, folder: Path, pipes: subprocess.Popen[str]) -> None:
        self._folder = folder
        self._pipes = pipes

    def start(self, name: str) -> None:
        os.mkfifo(self._folder / name)
        self._tell(f"start {name}")

    def kill(self, name: str, after: int) -> list[str]:
        """Kill a process once it has said some answers; return all that it said."""
        with (self._folder / name).open() as said:
            pid = int(said.readline())
            lines = [said.readline() for _ in range(after)]
            os.kill(pid, signal.SIGKILL)
            lines += said
        self._tell(f"end {pid}")
        assert self._pipes.stdout is not None
        assert int(self._pipes.stdout.readline()) == -signal.SIGKILL
        return [line.strip() for line in lines if line.endswith("\n")]

    def _tell(self, line: str) -> None:
        assert self._pipes.stdin is not None
        self._pipes.stdin.write(f"{line}\n")
        self._pipes.stdin.flush()


@contextmanager
def nursery(folder: Path):
    command = [sys.executable, "-c", NURSERY, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as pipes:
        yield Nursery(folder, pipes)


def kill_while_they_answer(folder: Path, processes: int, at_once: int) -> None:
    sqlite3.connect(folder / "shop.db").execute("CREATE TABLE t (a)")
    answered: set[str] = set()
    with nursery(folder) as started:
        for first in range(0, processes, at_once):
            names = [str(name) for name in range(first, min(first + at_once, processes))]
            for name in names:
                started.start(name)
            for place, name in enumerate(names):
                answered.update(started.kill(name, after=2 + place % 5))
    path = folder / "audit.jsonl"
    found = verify_files(path)
    recorded = {record.sql.removeprefix("SELECT '").rstrip("'") for record in records(path) if record.outcome == "ok"}
    assert found.faults == []
    assert len(answered) >= 2 * processes
    assert answered <= recorded, json.dumps(sorted(answered - recorded))


@pytest.mark.full
def test_every_answer_of_killed_processes_has_its_record(tmp_path: Path):
    kill_while_they_answer(tmp_path, 24, 4)


@pytest.mark.nightly
@pytest.mark.timeout(3600)
def test_every_answer_of_a_thousand_killed_processes_has_its_record(tmp_path: Path):
    kill_while_they_answer(tmp_path, 1000, 4)
