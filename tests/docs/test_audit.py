"""docs/audit.md, followed: the file it describes, and the commands it shows."""

import json
import re
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from dragoman.audit import Record

PAGE = (Path(__file__).parents[2] / "docs" / "audit.md").read_text(encoding="utf-8")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript("CREATE TABLE orders (id INTEGER PRIMARY KEY); INSERT INTO orders VALUES (1), (2);")
    connection.close()
    section = PAGE.split("```toml\n")[1].split("```")[0]
    (tmp_path / "dragoman.toml").write_text(f'{section}\n[databases.shop]\nurl = "sqlite:///shop.db"\n')
    return tmp_path


def dragoman(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "dragoman", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=60)


def test_the_page_s_commands_tell_of_the_calls(folder: Path):
    dragoman(folder, "query", "shop", "SELECT id FROM orders")
    dragoman(folder, "query", "shop", "DELETE FROM orders")
    verified = dragoman(folder, "audit", "verify")
    told = re.fullmatch(r"(\d) records from number 1 to (\S+): all are unchanged\n", verified.stdout)
    assert told is not None, verified.stdout
    number, head = told.groups()
    assert (number, verified.returncode) == ("3", 0)
    assert dragoman(folder, "audit", "verify", "--head", head).returncode == 0
    last = json.loads(dragoman(folder, "audit", "tail", "-n", "1", "--json").stdout)
    assert (last["principal"], last["sql"], last["verdict"]) == ("local", "DELETE FROM orders", "refused")
    (usage,) = json.loads(dragoman(folder, "audit", "report", "--since", "2026-01-01", "--json").stdout)
    assert (usage["calls"], usage["refused"], usage["rows"], usage["relations"]) == (2, 1, 2, {"orders": 1})
    assert "DELETE FROM orders" in dragoman(folder, "audit", "tail").stdout
    assert "local" in dragoman(folder, "audit", "report").stdout


def test_a_changed_record_is_named_and_the_exit_code_tells(folder: Path):
    dragoman(folder, "query", "shop", "SELECT id FROM orders")
    (file,) = (folder / "audit").glob("calls-*.jsonl")
    file.write_text(file.read_text().replace("SELECT id", "SELECT 17"))
    verified = dragoman(folder, "audit", "verify")
    assert verified.returncode == 1
    assert f"{file.name}:2: the record does not match its seal" in verified.stdout


def test_the_page_has_every_field_of_a_record():
    rows = re.findall(r"^\| (`.*?) \|", PAGE.split("| field | |")[1], re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert listed == {*Record.__struct_fields__, "seq", "prev", "seal"} - {"event", "detail"}
