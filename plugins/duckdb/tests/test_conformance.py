"""The conformance kit over DuckDB."""

from typing import ClassVar

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
