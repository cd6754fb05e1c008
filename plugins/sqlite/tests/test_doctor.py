"""What rights of files leave open is found, and what is told with it closes it."""

import os
import shutil
import stat
import subprocess
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from dragoman import ConnectionFailed, Finding, Gateway

ROOT = {"root"} if os.geteuid() == 0 else set()
ALWAYS = ROOT | {"extension_loading"}
"""What no right of a file changes."""


async def findings(bench, **settings) -> dict[str, Finding]:
    database = bench.configure("test.db", **settings)
    found = {finding.subject: finding for finding in await bench.executor(database).doctor()}
    assert all(finding.message and finding.remedy for finding in found.values())
    assert str(bench.folder) not in str(found)
    return found


async def dangers(bench, **settings) -> set[str]:
    return {name for name, finding in (await findings(bench, **settings)).items() if finding.severity == "danger"}


@pytest.fixture
def file(bench) -> Path:
    bench.make("CREATE TABLE t (id)")
    path: Path = bench.folder / "test.db"
    path.chmod(0o644)
    return path


@pytest.fixture
def closed(file: Path):
    """The file and its folder without any right to write."""
    file.chmod(0o444)
    file.parent.chmod(0o555)
    yield file
    file.parent.chmod(0o755)


async def test_a_file_and_a_folder_that_nobody_may_write_are_in_no_danger(bench, closed: Path):
    assert (await findings(bench)).keys() == ALWAYS
    database = bench.configure("test.db")
    assert (await bench.ask(database, "SELECT count(*) FROM t")).rows == [[0]]


async def test_a_file_the_gateway_may_write_is_a_danger_that_the_remedy_closes(bench, file: Path):
    found = await findings(bench)
    assert found["file_writable"].severity == "danger"
    shell(found["file_writable"], file)
    assert await dangers(bench) == set()


async def test_a_file_everybody_may_write_is_a_danger_that_the_remedy_closes(bench, file: Path):
    file.chmod(0o446)
    found = await findings(bench)
    assert found["file_writable_by_all"].severity == "danger"
    shell(found["file_writable_by_all"], file)
    assert stat.S_IMODE(file.stat().st_mode) == 0o444
    assert await dangers(bench) == set()


@pytest.mark.parametrize("mode", [0o755, 0o557])
async def test_a_folder_that_may_be_written_is_a_warning_that_the_remedy_closes(bench, closed: Path, mode: int):
    closed.parent.chmod(mode)
    found = await findings(bench)
    assert found["folder_writable"].severity == "warning"
    assert ("Everybody" in found["folder_writable"].message) == (mode == 0o557)
    shell(found["folder_writable"], closed)
    assert (await findings(bench)).keys() == ALWAYS


async def test_a_write_ahead_log_is_told_with_what_to_do_first(bench, file: Path):
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA journal_mode = wal").fetchall()
    note = (await findings(bench))["write_ahead_log"]
    assert note.severity == "note"
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute(note.remedy.splitlines()[-1].split("'")[1]).fetchall()
    assert "write_ahead_log" not in await findings(bench)


async def test_a_journal_left_by_a_writer_that_died_is_a_warning(bench, file: Path):
    with closing(apsw.Connection(str(file))) as connection:
        connection.execute("PRAGMA cache_size = 1; BEGIN; INSERT INTO t SELECT randomblob(100000)").fetchall()
        connection.cache_flush()
        journal = file.with_name("test.db-journal")
        dead = file.with_name("dead.db")
        shutil.copy(file, dead)
        shutil.copy(journal, dead.with_name("dead.db-journal"))
    database = bench.configure("dead.db")
    found = {finding.subject: finding for finding in await bench.executor(database).doctor()}
    assert found["hot_journal"].severity == "warning"
    with closing(apsw.Connection(str(dead))) as connection:
        connection.execute(found["hot_journal"].remedy.splitlines()[-1].split("'")[1]).fetchall()
    assert "hot_journal" not in {finding.subject for finding in await bench.executor(database).doctor()}


async def test_functions_that_reach_files_must_not_be_allowed(bench, closed: Path):
    assert await dangers(bench, allow_functions=frozenset({"Writefile", "sqlite_log"})) == {"acting_functions"}
    assert await dangers(bench, allow_functions=frozenset({"sqlite_log"})) == set()


async def test_a_file_that_is_not_there_is_a_connection_error(bench):
    with pytest.raises(ConnectionFailed):
        await findings(bench)


async def test_the_gateway_tells_the_dialect_s_findings(bench, file: Path):
    async with Gateway.open([bench.configure("test.db")]) as gateway:
        subjects = [finding.subject for finding in await gateway.database().doctor()]
    assert subjects[0] == "file_writable"
    assert "no_schemas" not in subjects


def shell(finding: Finding, file: Path) -> None:
    """Run the last line of a remedy, as an operator would."""
    command = finding.remedy.splitlines()[-1]
    subprocess.run(["sh", "-c", command], check=True, env={**os.environ, "FILE": str(file)})
