"""Pictures are drawn in processes of their own: others go on meanwhile, and what is endless or unwanted is ended."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from dragoman import Column, ParameterError
from dragoman.exports import export
from dragoman.exports.charts import MOST_LETTERS, chart_of
from dragoman.exports.drawing import draw
from hypothesis import given
from hypothesis import strategies as st

NAME, COUNT = Column("country", "text"), Column("orders", "bigint")
SPEC = chart_of([NAME, COUNT], [["France", 3]], "bar")

LONG = st.one_of(
    st.text(max_size=3),
    st.builds(
        "{}{}".format, st.sampled_from(["w", "\n", "é", "<"]).map(lambda each: each * 5_000), st.text(max_size=3)
    ),
)


class Unwanted(Exception):
    pass


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are started to draw."""
    begin, processes = subprocess.Popen, list[subprocess.Popen[bytes]]()

    def remember(*arguments: Any, **named: Any) -> subprocess.Popen[bytes]:
        processes.append(begin(*arguments, **named))
        return processes[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    return processes


def are_gone(processes: list[subprocess.Popen[bytes]]) -> bool:
    return len(processes) == 1 and processes[0].returncode is not None


def texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in texts(each)]
    if isinstance(value, list | tuple):
        return [text for each in value for text in texts(each)]
    return [value] if isinstance(value, str) else []


@given(st.lists(LONG, min_size=1, max_size=5), st.lists(LONG, min_size=1, max_size=3))
def test_no_text_of_a_picture_is_long_and_different_names_stay_different(names: list[str], titles: list[str]):
    columns = [Column(titles[0], "text"), *(Column(title, "bigint") for title in titles)]
    spec = chart_of(columns, [[name, *[1] * len(titles)] for name in names], "bar")
    number = len(f"_{len(names) + len(titles)}")
    assert max(map(len, texts(spec))) <= MOST_LETTERS + number
    assert len({row["x"] for row in spec["data"]["values"]}) == len({*names})


def test_the_library_is_not_loaded_where_others_wait(tmp_path: Path):
    code = f"""
import sys
from pathlib import Path
from dragoman import Column
from dragoman.exports import export
export(Path({str(tmp_path / "a.svg")!r}), "svg", [Column("n", "text"), Column("i", "bigint")], lambda: [[["a", 1]]])
assert "dragoman.exports.drawing" in sys.modules
print("vl_convert" in sys.modules)
"""
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert told == "False\n"
    assert (tmp_path / "a.svg").read_text(encoding="utf-8").startswith("<svg")


def test_a_picture_that_takes_too_long_is_ended(started: list[subprocess.Popen[bytes]]):
    with pytest.raises(ParameterError, match="too much time or memory"):
        draw(SPEC, "svg", lambda: None, seconds=0.001)
    assert are_gone(started)


def test_a_picture_that_takes_too_much_memory_ends_its_process_alone(started: list[subprocess.Popen[bytes]]):
    rows = [{"x": "w" * 1000, "y": number} for number in range(2000)]
    wide = {**SPEC, "data": {"values": rows}, "width": 60_000, "height": 60_000}
    with pytest.raises(ParameterError, match="too much time or memory"):
        draw(wide, "png", lambda: None)
    assert are_gone(started)


def test_a_picture_that_nobody_waits_for_any_more_is_ended(tmp_path: Path, started: list[subprocess.Popen[bytes]]):
    def check() -> None:
        assert started[0].poll() is None
        raise Unwanted

    with pytest.raises(Unwanted):
        export(tmp_path / "a.png", "png", [NAME, COUNT], lambda: [[["France", 3]]], check=check)
    assert are_gone(started)
