"""Real Trino servers for tests and the demo: one named by the environment, or one downloaded once and started here.

In a `conftest.py`: `from dragoman_trino.testing.fixtures import trino_server`.
"""

from dragoman_trino.testing.server import ENVIRONMENT, Server

__all__ = ["ENVIRONMENT", "Server"]
