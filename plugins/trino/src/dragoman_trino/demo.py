"""The demo's lake: the data of TPC-H, which the server generates when it is read."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman import Database, DeclaredKey, DialectError

from dragoman_trino.embedded import wake
from dragoman_trino.testing.installing import install
from dragoman_trino.testing.server import CATALOGS, free_port

_KEYS = (
    ("nation", "regionkey", "region"),
    ("customer", "nationkey", "nation"),
    ("supplier", "nationkey", "nation"),
    ("orders", "custkey", "customer"),
    ("lineitem", "orderkey", "orders"),
    ("lineitem", "partkey", "part"),
    ("lineitem", "suppkey", "supplier"),
    ("partsupp", "partkey", "part"),
    ("partsupp", "suppkey", "supplier"),
)


def build() -> Sequence[Database]:
    """Start a server, which is downloaded the first time, and return its configured database.

    The server runs as long as this process, and is started again when somebody uses the database later. Raises
    `DialectError` if it cannot be installed.
    """
    try:
        for part in ("server-core", *CATALOGS):
            install(part)
    except (RuntimeError, OSError) as error:
        raise DialectError(f"The demo has no Trino: {error}", suggestion="Run the demo without --trino.") from None
    port = free_port()
    wake("lake", port)
    return (
        Database(
            name="lake",
            dialect="trino",
            host="127.0.0.1",
            port=port,
            database="tpch",
            schema="tiny",
            user="reader",
            description="Orders of a wholesaler with customers, parts and suppliers, in a data lake",
            options={"embedded": True},
            keys=tuple(
                DeclaredKey(f"tiny.{table}", (column,), f"tiny.{other}", (column,)) for table, column, other in _KEYS
            ),
            timeout=60,
        ),
    )
