"""The conformance kit over DuckDB."""

import dataclasses
import shutil
from typing import ClassVar
from uuid import uuid4

import duckdb
import pytest
from dragoman import Database
from dragoman.testing import DialectConformance


class TestDuckDB(DialectConformance):
    literals: ClassVar = {
        "unsigned_64_bit_integer": "CAST(18446744073709551615 AS UBIGINT)",
        "binary": r"CAST('\x00\xFF\x10' AS BLOB)",
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        cls.fill("duckdb", duckdb.connect(folder / "sample.duckdb"))
        return Database(name="sample", dialect="duckdb", database="sample.duckdb", folder=folder)

    async def alter(self, database, statement):
        assert database.database is not None
        copy = database.folder / f"{uuid4()}.duckdb"
        shutil.copy(database.folder / database.database, copy)
        with duckdb.connect(copy) as connection:
            connection.execute(statement)
        return dataclasses.replace(database, database=copy.name)
