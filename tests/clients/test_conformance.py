"""The official conformance suite, in both eras of the protocol, against the real server."""

import subprocess
from pathlib import Path

import pytest
import yaml

BASELINE = yaml.safe_load(Path(__file__).with_name("conformance.yaml").read_text())

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


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
    suite = packages / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    command = [node, str(suite), "server", "--url", url, "--requirements", era]
    done = subprocess.run(
        [*command, "--expected-failures", str(baseline), "-o", str(tmp_path / "out")],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
