"""Kept rows come back as they went in, from any place, in bounded pages."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest
from dragoman import Encoded
from dragoman.errors import ResultNotFound
from dragoman.kept import Pages
from dragoman.kept.pages import PAGE_BYTES, PAGE_ROWS
from hypothesis import given
from hypothesis import strategies as st

ROWS = st.lists(st.lists(st.none() | st.integers() | st.text(max_size=20), min_size=1, max_size=3), max_size=30)


def _encode(rows: list[list[object]]) -> Encoded:
    return Encoded.of([json.dumps(row, ensure_ascii=False).encode("utf-8", "surrogatepass") for row in rows])


def _numbers(start: int, count: int) -> Encoded:
    return Encoded.of([b"[%d]" % number for number in range(start, start + count)])


@pytest.fixture
def pages(tmp_path):
    pages = Pages(tmp_path / "rows")
    yield pages
    pages.close()
    assert list(tmp_path.iterdir()) == []


@given(batches=st.lists(ROWS, max_size=5), offset=st.integers(0, 40), limit=st.integers(1, 40))
def test_any_page_is_what_went_in(tmp_path_factory, batches, offset, limit):
    pages = Pages(tmp_path_factory.mktemp("kept") / "rows")
    for batch in batches:
        pages.add(_encode(batch))
        pages.flush()
    everything = [row for batch in batches for row in batch]
    assert pages.rows == len(everything)
    assert pages.read(offset, limit, 10**6).values == everything[offset : offset + limit]
    assert [row for rows in pages.batches() for row in rows] == everything
    pages.close()


def test_pages_are_cut_by_rows_and_by_bytes(pages):
    pages.add(_numbers(0, 3 * PAGE_ROWS + 1))
    pages.add(Encoded.of([b'["%s"]' % (b"x" * (PAGE_BYTES // 2))] * 5))
    pages.flush()
    sizes = [len(rows) for rows in pages.batches()]
    assert sum(sizes) == pages.rows == 3 * PAGE_ROWS + 6
    assert max(sizes) <= PAGE_ROWS
    assert pages.read(2 * PAGE_ROWS - 1, 2, 10**6).values == [[2 * PAGE_ROWS - 1], [2 * PAGE_ROWS]]


def test_a_page_is_bounded_in_bytes_and_has_one_row_at_least(pages):
    pages.add(_numbers(100, 50))
    pages.flush()
    assert pages.read(0, 50, 20).count == 3
    assert pages.read(0, 50, 1).count == 1


def test_rows_are_read_while_more_arrive(pages):
    pages.add(_numbers(0, 10))
    pages.flush()
    pages.add(_numbers(10, 10))
    assert pages.rows == 10
    assert pages.read(5, 100, 10**6).count == 5
    pages.flush()
    assert pages.read(5, 100, 10**6).count == 15


def test_nobody_else_may_read_the_file(pages):
    assert pages.path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("left", [0, 7, PAGE_ROWS])
def test_a_file_that_lost_its_end_is_told_as_damaged(pages, left):
    pages.add(_numbers(0, PAGE_ROWS))
    pages.add(_numbers(0, PAGE_ROWS))
    pages.flush()
    os.truncate(pages.path, left)
    for read in (lambda: pages.read(PAGE_ROWS, 10, 1000), lambda: list(pages.batches())):
        with pytest.raises(ResultNotFound, match="damaged"):
            read()


def test_a_file_with_other_bytes_is_told_as_damaged(pages):
    pages.add(_numbers(0, 10))
    pages.flush()
    for other in (b"x" * pages.size, b"[1,2]," * 10, b"\x00" * pages.size):
        pages.path.write_bytes(other)
        with pytest.raises(ResultNotFound, match="damaged"):
            pages.read(0, 10, 1000)


MINE, OTHERS = (Encoded.of([row] * 500) for row in (b'["mine"]', b'["hers"]'))


def _keep(path: Path, rows: Encoded) -> Pages:
    pages = Pages(path)
    pages.add(rows)
    pages.flush()
    return pages


def _replace(path: Path, work: Callable[[Pages], None]) -> Pages:
    """Remove a result while a thread works on it, and keep another one, whose file may have the same number."""
    mine, begun = _keep(path / "mine", MINE), Event()

    def go_on() -> None:
        try:
            while True:
                work(mine)
                begun.set()
        except (ResultNotFound, OSError):
            pass

    thread = Thread(target=go_on)
    thread.start()
    assert begun.wait(60)
    mine.close()
    other = _keep(path / "other", OTHERS)
    thread.join()
    return other


def test_a_thread_that_reads_a_removed_result_never_reads_another(tmp_path):
    read = set[str]()
    for _ in range(200):
        _replace(tmp_path, lambda mine: read.update(row for rows in mine.batches() for [row] in rows)).close()
    assert read == {"mine"}


def test_a_thread_that_writes_a_removed_result_never_writes_into_another(tmp_path):
    def write(mine: Pages) -> None:
        mine.add(MINE)
        mine.flush()

    for _ in range(200):
        other = _replace(tmp_path, write)
        assert other.path.read_bytes() == OTHERS.json
        other.close()
