from typing import ClassVar

import duckdb
import pytest
from dragoman import Database
from dragoman.testing import DialectConformance, never, not_yet


class TestDuckDB(DialectConformance):
    literals: ClassVar = {"binary": r"CAST('\x00\xFF\x10' AS BLOB)"}
    gaps: ClassVar = {
        "a_month_is_not_thirty_days": not_yet("The driver makes a timedelta of every interval, which knows no months"),
        "a_second_statement_is_refused_by_the_driver_itself": never("The driver runs every statement of a text"),
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        cls.fill("duckdb", duckdb.connect(folder / "sample.duckdb"))
        return Database(name="sample", dialect="duckdb", database="sample.duckdb", folder=folder)
