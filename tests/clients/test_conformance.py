"""The official conformance suite, in both eras of the protocol, against the real server."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

BASELINE = yaml.safe_load(Path(__file__).with_name("conformance.yaml").read_text())

STANDIN = Path(__file__).parents[1] / "mcp" / "standin.py"
STANDIN_SCENARIOS = [
    *("tools-call-simple-text", "tools-call-error", "tools-call-with-progress"),
    *("resources-read-text", "resources-read-binary", "resources-templates-read"),
    *("prompts-get-simple", "prompts-get-with-args"),
]

pytestmark = [pytest.mark.full, pytest.mark.timeout(300)]


def test_every_exclusion_has_a_reason() -> None:
    for era, groups in BASELINE.items():
        for group in groups:
            assert group["because"].strip(), era
            assert group["checks"], era


@pytest.mark.parametrize("era", BASELINE)
def test_the_server_conforms_except_where_the_baseline_says_why(
    era: str, url: str, node: str, packages: Path, tmp_path: Path
) -> None:
    expected = [check for group in BASELINE[era] for check in group["checks"]]
    baseline = tmp_path / "baseline.yaml"
    baseline.write_text(yaml.safe_dump({"server": expected}))
    done = conformance(node, packages, url, "--requirements", era, "--expected-failures", str(baseline))
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]


@pytest.fixture(scope="module")
def standin_url() -> Iterator[str]:
    """A stand-in that has what the suite calls, reads and gets; our own server has only its own."""
    with subprocess.Popen([sys.executable, str(STANDIN), ""], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = re.search(r"serving on (\S+)", process.stderr.readline())
        assert found is not None
        yield found[1]
        process.terminate()


@pytest.mark.parametrize("era", BASELINE)
@pytest.mark.parametrize("scenario", STANDIN_SCENARIOS)
def test_the_adapter_passes_what_needs_items_of_the_suites_own(
    era: str, scenario: str, standin_url: str, node: str, packages: Path
) -> None:
    done = conformance(node, packages, standin_url, "--scenario", scenario, "--spec-version", era)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def conformance(node: str, packages: Path, url: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the suite; its exit status says whether everything that was expected to pass did."""
    suite = packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [node, str(suite), "server", "--url", url, *options]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
