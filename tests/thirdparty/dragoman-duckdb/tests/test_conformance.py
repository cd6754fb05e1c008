from typing import ClassVar

import duckdb
import pytest
from dragoman import Database
from dragoman.testing import DialectConformance, never


class TestDuckDB(DialectConformance):
    literals: ClassVar = {"binary": r"CAST('\x00\xFF\x10' AS BLOB)"}
    gaps: ClassVar = {
        "a_second_statement_is_refused_by_the_driver_itself": never("The driver runs every one of a text")
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        cls.fill("duckdb", duckdb.connect(folder / "sample.duckdb"))
        return Database(name="sample", dialect="duckdb", database="sample.duckdb", folder=folder)
