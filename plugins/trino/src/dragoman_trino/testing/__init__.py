"""Real Trino servers for tests and the demo: an environment's own, or one that is fetched once and started here.

In a `conftest.py`: `from dragoman_trino.testing.fixtures import trino_server`.
"""

from dragoman_trino.testing.server import ENVIRONMENT, Server

__all__ = ["ENVIRONMENT", "Server"]
