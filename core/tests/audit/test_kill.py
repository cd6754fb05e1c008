"""Processes that are killed in the middle of their work: every answer that left has its record, and the chain holds."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from dragoman.audit import records, verify_files

# Answers queries as fast as it can, from several tasks, and says each answer's number once it has it.
WORKER = """
import asyncio, sys
from pathlib import Path
from dragoman import Database, Gateway
from dragoman.config import Audit, Configuration

async def main(folder, name):
    # A process waits while nobody reads what it says: that may not be the end of its queries.
    shop = Database(name="shop", dialect="sqlite", database="shop.db", folder=folder, timeout=3_600.0)
    configuration = Configuration(databases={"shop": shop}, audit=Audit(path=folder / "audit.jsonl"))
    async with Gateway.open(configuration) as gateway:
        async def ask(first):
            for number in range(first, 10**9, 3):
                await gateway.query("shop", f"SELECT '{name}-{number}'")
                sys.stdout.write(f"{name}-{number}\\n")
                sys.stdout.flush()
        await asyncio.gather(*(ask(first) for first in range(3)))

asyncio.run(main(Path(sys.argv[1]), sys.argv[2]))
"""


def kill_while_they_answer(folder: Path, processes: int, at_once: int) -> None:
    sqlite3.connect(folder / "shop.db").execute("CREATE TABLE t (a)")
    answered: set[str] = set()
    for first in range(0, processes, at_once):
        running = [
            subprocess.Popen([sys.executable, "-c", WORKER, str(folder), str(name)], stdout=subprocess.PIPE, text=True)
            for name in range(first, min(first + at_once, processes))
        ]
        for place, process in enumerate(running):
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(2 + place % 5)]
            process.send_signal(signal.SIGKILL)
            answered.update(line.strip() for line in [*lines, *process.stdout] if line.endswith("\n"))
            process.stdout.close()
            assert process.wait() == -signal.SIGKILL
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
