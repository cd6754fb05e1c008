"""The kit over every mutant and over the plugin without a fault; test_mutants.py runs it in a process of its own."""

import contextlib
import sqlite3
from typing import ClassVar

import mutants
import pytest
from dragoman import Capability, Database
from dragoman.testing import DialectConformance

TIMESTAMP = "'2024-02-29 13:14:15.123456'"


class Harness(DialectConformance):
    mutant: ClassVar[str]
    relations = 5
    engine_lacks = frozenset({Capability.COMMENTS})
    failing_query = "SELECT abs(-9223372036854775807 - 1) AS overflow"
    literals: ClassVar = {
        "midnight": "'2024-02-29 00:00:00'",
        "early_date": "date('0044-03-15')",
        "timestamp": TIMESTAMP,
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        cls.fill("sqlite", sqlite3.connect(folder / "sample.db"))
        return Database(name="sample", dialect=cls.mutant, database="sample.db", folder=folder)

    async def alter(self, database, statement):
        with contextlib.closing(sqlite3.connect(mutants.file_of(database))) as connection:
            connection.execute(statement)
        return database


for name in ("sqlite", *mutants.PLUGINS):
    globals()[f"Test_{name}"] = type(f"Test_{name}", (Harness,), {"mutant": name})
