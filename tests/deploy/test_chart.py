"""The chart, by Helm itself: it lints, and what Helm makes of it is what the other tests read."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from dragoman_trino.testing.installing import ensure_folder

from .rendering import render

HELM = "v3.22.0"
CHART = Path(__file__).parents[2] / "deploy" / "helm" / "dragoman"
# Where no Helm is installed it is built, which takes Go and minutes: that is for the night.
pytestmark = [pytest.mark.full if shutil.which("helm") else pytest.mark.nightly, pytest.mark.timeout(1_800)]


@pytest.fixture(scope="module")
def helm() -> str:
    """The program: one that is installed, else one that Go has built."""

    def build(temporary: Path) -> Path:
        environment = os.environ | {"GOBIN": str(temporary / "bin")}
        subprocess.run(["go", "install", f"helm.sh/helm/v3/cmd/helm@{HELM}"], env=environment, check=True)
        return temporary / "bin"

    return shutil.which("helm") or str(ensure_folder(Path("helm") / HELM, build) / "helm")


def run(helm: str, *words: str) -> str:
    done = subprocess.run([helm, *words], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_chart_lints(helm: str) -> None:
    assert "1 chart(s) linted, 0 chart(s) failed" in run(helm, "lint", "--strict", str(CHART))


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"networkPolicy": {"from": [{"podSelector": {}}]}, "replicas": 3, "secretName": "other"},
        {"tlsSecretName": "certificate"},
    ],
)
def test_helm_makes_of_the_chart_what_the_tests_make_of_it(helm: str, tmp_path: Path, changed: dict[str, Any]) -> None:
    (tmp_path / "values.yaml").write_text(yaml.safe_dump(changed))
    told = run(helm, "template", "team", str(CHART), "--values", str(tmp_path / "values.yaml"))
    made = {each["kind"]: each for each in yaml.safe_load_all(told)}
    values = yaml.safe_load((CHART / "values.yaml").read_text()) | changed
    ours = (yaml.safe_load(render(file.read_text(), values)) for file in (CHART / "templates").glob("*.yaml"))
    assert made == {each["kind"]: each for each in ours}
