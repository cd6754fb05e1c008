"""The kit over small, good dialects of odd shapes: each passes, declaring only what its engine is like."""

from pathlib import Path

import pytest

HERE = Path(__file__).parent
SHAPES = ("unenforced", "unlimited", "folding", "namespaced")
SUITE = """
import sqlite3
from typing import ClassVar

import pytest
import small
from dragoman import Capability, Database
from dragoman.testing import DialectConformance, never

NO_DECIMALS = never("SQLite has no decimals")
NO_BOOLEANS = never("SQLite has no booleans")

class Shape(DialectConformance):
    failing_query = "SELECT abs(-9223372036854775807 - 1) AS overflow"
    literals: ClassVar = {
        "infinity": "9e999",
        "negative_infinity": "-9e999",
        "midnight": "'2024-02-29 00:00:00'",
        "date": "'2024-02-29'",
        "timestamp": "'2024-02-29 13:14:15.123456'",
    }
    generated = ""
    gaps: ClassVar = {
        "a_value_is_exact[decimal]": NO_DECIMALS,
        "a_value_is_exact[decimal_without_a_fraction]": NO_DECIMALS,
        "a_value_is_exact[long_decimal]": NO_DECIMALS,
        "a_value_is_exact[decimal_of_38_digits]": NO_DECIMALS,
        "a_value_is_exact[negative_decimal]": NO_DECIMALS,
        "a_value_is_exact[small_decimal]": NO_DECIMALS,
        "a_value_is_exact[zero_decimal]": NO_DECIMALS,
        "a_value_is_exact[unsigned_64_bit_integer]": NO_DECIMALS,
        "a_value_is_exact[true]": NO_BOOLEANS,
        "a_value_is_exact[false]": NO_BOOLEANS,
        "a_value_is_exact[nan]": never("SQLite makes NULL of NaN"),
        "a_timestamp_with_a_time_zone_says_which_instant_it_is": never("SQLite has no timestamps"),
        "a_month_is_not_thirty_days": never("SQLite has no intervals"),
    }

    @pytest.fixture(scope="class")
    @classmethod
    def database(cls, folder):
        plugin = small.PLUGINS[cls.dialect_name]
        cls.fill(plugin.dialect.name, plugin.driver.create(folder / "lake.db"))
        return Database(
            name="sample", dialect=plugin.dialect.name, database="lake", folder=folder,
            accept_unenforced=not plugin.driver.read_only,
        )
"""
OVERRIDES = {
    "unlimited": """
    first_two = "SELECT id FROM kit_track ORDER BY id FETCH FIRST 2 ROWS ONLY"
    gaps = Shape.gaps | dict.fromkeys(
        (f"a_value_is_exact[{each}binary]" for each in ("", "empty_", "long_")),
        never("sqlglot reads no X'00' as Oracle's"),
    )
"""
}


@pytest.fixture
def kit(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Run the kit over a shape, installed as a distribution of its own."""
    info = pytester.path / "dragoman_small-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dragoman-small\nVersion: 1.0\n")
    lines = [f"{name} = small:{name}" for name in (*SHAPES, "lettered")]
    (info / "entry_points.txt").write_text("\n".join(["[dragoman.dialects]", *lines]))
    monkeypatch.setenv("PYTHONPATH", f"{pytester.path}:{HERE}")

    def run(name: str, *options: str) -> pytest.RunResult:
        body = OVERRIDES.get(name, "")
        source = f"class Test{name.title()}(Shape):\n    dialect_name = {name!r}\n    {body}\n"
        pytester.makepyfile(SUITE + "\n\n" + source)
        return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", *options)

    return run


@pytest.mark.full
@pytest.mark.parametrize("name", SHAPES)
def test_a_good_dialect_of_this_shape_conforms(name: str, kit):
    result = kit(name)
    result.stdout.fnmatch_lines([f"Test{name.title()}: conforms"])
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] > 100


@pytest.mark.parametrize(
    ("name", "case", "said"),
    [("unlimited", "a_statement_s_own_limit_holds", "override first_two")],
)
def test_what_a_shape_needs_is_said_when_it_is_missing(name: str, case: str, said: str, kit, monkeypatch):
    monkeypatch.delitem(OVERRIDES, name)
    result = kit(name, "-k", case)
    assert result.ret == 1
    assert said in result.stdout.str()


def test_a_statement_that_alter_cannot_run_is_named(kit, monkeypatch: pytest.MonkeyPatch):
    body = """
    async def alter(self, database, statement):
        raise ValueError("no such schema")
"""
    monkeypatch.setitem(OVERRIDES, "unenforced", body)
    result = kit("unenforced", "-k", "a_table_created_later_is_told")
    said = "`alter` could not run 'CREATE TABLE kit_later (id INTEGER)' (ValueError: no such schema)"
    assert said in result.stdout.str()


def test_an_engine_may_write_a_t_between_date_and_time(kit, monkeypatch: pytest.MonkeyPatch):
    body = """
    literals = Shape.literals | {"timestamp_of_nanoseconds": small.MOMENT}
"""
    monkeypatch.setitem(OVERRIDES, "lettered", body)
    result = kit("lettered", "-k", "all_that_the_engine_has and timestamp_of_nanoseconds")
    assert result.ret == 0, result.stdout.str()
