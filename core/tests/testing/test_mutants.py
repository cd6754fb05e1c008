"""The kit catches every fault: plugins with one deliberate fault each fail the case that is there for it."""

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as xml
from pathlib import Path

import pytest

HERE = Path(__file__).parent
pytestmark = [pytest.mark.full, pytest.mark.timeout(1900)]


def catches() -> dict[str, tuple[str, str]]:
    code = "import json, mutants; print(json.dumps(mutants.CATCHES))"
    done = subprocess.run([sys.executable, "-c", code], cwd=HERE, capture_output=True, check=True, text=True)
    return {mutant: (case, says) for mutant, (case, says) in json.loads(done.stdout).items()}


CATCHES = catches()
CASES = sorted({case for case, _ in CATCHES.values()})


def test_there_are_many_faults():
    assert len(CATCHES) >= 40


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """(mutant, case) -> what the kit said against it, from one run in a process of its own."""
    folder = tmp_path_factory.mktemp("mutants")
    install(folder)
    harness = HERE / "mutation_harness.py"
    wanted = [(mutant, case) for mutant, (case, _) in CATCHES.items()]
    wanted += [("sqlite", case) for case in CASES]
    cases = [f"{harness}::Test_{mutant}::test_{case}" for mutant, case in wanted]
    report = folder / "report.xml"
    options = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={HERE}", f"--junitxml={report}", "-q"]
    path = os.pathsep.join([str(folder), str(HERE)])
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *cases],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        check=False,
        text=True,
        timeout=1800,
    )
    assert report.exists(), done.stdout + done.stderr
    return dict(map(outcome, xml.parse(report).iter("testcase")))


def install(folder: Path) -> None:
    """Make the mutants an installed distribution, so that they are found as every plugin is."""
    information = folder / "dragoman_mutants-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-mutants\nVersion: 1.0\n")
    entries = "".join(f"{name} = mutants:PLUGINS_{name}\n" for name in CATCHES)
    (information / "entry_points.txt").write_text(f"[dragoman.dialects]\n{entries}")


def outcome(case: xml.Element) -> tuple[tuple[str, str], str]:
    mutant = case.attrib["classname"].rpartition("Test_")[2]
    name = case.attrib["name"].removeprefix("test_")
    return (mutant, name), " ".join(f"{child.tag}: {child.attrib['message']}" for child in case)


@pytest.mark.parametrize("mutant", CATCHES)
def test_a_fault_is_caught_by_a_message_that_names_the_cause(outcomes, mutant: str):
    case, says = CATCHES[mutant]
    assert outcomes[mutant, case].startswith(("failure", "error"))
    assert says in outcomes[mutant, case]


@pytest.mark.parametrize("case", CASES)
def test_the_plugin_without_a_fault_passes(outcomes, case: str):
    assert outcomes["sqlite", case] == ""
