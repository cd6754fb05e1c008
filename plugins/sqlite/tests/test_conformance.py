"""The conformance kit over SQLite."""

import contextlib
import sqlite3
from typing import ClassVar

import pytest
from dragoman import Capability, Database
from dragoman.testing import DialectConformance, never

NO_DECIMALS = never("SQLite has no decimals: NUMERIC is an integer or a binary float")
NO_BOOLEANS = never("SQLite has no booleans: TRUE is 1")


class TestSQLite(DialectConformance):
    engine_lacks = frozenset({Capability.COMMENTS})
    failing_query = "SELECT abs(-9223372036854775807 - 1) AS overflow"
    failing_late_query = (
        f"SELECT abs(CASE WHEN q.n = {DialectConformance.last_row} THEN -9223372036854775807 - 1 END) AS v"
        f" FROM ({DialectConformance.many_rows}) q"
    )
    literals: ClassVar = {
        "infinity": "9e999",
        "negative_infinity": "-9e999",
        "midnight": "'2024-02-29 00:00:00'",
        "date": "date('2024-02-29')",
        "timestamp": "'2024-02-29 13:14:15.123456'",
    }
    gaps: ClassVar = {
        "a_value_is_exact[decimal]": NO_DECIMALS,
        "a_value_is_exact[decimal_without_a_fraction]": NO_DECIMALS,
        "a_value_is_exact[negative_decimal]": NO_DECIMALS,
        "a_value_is_exact[small_decimal]": NO_DECIMALS,
        "a_value_is_exact[zero_decimal]": NO_DECIMALS,
        "a_value_is_exact[long_decimal]": NO_DECIMALS,
        "a_value_is_exact[decimal_of_38_digits]": NO_DECIMALS,
        "a_value_is_exact[unsigned_64_bit_integer]": NO_DECIMALS,
        "a_value_is_exact[true]": NO_BOOLEANS,
        "a_value_is_exact[false]": NO_BOOLEANS,
        "a_value_is_exact[nan]": never("SQLite makes NULL of NaN"),
        "a_timestamp_with_a_time_zone_says_which_instant_it_is": never("SQLite has no timestamps"),
        "a_month_is_not_thirty_days": never("SQLite has no intervals"),
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        cls.fill("sqlite", sqlite3.connect(folder / "sample.db"))
        return Database(name="sample", dialect="sqlite", database="sample.db", folder=folder)

    async def alter(self, database, statement):
        assert database.database is not None
        with contextlib.closing(sqlite3.connect(database.folder / database.database)) as connection:
            connection.execute(statement)
        return database
