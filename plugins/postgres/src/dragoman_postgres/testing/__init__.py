"""Real PostgreSQL servers for tests and the demo: one named by the environment, embedded ones, or the machine's.

In a `conftest.py`: `from dragoman_postgres.testing.fixtures import database_name, server`.
"""

from dragoman_postgres.testing.server import ENVIRONMENT, Server, installations

__all__ = ["ENVIRONMENT", "Server", "installations"]
