"""Files of databases, whole and damaged: bytes flipped, pages zeroed, exchanged or filled with noise, ends cut off."""

from __future__ import annotations

import random
import sqlite3
import struct
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb

ROWS = 400
SQLITE = f"""
PRAGMA page_size = 1024;
CREATE TABLE plain (id INTEGER PRIMARY KEY, word TEXT, amount REAL);
CREATE TABLE keyed (id INTEGER PRIMARY KEY, code TEXT UNIQUE, half INTEGER AS (id / 2) STORED);
CREATE INDEX halves ON keyed (half);
CREATE TABLE unrowed (code TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID;
CREATE TABLE long (id INTEGER PRIMARY KEY, body TEXT);
CREATE VIEW latest AS SELECT id, word FROM plain WHERE id > 300;
CREATE VIRTUAL TABLE notes USING fts5 (body);
CREATE VIRTUAL TABLE boxes USING rtree (id, x0, x1);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {ROWS}) INSERT INTO plain
  SELECT i, 'word ' || i, i / 3.0 FROM n;
INSERT INTO keyed (id, code) SELECT id, 'code ' || id FROM plain;
INSERT INTO unrowed SELECT 'key ' || id, id FROM plain;
INSERT INTO long SELECT id, replace(hex(zeroblob(1500)), '00', 'text ') FROM plain WHERE id < 20;
INSERT INTO notes SELECT 'the ' || word || ' of ' || id FROM plain;
INSERT INTO boxes SELECT id, id, id + 1 FROM plain;
ANALYZE;
"""
DUCKDB = f"""
CREATE TABLE plain AS SELECT i AS id, 'word ' || i AS word, i / 3 AS amount FROM range({ROWS}) t (i);
CREATE TABLE keyed (id INTEGER PRIMARY KEY, code VARCHAR UNIQUE);
INSERT INTO keyed SELECT i, 'code ' || i FROM range({ROWS}) t (i);
CREATE TABLE nested AS SELECT i AS id, [i, i + 1] AS pair, {{'a': i, 'b': 'x' || i}} AS both FROM range({ROWS}) t (i);
CREATE TABLE long AS SELECT i AS id, repeat(md5(i::VARCHAR), 200) AS body FROM range({ROWS}) t (i);
CREATE VIEW latest AS SELECT id, word FROM plain WHERE id > 300;
CREATE TYPE mood AS ENUM ('fine', 'sad');
CREATE TABLE felt AS SELECT i AS id, 'fine'::mood AS mood FROM range({ROWS}) t (i);
"""
FOLDER = {
    "plain": "SELECT i AS id, 'word ' || i AS word, i / 3 AS amount FROM range({rows}) t (i)",
    "long": "SELECT i AS id, md5(i::VARCHAR) AS body FROM range({rows}) t (i)",
    "nested": "SELECT i AS id, [i, i + 1] AS pair, {{'a': i}} AS both FROM range({rows}) t (i)",
}
FORMATS = {"plain": "parquet", "long": "csv", "nested": "json"}
"""The tables of a folder, and the format of each one's files."""
TABLES = {
    "sqlite": ("plain", "keyed", "unrowed", "long", "latest", "notes", "boxes"),
    "duckdb": ("plain", "keyed", "nested", "long", "latest", "felt"),
    "folder": ("plain", "long", "nested", "other"),
}


def make_sqlite(path: Path) -> None:
    """Write a SQLite file with tables of every kind."""
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript(SQLITE)


def make_duckdb(path: Path) -> None:
    """Write a DuckDB file with tables of several kinds."""
    with duckdb.connect(str(path)) as writer:
        writer.execute(DUCKDB)


def make_folder(path: Path) -> None:
    """Write a folder with a table in each format, and `other`, which is never damaged."""
    path.mkdir()
    for name, query in FOLDER.items():
        duckdb.sql(f"COPY ({query.format(rows=ROWS)}) TO '{path / name}.{FORMATS[name]}'")
    duckdb.sql(f"COPY (SELECT 7 AS id) TO '{path / 'other.parquet'}'")


MAKERS: dict[str, Callable[[Path], None]] = {"sqlite": make_sqlite, "duckdb": make_duckdb, "folder": make_folder}
PAGES = {"sqlite": 1024, "duckdb": 4096, "folder": 64}
"""The size of the pieces that are damaged, in bytes."""


def damage(path: Path, page: int, rng: random.Random) -> None:
    """Damage a file in place, in one of several ways."""
    data = bytearray(path.read_bytes())
    rng.choice(WAYS)(data, min(page, max(len(data) // 4, 1)), rng)
    path.write_bytes(data)


def _place(data: bytearray, page: int, rng: random.Random) -> int:
    """The beginning of a page. Each tenth is the first one."""
    return 0 if rng.random() < 0.1 else rng.randrange(max(len(data) // page, 1)) * page


def _flip(data: bytearray, page: int, rng: random.Random) -> None:
    start = _place(data, page, rng)
    for _ in range(rng.choice([1, 3, 20])):
        data[min(start + rng.randrange(page), len(data) - 1)] ^= 1 << rng.randrange(8)


def _flip_anywhere(data: bytearray, page: int, rng: random.Random) -> None:
    for _ in range(rng.choice([1, 10, 100])):
        data[rng.randrange(len(data))] = rng.randrange(256)


def _zero(data: bytearray, page: int, rng: random.Random) -> None:
    start = _place(data, page, rng)
    data[start : start + page] = bytes(len(data[start : start + page]))


def _fill(data: bytearray, page: int, rng: random.Random) -> None:
    start = _place(data, page, rng)
    data[start : start + page] = rng.randbytes(len(data[start : start + page]))


def _exchange(data: bytearray, page: int, rng: random.Random) -> None:
    one, other = _place(data, page, rng), _place(data, page, rng)
    if one + page <= len(data) and other + page <= len(data):
        data[one : one + page], data[other : other + page] = data[other : other + page], data[one : one + page]


def _cut(data: bytearray, page: int, rng: random.Random) -> None:
    del data[rng.choice([_place(data, page, rng), rng.randrange(len(data))]) :]


WAYS: tuple[Callable[[bytearray, int, random.Random], Any], ...] = (
    _flip,
    _flip,
    _flip_anywhere,
    _zero,
    _fill,
    _exchange,
    _cut,
)


BLOCKS, BLOCK = 12_288, 262_144
"""Where the blocks of a DuckDB file begin, and the size of one."""


def seal(path: Path) -> None:
    """Make the checksums of a DuckDB file fit again, so that the damage is met behind them."""
    data = bytearray(path.read_bytes())
    for start in range(BLOCKS, len(data) - BLOCK + 1, BLOCK):
        struct.pack_into("<Q", data, start, _checksum(data[start + 8 : start + BLOCK]))
    path.write_bytes(data)


def _checksum(block: bytearray) -> int:
    result = 5381
    for word in struct.unpack(f"<{len(block) // 8}Q", block):
        result ^= word * 0xBF58476D1CE4E5B9 & 0xFFFFFFFFFFFFFFFF
    return result
