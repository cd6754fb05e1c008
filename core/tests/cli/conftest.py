import io
import logging
import os
import sqlite3
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from dragoman.cli import main


@dataclass(frozen=True)
class Outcome:
    """How a command ended and what it printed."""

    code: int
    out: str
    err: str


Dragoman = Callable[..., Outcome]

SCHEMA = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer_id INTEGER NOT NULL REFERENCES customers(id),
    total NUMERIC(10, 2) CHECK (total >= 0),
    note TEXT
);
CREATE INDEX orders_customer ON orders (customer_id);
CREATE VIEW big_orders AS SELECT * FROM orders WHERE total > 20;
INSERT INTO customers VALUES (1, 'Ada'), (2, 'Grace, "G"');
INSERT INTO orders VALUES (1, 1, 12.5, NULL), (2, 1, 30, ''), (3, 2, 9007199254740993, 'a|b' || char(10) || char(27));
"""


@pytest.fixture(autouse=True)
def own_logs() -> Iterator[None]:
    """Take away the handlers a command adds: they write to a stream that ends with the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: a database shop.db, no configuration, and an environment without any of ours."""
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(SCHEMA)
    connection.close()
    for name in list(os.environ):
        if name.startswith("DRAGOMAN_") or name in ("DATABASE_URL", "XDG_CONFIG_HOME"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def dragoman(folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Dragoman:
    """Run a command in this process."""

    def run(*argv: str, stdin: bytes = b"") -> Outcome:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        with pytest.raises(SystemExit) as ended:
            main(argv)
        printed = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else 0, printed.out, printed.err)

    return run


@pytest.fixture
def configured(folder: Path) -> Path:
    """A configuration file beside the database."""
    path = folder / "dragoman.toml"
    path.write_text('[databases.shop]\nurl = "sqlite:///shop.db"\ndescription = "A small shop"\n')
    return path
