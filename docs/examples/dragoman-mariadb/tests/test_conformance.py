"""The conformance kit over MariaDB."""

import re
from typing import ClassVar

import pytest
from dragoman.testing import DialectConformance, never, not_implemented

from conftest import becomes_idle

COMMENTED = re.compile(r"COMMENT ON (TABLE \w+|COLUMN (?P<table>\w+)\.(?P<column>\w+)) IS (?P<text>.*)")
NO_BOOLEANS = never("MariaDB has no booleans: TRUE is 1")
NO_SUCH_FLOAT = never("MariaDB has neither NaN nor infinities")


class TestMariaDB(DialectConformance):
    failing_query = "SELECT (SELECT id FROM kit_track) AS more_than_one"
    failing_late_query = (
        f"SELECT CASE WHEN q.n = {DialectConformance.last_row} THEN (SELECT id FROM kit_track) ELSE 1 END AS v"
        f" FROM ({DialectConformance.many_rows}) q"
    )
    literals: ClassVar = {
        "float": "CAST(0.1 AS DOUBLE)",
        "float_of_16_digits": "CAST('0.1234567890123456' AS DOUBLE)",
        "float_of_17_digits": "CAST('0.30000000000000004' AS DOUBLE)",
        "smallest_float": "CAST(5e-324 AS DOUBLE)",
        "large_float": "CAST(1e300 AS DOUBLE)",
        "float_beyond_2_53": "CAST(1e16 AS DOUBLE)",
        "zero_float": "CAST(0 AS DOUBLE)",
        "float_of_single_precision": "CAST(16777216 AS FLOAT)",
        "unsigned_64_bit_integer": "CAST(18446744073709551615 AS UNSIGNED)",
        "text_beyond_64_kb": f"(SELECT CONCAT(q.t, q.t) FROM (SELECT '{'0123456789' * 4000}' AS t) q)",
        "quotes": "'it\\'s \"odd\" `here` \\\\ there'",
    }
    gaps: ClassVar = {
        "a_value_is_exact[true]": NO_BOOLEANS,
        "a_value_is_exact[false]": NO_BOOLEANS,
        "a_value_is_exact[negative_zero]": never("MariaDB's zero has no sign"),
        "a_value_is_exact[nan]": NO_SUCH_FLOAT,
        "a_value_is_exact[float_of_single_precision]": never("MariaDB's text protocol sends six digits of a float"),
        "a_value_is_exact[infinity]": NO_SUCH_FLOAT,
        "a_value_is_exact[negative_infinity]": NO_SUCH_FLOAT,
        "a_check_is_told": not_implemented(
            "the base inspector reads no checks; MariaDB tells them in a view of its own"
        ),
        "a_timestamp_with_a_time_zone_says_which_instant_it_is": never("MariaDB's timestamps have no zone"),
        "a_month_is_not_thirty_days": never("MariaDB has no values that are intervals"),
    }

    @classmethod
    def statements(cls, dialect):
        """As the base class, with comments in MariaDB's own way."""
        return tuple(map(commented, super().statements(dialect)))

    @pytest.fixture(scope="class")
    @classmethod
    async def database(cls, server, anyio_backend):
        return await server.create("kit", cls.statements("mariadb"))

    @pytest.fixture(autouse=True)
    def _server(self, server):
        self.server = server

    async def is_idle(self, gateway):
        return await becomes_idle(self.server)

    async def alter(self, database, statement):
        async with self.server.connected(database.database) as run:
            await run(commented(statement))
        return database


def commented(statement: str) -> str:
    found = COMMENTED.fullmatch(statement)
    if found is None:
        return statement
    if found["column"]:
        return f"ALTER TABLE {found['table']} MODIFY {found['column']} VARCHAR(100) NOT NULL COMMENT {found['text']}"
    return f"ALTER {found[1]} COMMENT {found['text']}"
