"""The audit's files: one chain through every process and every day, and nothing can be changed unseen."""

import json
import os
import random
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from dragoman.audit import AuditFile, Link, Record, encode, records, verify_files
from dragoman.audit.file import audit_files

CHANGES = 200


def body(number: int) -> bytes:
    return encode(Record(ts="2026-11-22T10:00:00Z", call=str(number), sql=f"select '{number}'", outcome="ok"))


@pytest.fixture
def audit(tmp_path: Path) -> Iterator[AuditFile]:
    file = AuditFile(tmp_path / "audit.jsonl")
    yield file
    file.close()


def test_a_file_belongs_to_its_owner_alone(audit: AuditFile, tmp_path: Path):
    audit.append(body(1))
    (file,) = audit_files(tmp_path / "audit.jsonl")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_several_writers_make_one_chain(audit: AuditFile, tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    other = AuditFile(path)
    heads = [(audit, other)[number % 3 == 0].append(body(number)) for number in range(20)]
    other.close()
    found = verify_files(path, heads)
    assert (found.records, found.faults, found.notes, found.head) == (21, [], [], heads[-1])
    assert [record.call for record in records(path)][1:] == [str(number) for number in range(20)]


def test_a_new_process_continues_the_chain(tmp_path: Path):
    first = AuditFile(tmp_path / "audit.jsonl")
    first.append(body(1))
    first.close()
    again = AuditFile(tmp_path / "audit.jsonl")
    head = again.append(body(2))
    again.close()
    assert head.seq == 3
    assert verify_files(tmp_path / "audit.jsonl").faults == []


def days(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, each: int) -> Link:
    """Write records on so many days; return the last one's link."""
    file = AuditFile(tmp_path / "audit.jsonl")
    heads: list[Link] = []
    for day in range(number):
        monkeypatch.setattr("time.time", lambda day=day: 1_795_000_000 + day * 86400)
        heads += [file.append(body(record)) for record in range(each)]
    file.close()
    return heads[-1]


def test_every_day_has_a_file_that_continues_the_chain(tmp_path: Path, monkeypatch):
    head = days(tmp_path, monkeypatch, 3, 4)
    names = [file.name for file in audit_files(tmp_path / "audit.jsonl")]
    assert len(names) == len(set(names)) == 3
    found = verify_files(tmp_path / "audit.jsonl", [head])
    assert (found.records, found.faults) == (15, [])


def test_old_files_may_be_taken_away_and_a_file_in_between_is_missed(tmp_path: Path, monkeypatch):
    path = tmp_path / "audit.jsonl"
    days(tmp_path, monkeypatch, 4, 3)
    first, second, *_ = audit_files(path)
    first.unlink()
    found = verify_files(path)
    assert (found.begins, found.faults) == (5, [])
    third = audit_files(path)[1]
    third.unlink()
    (fault,) = verify_files(path).faults
    assert fault.what == "record 13 follows record 8"
    assert second.exists()


def test_a_clock_that_goes_back_goes_on_in_the_file_of_the_later_day(tmp_path: Path, monkeypatch):
    days(tmp_path, monkeypatch, 2, 2)
    monkeypatch.setattr("time.time", lambda: 1_795_000_000)
    file = AuditFile(tmp_path / "audit.jsonl")
    file.append(body(9))
    file.close()
    assert verify_files(tmp_path / "audit.jsonl").faults == []
    assert len(audit_files(tmp_path / "audit.jsonl")) == 2


@pytest.mark.parametrize("seed", range(20))
def test_several_writers_make_one_chain_whatever_their_clock_says(tmp_path: Path, monkeypatch, seed: int):
    path, chance = tmp_path / "audit.jsonl", random.Random(seed)
    writers = [AuditFile(path) for _ in range(3)]
    heads: list[Link] = []
    for number in range(60):
        day = chance.choice([0, 0, 1, number // 20])
        monkeypatch.setattr("time.time", lambda day=day: 1_795_000_000 + day * 86400)
        heads.append(chance.choice(writers).append(body(number)))
    for writer in writers:
        writer.close()
    found = verify_files(path, heads)
    assert (found.faults, found.notes, found.head) == ([], [], heads[-1])


@pytest.mark.parametrize("wait", [0.0, 0.001, 1.0])
def test_a_file_of_a_later_day_is_seen_in_a_folder_that_shows_no_other_time(tmp_path: Path, monkeypatch, wait: float):
    """The system's clock of files ticks every few milliseconds."""
    path, now = tmp_path / "audit.jsonl", 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr("time.time", lambda: 1_795_000_000)
    first, second = AuditFile(path), AuditFile(path)
    heads = [first.append(body(0)), first.append(body(1))]
    tick = tmp_path.stat().st_mtime_ns
    monkeypatch.setattr("time.time", lambda: 1_795_086_400)
    heads.append(second.append(body(2)))
    os.utime(tmp_path, ns=(tick, tick))
    monkeypatch.setattr("time.time", lambda: 1_795_000_000)
    now += wait
    heads.append(first.append(body(3)))
    for writer in (first, second):
        writer.close()
    found = verify_files(path, heads)
    assert (found.faults, found.notes, found.head) == ([], [], heads[-1])


def test_a_record_that_was_cut_off_is_no_fault_and_is_taken_away_by_the_next_one(audit: AuditFile, tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    audit.append(body(1))
    (file,) = audit_files(path)
    with file.open("ab") as end:
        end.write(b'{"seq":3,"prev":"12')
    found = verify_files(path)
    assert found.faults == []
    assert "an incomplete record" in found.notes[0]
    audit.append(body(2))
    assert verify_files(path).notes == []
    assert [record.call for record in records(path)][1:] == ["1", "2"]


def test_a_record_that_does_not_fit_on_the_disk_leaves_nothing_behind(audit: AuditFile, tmp_path: Path, monkeypatch):
    audit.append(body(1))
    (file,) = audit_files(tmp_path / "audit.jsonl")
    before = file.read_bytes()
    write = os.write
    monkeypatch.setattr("os.write", lambda descriptor, data: write(descriptor, data[:40]))
    with pytest.raises(OSError, match="No space left"):
        audit.append(body(2))
    monkeypatch.undo()
    assert file.read_bytes() == before
    assert audit.append(body(3)).seq == 3


@pytest.mark.parametrize("remaining", range(8))
def test_a_disk_that_is_full_for_a_while_is_no_fault_whatever_is_being_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, remaining: int
) -> None:
    """Two records a day for three days, with a file moved away on the second: the first record of a file, too."""
    file, path, write = AuditFile(tmp_path / "audit.jsonl"), tmp_path / "audit.jsonl", os.write
    written = 0

    def fill_up(descriptor: int, data: bytes) -> int:
        nonlocal written
        written += 1
        return write(descriptor, data[:40] if remaining < written <= remaining + 3 else data)

    monkeypatch.setattr("os.write", fill_up)
    for number in range(12):
        monkeypatch.setattr("time.time", lambda number=number: 1_795_000_000 + number // 4 * 86400)
        if number == 6:
            audit_files(path)[-1].unlink()
        with suppress(OSError):
            file.append(body(number))
    file.close()
    found = verify_files(path)
    assert [fault.what for fault in found.faults if "follows" not in fault.what] == []
    assert written > remaining + 3


def test_a_file_that_is_deleted_is_written_anew(audit: AuditFile, tmp_path: Path):
    audit.append(body(1))
    audit_files(tmp_path / "audit.jsonl")[0].unlink()
    audit.append(body(2))
    (file,) = audit_files(tmp_path / "audit.jsonl")
    assert len(file.read_bytes().splitlines()) == 2


def test_without_the_folder_nothing_is_written_and_no_other_file_is_closed(audit: AuditFile, tmp_path: Path):
    audit.append(body(1))
    moved = tmp_path.rename(tmp_path.with_name(tmp_path.name + "-moved"))
    others = list[int]()
    for _ in range(3):
        with pytest.raises(OSError, match="No such file"):
            audit.append(body(2))
        others.append(os.open(os.devnull, os.O_RDONLY))
    for each in others:
        os.close(each)
    moved.rename(tmp_path)
    audit.append(body(3))
    assert [record.call for record in records(tmp_path / "audit.jsonl")][1:] == ["1", "3"]


def _take_away(file: Path) -> None:
    file.unlink()


def _rename(file: Path) -> None:
    file.rename(file.with_suffix(".old"))


def _replace(file: Path) -> None:
    """What replaces it is as long, so that its size tells nothing."""
    other = file.with_suffix(".other")
    other.write_bytes(file.read_bytes())
    other.replace(file)


def _move_folder(file: Path) -> None:
    file.parent.rename(file.parent.with_name("archive"))
    file.parent.mkdir()


@pytest.mark.parametrize("day_before", [False, True])
@pytest.mark.parametrize("move", [_take_away, _rename, _replace, _move_folder])
def test_what_happens_to_the_file_of_the_day_loses_no_later_record_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, move: Callable[[Path], None], day_before: bool
):
    path = tmp_path / "audit" / "audit.jsonl"
    writer, other = AuditFile(path), AuditFile(path)
    for day in range(1 - day_before, 2):
        monkeypatch.setattr("time.time", lambda day=day: 1_795_000_000 + day * 86400)
        other.append(body(1))
        writer.append(body(2))
    head = writer.head
    move(audit_files(path)[-1])
    heads = [each.append(body(number)) for number, each in enumerate((writer, other, writer), 3)]
    writer.close()
    other.close()
    found = verify_files(path, heads)
    last = [record.call for record in records(path) if record.call][-3:]
    assert last == ["3", "4", "5"]
    missed = move is not _replace
    there_before = day_before and move is not _move_folder
    assert bool(found.faults) == (missed and there_before)
    if missed and not there_before:
        assert found.begins == head.seq + 1


# What somebody may do to the lines of a file. Each returns other lines than it got.


def edit(lines: list[bytes], dice: random.Random) -> list[bytes]:
    row = dice.randrange(len(lines))
    place = dice.randrange(len(lines[row]))
    byte = dice.choice([each for each in b'0123456789abcdef{}":,x' if each != lines[row][place]])
    return [*lines[:row], lines[row][:place] + bytes([byte]) + lines[row][place + 1 :], *lines[row + 1 :]]


def drop(lines: list[bytes], dice: random.Random) -> list[bytes]:
    start = dice.randrange(len(lines))
    return lines[:start] + lines[start + dice.randint(1, 3) :]


def swap(lines: list[bytes], dice: random.Random) -> list[bytes]:
    one, other = dice.sample(range(len(lines)), 2)
    changed = [*lines]
    changed[one], changed[other] = lines[other], lines[one]
    return changed


def repeat(lines: list[bytes], dice: random.Random) -> list[bytes]:
    row = dice.randrange(len(lines))
    return [*lines[: row + 1], lines[row], *lines[row + 1 :]]


def invent(lines: list[bytes], dice: random.Random) -> list[bytes]:
    """Add a record between others, with a seal that fits; after the last one the gateway itself would add it so."""
    from dragoman.audit.chain import seal, unseal

    row = dice.randrange(len(lines) - 1)
    sealed = unseal(lines[row])
    assert sealed is not None
    line, _ = seal(body(99), sealed.link)
    return [*lines[: row + 1], line.rstrip(b"\n"), *lines[row + 1 :]]


def reseal(lines: list[bytes], dice: random.Random) -> list[bytes]:
    """Edit a record and seal it anew, so that the line alone is right."""
    from dragoman.audit.chain import Link, seal, unseal

    row = dice.randrange(len(lines))
    sealed = unseal(lines[row])
    assert sealed is not None
    line, _ = seal(body(99), Link(sealed.link.seq - 1, sealed.prev))
    return [*lines[:row], line.rstrip(b"\n"), *lines[row + 1 :]]


def find_every_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    path = tmp_path / "audit.jsonl"
    head = days(tmp_path, monkeypatch, 2, 12)
    files = audit_files(path)
    written = {file: file.read_bytes() for file in files}
    assert verify_files(path, [head]).faults == []
    ways: list[Callable[[list[bytes], random.Random], list[bytes]]] = [edit, drop, swap, repeat, invent, reseal]
    for seed in range(number):
        dice = random.Random(seed)
        file, way = dice.choice(files), dice.choice(ways)
        changed = b"\n".join([*way(written[file].splitlines(), dice), b""])
        assert changed != written[file]
        file.write_bytes(changed)
        assert verify_files(path, [head]).faults, (seed, way.__name__)
        file.write_bytes(written[file])


def test_every_change_of_a_file_is_found(tmp_path: Path, monkeypatch):
    find_every_change(tmp_path, monkeypatch, CHANGES)


@pytest.mark.nightly
def test_every_one_of_many_changes_of_a_file_is_found(tmp_path: Path, monkeypatch):
    find_every_change(tmp_path, monkeypatch, 100 * CHANGES)


@pytest.mark.parametrize(
    "plant", [Path.mkdir, os.mkfifo, lambda place: place.symlink_to("nowhere")], ids=["folder", "pipe", "dangling link"]
)
def test_what_is_no_file_in_the_place_of_one_is_a_fault_and_holds_nobody_up(audit: AuditFile, tmp_path: Path, plant):
    path = tmp_path / "audit.jsonl"
    audit.append(body(1))
    place = tmp_path / "audit-2020-01-01.jsonl"
    plant(place)
    (fault,) = verify_files(path).faults
    assert (fault.file, fault.what) == (place.name, "this is not a regular file")
    assert [record.call for record in records(path)][1:] == ["1"]


def test_records_dropped_at_the_end_are_found_by_a_head_that_was_noted_elsewhere(audit: AuditFile, tmp_path: Path):
    path = tmp_path / "audit.jsonl"
    head = [audit.append(body(number)) for number in range(3)][-1]
    (file,) = audit_files(path)
    file.write_bytes(b"".join(file.read_bytes().splitlines(keepends=True)[:-1]))
    assert verify_files(path).faults == []
    noted = Link(int(str(head).partition(":")[0]), str(head).partition(":")[2])
    assert [fault.what for fault in verify_files(path, [noted]).faults] == [
        f"record 4 with the seal {head.seal[:16]} is missing"
    ]


def test_a_line_is_json_that_any_program_reads(audit: AuditFile, tmp_path: Path):
    audit.append(body(7))
    (file,) = audit_files(tmp_path / "audit.jsonl")
    line = json.loads(file.read_text().splitlines()[-1])
    assert (line["seq"], line["call"], line["sql"]) == (2, "7", "select '7'")
