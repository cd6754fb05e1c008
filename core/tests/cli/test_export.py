"""`dragoman export`: files of any size from the command line."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from dragoman import exports as dragoman_exports
from dragoman.cli import export

MANY = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 30000) SELECT i FROM n"


def test_a_whole_answer_is_written(dragoman, configured, folder):
    outcome = dragoman("export", "shop", MANY, "out.parquet")
    assert (outcome.code, outcome.out) == (0, "")
    assert outcome.err.startswith("30000 rows, ")
    assert pq.read_table(folder / "out.parquet").column("i").to_pylist() == list(range(1, 30001))
    assert [path.name for path in folder.glob("*out*")] == ["out.parquet"]


def test_parameters_are_bound(dragoman, configured, folder):
    assert dragoman("export", "shop", "SELECT ? AS v", "v.jsonl", "--param", '"=1"').code == 0
    assert json.loads((folder / "v.jsonl").read_text()) == {"v": "=1"}


def test_a_file_is_not_replaced_unasked(dragoman, configured, folder):
    (folder / "out.csv").write_text("precious")
    outcome = dragoman("export", "shop", "SELECT 1", "out.csv")
    assert (outcome.code, "--force" in outcome.err) == (1, True)
    assert (folder / "out.csv").read_text() == "precious"
    assert dragoman("export", "shop", "SELECT 1 AS a", "out.csv", "--force").code == 0
    assert (folder / "out.csv").read_bytes() == b"a\r\n1\r\n"


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "link to nothing"])
def test_only_a_file_is_replaced(dragoman, configured, folder, kind):
    """Renaming a file over /dev/null, which root may do, would break the whole machine."""
    place, target = folder / "out.csv", folder / "target"
    if kind == "folder":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        target.write_text("precious")
        place.symlink_to(target if kind == "link" else folder / "nothing")
    before = place.lstat()
    outcome = dragoman("export", "shop", "SELECT 1", "out.csv", "--force")
    assert (outcome.code, "out.csv is there already, and is not a file" in outcome.err) == (1, True)
    assert place.lstat() == before
    assert not (folder / "nothing").exists()


@pytest.mark.parametrize("rights", [0o600, 0o400, 0o644])
def test_a_file_that_is_replaced_keeps_its_rights(dragoman, configured, folder, monkeypatch, rights):
    """A file that its owner may not write is replaced too, so that the new one is written with other rights first."""
    place, during = folder / "out.csv", []

    def write(part, *more):
        during.append(part.stat().st_mode & 0o777)
        return export_to(part, *more)

    export_to = dragoman_exports.export
    monkeypatch.setattr(dragoman_exports, "export", write)
    place.touch()
    place.chmod(rights)
    assert dragoman("export", "shop", "SELECT 1", "out.csv", "--force").code == 0
    assert (during, place.stat().st_mode & 0o777) == ([0o600], rights)


def test_nobody_chooses_where_a_file_is_written_first(dragoman, configured, folder):
    """In a folder that others may write to, a link of a known name could lead to a file of the user's."""
    (folder / "precious").write_text("precious")
    (folder / ".out.csv.part").symlink_to(folder / "precious")
    assert dragoman("export", "shop", "SELECT 1", "out.csv").code == 0
    assert (folder / "precious").read_text() == "precious"


@pytest.mark.parametrize("place", ["nosuch/out.csv", f"{'9' * 300}.csv"])
def test_a_place_where_no_file_can_be_is_told_in_words(dragoman, configured, folder, place):
    outcome = dragoman("export", "shop", "SELECT 1", place)
    assert (outcome.code, outcome.err.split(":")[0]) == (1, "PARAMETER_ERROR")


def test_a_refused_query_leaves_no_file(dragoman, configured, folder):
    assert dragoman("export", "shop", "DELETE FROM orders", "out.csv").code == 1
    assert not list(folder.glob("*out*"))


def test_an_unknown_suffix_names_the_formats(dragoman, configured):
    outcome = dragoman("export", "shop", "SELECT 1", "out.parqet")
    assert "Did you mean parquet?" in outcome.err


def started(folder: Path, rows: int, file: str) -> tuple[subprocess.Popen[bytes], int]:
    """Return a command that writes a file, and what its terminal shows."""
    shown, terminal = pty.openpty()
    command = [sys.executable, "-m", "dragoman", "export", "shop", MANY.replace("30000", str(rows)), file]
    process = subprocess.Popen(
        command,
        cwd=folder,
        stderr=terminal,
        env={**os.environ, "TERM": "xterm"},
        # What runs in the background of a shell ignores SIGINT, and so would what it starts.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    os.close(terminal)
    return process, shown


def read_until(shown: int, words: str) -> str:
    """Return what a terminal showed up to these words."""
    told = ""
    while words not in told:
        told += os.read(shown, 1 << 16).decode(errors="replace")
    return told


def read_to_the_end(shown: int) -> str:
    """Return all that a terminal showed; one whose process has ended cannot be read."""
    pieces: list[bytes] = []
    try:
        while piece := os.read(shown, 1 << 16):
            pieces.append(piece)
    except OSError:
        pass
    os.close(shown)
    return b"".join(pieces).decode(errors="replace")


@pytest.mark.parametrize(("file", "readings"), [("out.csv", ["written"]), ("out.parquet", ["looked at", "written"])])
def test_a_terminal_shows_how_far_receiving_and_writing_are(configured, folder, file, readings):
    process, shown = started(folder, 60_000, file)
    told = read_to_the_end(shown)
    assert process.wait() == 0
    for what in ("received", *readings):
        assert f"rows {what}" in told
    assert "60,000 rows written" in told


class Interrupts:
    """Sends its process a signal while it is freed."""

    def __init__(self, sent: signal.Signals) -> None:
        self._sent = sent

    def __del__(self) -> None:
        os.kill(os.getpid(), self._sent)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_that_comes_while_an_object_is_freed_ends_the_writing_too(sent):
    before = signal.getsignal(sent)
    with pytest.raises(KeyboardInterrupt), export.end_on_signals():
        del [Interrupts(sent)][0]
    assert signal.getsignal(sent) is before


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_writing_at_once_and_leaves_nothing(configured, folder, sent):
    process, shown = started(folder, 700_000, "out.xlsx")  # which takes seconds
    read_until(shown, "rows written")
    assert list(folder.glob(".out.xlsx.*.part.work"))
    process.send_signal(sent)
    read_to_the_end(shown)
    assert process.wait(60) == 130
    assert not list(folder.glob("*out*")) + list(folder.glob(".*out*"))
