"""`dragoman audit report --since --until`: a moment means the same however it is written."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest

from .conftest import Dragoman

CONFIGURATION = '[audit]\npath = "calls.jsonl"\n[databases.shop]\nurl = "sqlite:///shop.db"\n'
ZONES = [UTC, timezone(timedelta(hours=14)), timezone(timedelta(hours=-12)), timezone(timedelta(hours=5, minutes=45))]


@pytest.fixture
def called(dragoman: Dragoman, folder) -> datetime:
    """Return when the one call of the audit was recorded."""
    (folder / "dragoman.toml").write_text(CONFIGURATION)
    assert dragoman("query", "shop", "SELECT 1 AS one").code == 0
    (record,) = [
        line for line in map(json.loads, dragoman("audit", "tail", "--json").out.splitlines()) if line.get("tool")
    ]
    return datetime.fromisoformat(record["ts"])


def counted(dragoman: Dragoman, *words: str) -> int:
    return sum(usage["calls"] for usage in json.loads(dragoman("audit", "report", *words, "--json").out))


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("between", ["T", " "])
def test_a_moment_counts_in_every_zone_and_spelling(dragoman: Dragoman, called: datetime, zone, between: str):
    def told(off: int) -> str:
        return (called.astimezone(zone) + timedelta(microseconds=off)).isoformat(between)

    assert [counted(dragoman, "--since", told(off)) for off in (-1, 0, 1)] == [1, 1, 0]
    assert [counted(dragoman, "--until", told(off)) for off in (-1, 0, 1)] == [0, 0, 1]


@pytest.mark.parametrize("form", ["%Y", "%Y-%m", "%Y-%m-%d", "%Y%m%d", "%Y-%m-%dT%H", "%Y-%m-%d %H:%M"])
def test_the_beginning_of_a_moment_is_its_first_instant_in_utc(dragoman: Dragoman, called: datetime, form: str):
    told = called.strftime(form)
    assert (counted(dragoman, "--since", told), counted(dragoman, "--until", told)) == (1, 0)


@pytest.mark.parametrize(
    "told", [" ", "-1", "yesterday", "2026-13-01", "2026-11-1", "01.11.2026", "2026-11-01T25:00", "0001-01-01T00+01:00"]
)
@pytest.mark.parametrize("option", ["--since", "--until"])
def test_what_is_no_moment_is_refused(dragoman: Dragoman, called: datetime, option: str, told: str):
    refused = dragoman("audit", "report", f"{option}={told}")
    assert (refused.code, refused.out) == (2, "")
    assert "2026-11-01T09:30" in refused.err
