"""The kit over careless variants of a good dialect, made systematically: none passes, and none hangs the run."""

import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
EXAMPLE = HERE.parents[1] / "docs" / "examples" / "dragoman-duckdb"
# Of every class; the nightly run has all of them.
SAMPLE = (
    "value_Decimal_as_float",
    "parameters_of_6_digits",
    "rows_end_at_an_error",
    "catalog_ForeignKey_referenced_columns_reversed",
    "life_no_interrupt",
    "listed_getenv",
    "namesakes_one_constraints",
)
VERDICTS = ("does not conform", "beyond the required tier", "was not judged")


@pytest.fixture(scope="module")
def installed(clean):
    clean.install("dragoman[testing]", clean.wheel(EXAMPLE))
    (clean.folder / "tests").mkdir()
    for path in (EXAMPLE / "tests" / "test_conformance.py", HERE / "duckdb_mutants.py"):
        (clean.folder / "tests" / path.name).write_bytes(path.read_bytes())
    return clean


def is_caught(installed, mutant: str) -> bool:
    """Whether the kit itself said no: a variant that cannot be made, or a run that breaks, is not caught."""
    done = outcome(installed, mutant)
    return done.returncode == 1 and any(verdict in done.stdout for verdict in VERDICTS)


def outcome(installed, mutant: str) -> subprocess.CompletedProcess[str]:
    """Run the kit over one variant up to its first failure."""
    command = [installed.bin / "python", "-m", "pytest", "-q", "-x", "-p", "duckdb_mutants", "test_conformance.py"]
    folder = installed.folder / "tests"
    environment = {**installed.environment, "DUCKDB_MUTANT": mutant, "PYTHONPATH": str(folder)}
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=800, check=False
    )


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("mutant", SAMPLE)
def test_a_careless_variant_fails_the_kit(installed, mutant: str):
    assert is_caught(installed, mutant)


@pytest.mark.nightly
@pytest.mark.timeout(7200)
def test_no_careless_variant_passes_the_kit(installed):
    listing = "import duckdb_mutants; print(*duckdb_mutants.MUTANTS)"
    folder = installed.folder / "tests"
    mutants = installed.run(installed.bin / "python", "-c", listing, folder=folder).split()
    assert len(mutants) >= 100
    assert [mutant for mutant in mutants if not is_caught(installed, mutant)] == []
