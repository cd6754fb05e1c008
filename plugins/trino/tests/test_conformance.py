"""The conformance kit over Trino."""

from typing import ClassVar

import anyio
import pytest
from dragoman import Capability
from dragoman.testing import DialectConformance
from dragoman.testing.base import PROMPT

ACTIVE = (
    "SELECT count(*) FROM system.runtime.queries WHERE source = 'dragoman'"
    " AND state NOT IN ('FINISHED', 'FAILED') AND \"user\" = 'kit'"
)


class TestTrino(DialectConformance):
    generated = ""  # no connector has any
    capitals = False
    relations = 20  # each takes the server a while, and a query for its statistics
    engine_lacks: ClassVar = frozenset({Capability.PRIMARY_KEYS, Capability.FOREIGN_KEYS, Capability.INDEXES})
    literals: ClassVar = {
        "json": "JSON '{\"a\": [1, null]}'",
        "timestamp_with_time_zone": "TIMESTAMP '2024-02-29 13:14:15 +05:30'",
        "binary": "X'00ff10'",
        "row": "CAST(ROW(1, 'x') AS row(a integer, b varchar))",
    }

    @pytest.fixture(scope="class")
    @classmethod
    async def database(cls, trino_server, anyio_backend):
        async with trino_server.schema() as schema:
            await trino_server.run(*cls.statements("trino"), schema=schema)
            yield trino_server.configure(*schema.split("."), user="kit")

    async def is_idle(self, gateway):
        server = self.server
        with anyio.move_on_after(6 * PROMPT):  # a busy machine's server takes its time
            while (await server.run(ACTIVE))[0][0]:
                await anyio.sleep(0.1)
            return True
        return False

    async def alter(self, database, statement):
        await self.server.run(statement, schema=f"{database.database}.{database.schema}")
        return database

    @pytest.fixture(autouse=True)
    def known_server(self, trino_server):
        self.server = trino_server
