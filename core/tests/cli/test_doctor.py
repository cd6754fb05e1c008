"""`dragoman doctor` examines every database, tells what closes each finding, and ends with a status scripts can use."""

import json
import os
from pathlib import Path

import pytest

from .conftest import Dragoman

UNSAFE = """
from dataclasses import replace

class Examined(PretendExecutor):
    async def doctor(self):
        if self.database.host == "safe":
            return [Finding(severity="warning", subject="timeouts", message="None is set.", remedy="SET it;")]
        assert self.database.password.reveal() == "hunter2"
        return [
            Finding(severity="note", subject="small", message="A small thing.", remedy="Nothing."),
            Finding(severity="danger", subject="superuser", message="The role may do all.", remedy="A;\\nB;"),
        ]

class Odd(PretendPlugin):
    @hookimpl
    def executor(self, database):
        return Examined(database)

plugin = Odd()
"""


@pytest.fixture
def pretend(install) -> None:
    install("dragoman-odd", UNSAFE, dialects={"pretend": "plugin"}, pretend=True)


UNSAFE_URL = "unsafe=pretend://me:hunter2@unsafe/d"
SAFE_URL = "safe=pretend://me:hunter2@safe/d"
GONE_URL = "gone=sqlite:///gone.db"


@pytest.mark.usefixtures("pretend")
def test_danger_is_told_worst_first_with_what_closes_it(dragoman: Dragoman):
    outcome = dragoman("doctor", "--url", UNSAFE_URL)
    assert outcome.code == 1
    assert outcome.out.splitlines() == [
        "unsafe (pretend 1): 1 danger, 1 note",
        "  danger: The role may do all. [superuser]",
        "      A;",
        "      B;",
        "  note: A small thing. [small]",
        "      Nothing.",
    ]


@pytest.mark.usefixtures("pretend")
def test_warnings_alone_are_no_danger(dragoman: Dragoman):
    outcome = dragoman("doctor", "--url", SAFE_URL)
    assert outcome.code == 0
    assert "SET it;" in outcome.out


@pytest.mark.usefixtures("pretend")
def test_json_is_a_list_of_databases(dragoman: Dragoman):
    outcome = dragoman("doctor", "--json", "--url", UNSAFE_URL, "--url", GONE_URL)
    unsafe, gone = json.loads(outcome.out)
    assert {key: value for key, value in unsafe.items() if key != "findings"} == {
        "database": "unsafe",
        "dialect": "pretend",
        "version": "1",
        "status": "examined",
    }
    assert unsafe["findings"][0] == {
        "severity": "danger",
        "subject": "superuser",
        "message": "The role may do all.",
        "remedy": "A;\nB;",
    }
    assert (gone["status"], gone["findings"], gone["error"]["code"]) == ("unreachable", [], "CONNECTION_ERROR")


@pytest.mark.usefixtures("pretend")
def test_a_database_that_is_down_is_told_and_the_others_are_examined(dragoman: Dragoman):
    outcome = dragoman("doctor", "--url", GONE_URL, "--url", SAFE_URL)
    assert outcome.code == 2
    assert "gone (sqlite): not examined" in outcome.out
    assert "CONNECTION_ERROR" in outcome.out
    assert "safe (pretend 1): 1 warning" in outcome.out


@pytest.mark.usefixtures("pretend")
def test_danger_weighs_more_than_a_database_that_is_down(dragoman: Dragoman):
    assert dragoman("doctor", "--url", GONE_URL, "--url", UNSAFE_URL).code == 1


@pytest.mark.usefixtures("pretend")
def test_one_database_is_examined_by_name_or_url(dragoman: Dragoman):
    named = dragoman("doctor", "safe", "--url", SAFE_URL, "--url", UNSAFE_URL)
    assert (named.code, named.out.count("pretend 1")) == (0, 1)
    by_url = dragoman("doctor", "pretend://me:hunter2@unsafe/d")
    assert (by_url.code, by_url.out.splitlines()[0]) == (1, "d (pretend 1): 1 danger, 1 note")
    unknown = dragoman("doctor", "nope", "--url", SAFE_URL)
    assert (unknown.code, unknown.out) == (2, "")
    assert unknown.err.startswith("UNKNOWN_DATABASE")


def test_a_broken_plugin_is_told_with_its_distribution_and_a_remedy(dragoman: Dragoman, install):
    install("dragoman-odd", "import no_such_driver", dialects={"odd": "plugin"})
    used = dragoman("doctor", "--url", "x=odd://h/d", "--url", "shop=sqlite:///shop.db", "--json")
    broken = json.loads(used.out)[0]
    assert broken["status"] == "broken"
    assert "dragoman-odd" in broken["error"]["message"] + broken["error"]["suggestion"]
    assert broken["error"]["suggestion"]
    unused = dragoman("doctor", "--url", "shop=sqlite:///shop.db")
    assert "dragoman-odd" in unused.err


@pytest.mark.usefixtures("pretend")
def test_no_secret_and_no_path_is_told(dragoman: Dragoman, folder: Path):
    outcome = dragoman("doctor", "--url", UNSAFE_URL, "--url", GONE_URL, "--url", "shop=sqlite:///shop.db")
    for text in (outcome.out, outcome.err):
        assert "hunter2" not in text
        assert "@" not in text
        assert str(folder) not in text


@pytest.mark.usefixtures("pretend")
def test_the_doctor_writes_no_file(dragoman: Dragoman, folder: Path):
    dragoman("doctor", "--url", "shop=sqlite:///shop.db")  # Python writes bytecode beside what it imports first
    before = {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(folder)}
    dragoman("doctor", "--url", "shop=sqlite:///shop.db")
    assert {entry.name: entry.stat().st_mtime_ns for entry in os.scandir(folder)} == before
