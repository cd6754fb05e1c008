"""Damaged files: every call ends in words of ours, and what is damaged keeps nobody from the rest.

A damaged table fails again and again, as when a caller does not give up. What answered before answers then, too.
"""

from __future__ import annotations

import asyncio
import json
import random
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from damaging import MAKERS, PAGES, TABLES, damage, seal
from dragoman import ConfigurationError, Database, Gateway
from dragoman.config import Configuration
from dragoman.config.roles import Grant, Role
from dragoman.gateway.breaker import FAILURES
from dragoman.tools import Toolbox
from pauses import BUGS

pytestmark = [pytest.mark.timeout(600), pytest.mark.usefixtures("hints_of_each_gateway")]

LONGEST = 60.0
"""Seconds in which every call ends, on a busy machine too. Its own limit is 10."""
KEYS = {"unrowed": "code", "notes": "body"}
STATEMENTS = (
    "SELECT count(*) FROM {table}",
    "SELECT * FROM {table}",
    "SELECT max({key}) FROM {table}",
    "SELECT * FROM {table} ORDER BY 1 DESC LIMIT 3",
    "SELECT a.* FROM {table} AS a JOIN {table} AS b USING ({key}) LIMIT 5",
)
COUNTS = {"sqlite": (8, 400), "duckdb": (5, 100), "folder": (5, 100)}
"""Files of each kind, in CI and at night."""
CASES = [
    pytest.param(kind, number, id=f"{kind}-{number}", marks=[pytest.mark.nightly, pytest.mark.timeout(7200)] * late)
    for kind, numbers in COUNTS.items()
    for late, number in enumerate(numbers)
]


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """A folder with a whole file of each kind."""
    folder = tmp_path_factory.mktemp("whole")
    for kind, make in MAKERS.items():
        make(folder / kind)
    return folder


class Patient:
    """A copy of a whole database, served, with damage of its own."""

    def __init__(self, kind: str, path: Path, rng: random.Random) -> None:
        self.kind, self.path, self.rng = kind, path, rng
        self.toolbox: Toolbox

    def hurt(self) -> None:
        """Damage a file of it; never the folder's table `other`."""
        files = [self.path]
        if self.kind == "folder":
            files = [file for file in sorted(self.path.iterdir()) if file.stem != "other"]
        damage(self.rng.choice(files), PAGES[self.kind], self.rng)
        if self.kind == "duckdb" and self.rng.random() < 0.7:
            seal(self.path)

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        """Serve it: with roles, whose filters SQLite puts around each table, or without."""
        dialect = "sqlite" if self.kind == "sqlite" else "duckdb"
        database = Database(name="hurt", dialect=dialect, database=str(self.path), timeout=10.0)
        named = ("main.*", "main.boxes", "main.notes") if dialect == "sqlite" else ("main.*",)
        grant = Grant(database="hurt", tables=named, filter="1 = 1" if dialect == "sqlite" else None)
        role = Role(name="everybody", groups=frozenset({"*"}), grants=(grant,))
        roles = {"everybody": role} if self.rng.random() < 0.5 else {}
        async with Gateway.open(Configuration(databases={"hurt": database}, roles=roles)) as gateway:
            self.toolbox = Toolbox(gateway)
            yield

    async def ask(self, tool: str, **arguments: Any) -> str:
        """Return the code of a call's error, or nothing. A call that never ends fails the test."""
        async with asyncio.timeout(LONGEST):
            answer = await self.toolbox.call(tool, arguments)
        return json.loads(answer.text)["error"]["code"] if answer.is_error else ""

    async def query(self, sql: str) -> str:
        return await self.ask("execute_query", sql=sql)

    async def look(self) -> tuple[list[str], list[str], list[str]]:
        """Ask everything once. Return the statements that answer, those that fail, and what was told as a bug."""
        codes = {}
        for table in TABLES[self.kind]:
            for each in STATEMENTS:
                sql = each.format(table=table, key=KEYS.get(table, "id"))
                codes[sql] = await self.query(sql)
            codes[f"a sample of {table}"] = await self.ask("get_sample_rows", table_name=table)
            codes[f"the description of {table}"] = await self.ask("describe_table", table_name=table)
            codes[f"the plan of {table}"] = await self.ask("explain_query", sql=f"SELECT * FROM {table}")
        for tool in ("list_tables", "list_schemas", "list_databases"):
            codes[tool] = await self.ask(tool)
        asked = {sql: code for sql, code in codes.items() if sql.startswith("SELECT")}
        bugs = [f"{what}: {code}" for what, code in codes.items() if code in BUGS]
        return [sql for sql, code in asked.items() if not code], [sql for sql, code in asked.items() if code], bugs

    async def insist(self, answering: list[str], failing: list[str]) -> list[str]:
        """Repeat what fails, and return what answered before and does not any more."""
        lost = []
        for bad in self.rng.sample(failing, min(2, len(failing))) if answering else ():
            for _ in range(FAILURES + 1):
                await self.query(bad)
            some = self.rng.sample(answering, min(2, len(answering)))
            codes = [(good, await self.query(good)) for good in some]
            lost += [f"{good}: {code} after {bad}" for good, code in codes if code]
        return lost


async def faults(kind: str, path: Path, seed: int) -> list[str]:
    """Damage a copy, before it is served or meanwhile, and return what goes wrong then."""
    patient = Patient(kind, path, random.Random(f"{kind} {seed}"))
    early = patient.rng.random() < 0.5
    if early:
        patient.hurt()
    try:
        async with patient.served():
            if not early:
                await patient.query("SELECT count(*) FROM plain")
                patient.hurt()
            answering, failing, bugs = await patient.look()
            return bugs + await patient.insist(answering, failing)
    except ConfigurationError:  # what roles name is not there any more
        return []


@pytest.mark.parametrize(("kind", "number"), CASES)
async def test_damage_is_told_in_words_and_keeps_nobody_from_the_rest(whole, tmp_path, kind, number):
    wrong = []
    for seed in range(number):
        path = tmp_path / f"{kind}{seed}"
        copied = shutil.copytree if kind == "folder" else shutil.copy
        copied(whole / kind, path)
        wrong += [f"seed {seed}: {fault}" for fault in await faults(kind, path, seed)]
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert wrong == []
