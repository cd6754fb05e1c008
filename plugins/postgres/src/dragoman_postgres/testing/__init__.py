"""Real PostgreSQL servers for tests and the demo: an environment's own, the embedded ones, the machine's.

`conftest.py`: `pytest_plugins = ["dragoman_postgres.testing.fixtures"]`.
"""

from dragoman_postgres.testing.server import ENVIRONMENT, Server, installations

__all__ = ["ENVIRONMENT", "Server", "installations"]
