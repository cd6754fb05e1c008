"""A deadline's error after some rows becomes their end, however the server's bytes are cut on their way."""

import itertools
import struct

import pytest
from dragoman_postgres.deadline import Deadline


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


BOUND = message(b"2", b"")
ROW = message(b"D", b"\0\1\0\0\0\1E")
LATE = message(b"E", b"SERROR\0VERROR\0C57014\0Mcanceling statement due to statement timeout\0\0")
BROKEN = message(b"E", b"SERROR\0VERROR\0C22012\0Mdivision by zero: C57014\0\0")
READY = message(b"Z", b"E")
COMPLETE = message(b"C", b"SELECT 0\0")


def seen(parts: list[bytes], early: int) -> tuple[bytes, bool]:
    """What the driver sees of some parts, of which the first ones came long before the deadline."""
    deadline = Deadline(near=0.0)
    deadline.passed += parts[:early]
    changed = [deadline.change(part) for part in parts[early:]]
    return b"".join([*parts[:early], *changed]), deadline.struck


@pytest.mark.parametrize(
    ("rows", "error", "told", "struck"),
    [(2, LATE, COMPLETE, True), (0, LATE, LATE, False), (2, BROKEN, BROKEN, False), (2, b"", b"", False)],
)
def test_only_a_deadline_after_rows_is_changed(rows: int, error: bytes, told: bytes, struck: bool):
    before = BOUND + rows * ROW
    answer = before + error + READY
    for first, second in itertools.combinations(range(len(answer) + 1), 2):
        parts = [answer[:first], answer[first:second], answer[second:]]
        early = 1 if first <= len(before) else 0
        assert seen(parts, early) == (before + told + READY, struck), (first, second)
