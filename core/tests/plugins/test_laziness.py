"""Only what the configuration names is imported, proven in processes of their own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def run(code: str, site: Path | None = None) -> str:
    path = {"PYTHONPATH": str(site)} if site else {}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env={**os.environ, **path}
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_importing_dragoman_imports_nothing_heavy():
    heavy = "{'sqlglot', 'pydantic', 'mcp', 'pluggy', 'sqlalchemy', 'rich', 'yaml', 'apsw', 'aiosqlite', 'msgspec'}"
    assert run(f"import sys, dragoman; print({heavy} & set(sys.modules))") == "set()"


def test_what_encodes_in_a_worker_needs_neither_a_parser_nor_a_protocol():
    code = "import sys, dragoman; dragoman.encode; print({'sqlglot', 'pydantic', 'mcp', 'pluggy'} & set(sys.modules))"
    assert run(code) == "set()"


def test_a_process_that_takes_work_off_a_gateway_imports_none():
    unneeded = {"dragoman.gateway.gateway", "dragoman.catalog", "dragoman.plugins", "msgspec"}
    code = f"import sys; from dragoman.gateway.offload import serve; print({unneeded!r} & set(sys.modules))"
    assert run(code) == "set()"


@pytest.mark.parametrize(
    ("session", "unneeded"),
    [
        ("dragoman_sqlite.worker.session", {"asyncio", "dragoman.dialect", "dragoman.model.calls", "dragoman.sql"}),
        ("dragoman_duckdb.worker.session", {"dragoman.pool", "dragoman.workers.executor"}),
    ],
)
def test_a_worker_process_imports_nothing_of_the_gateway(session: str, unneeded: set[str]):
    """Each connection of SQLite and DuckDB is a process, so its start is what a first query waits for."""
    code = f"import sys, dragoman.workers.serving, {session}; print({unneeded!r} & set(sys.modules))"
    assert run(code) == "set()"


def test_a_gateway_on_sqlite_imports_no_other_driver_and_no_protocol(tmp_path: Path):
    code = f"""
import asyncio, sqlite3, sys
from dragoman import Database, Gateway
sqlite3.connect({str(tmp_path / "a.db")!r}).execute("CREATE TABLE t (a)")
async def main():
    async with Gateway.open([Database(name="a", dialect="sqlite", database={str(tmp_path / "a.db")!r})]) as gateway:
        await gateway.query("a", "SELECT * FROM t")
asyncio.run(main())
print({{'sqlalchemy', 'mcp', 'pydantic', 'asyncpg', 'psycopg', 'trino', 'duckdb', 'rich'}} & set(sys.modules))
"""
    assert run(code) == "set()"


@pytest.mark.parametrize("configured", [True, False])
def test_a_dialect_is_imported_only_when_it_is_configured(configured: bool, install):
    site = install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    install("dragoman-broken", "raise SystemExit('imported')", dialects={"broken": "plugin"})
    code = f"""
import asyncio, sys
from dragoman import Database, Gateway
async def main():
    async with Gateway.open([Database(name="a", dialect={"pretend" if configured else "sqlite"!r})]):
        print("dragoman_odd" in sys.modules, "dragoman_broken" in sys.modules)
asyncio.run(main())
"""
    assert run(code, site) == f"{configured} False"
