"""The kit's pages name what is there."""

import re
from pathlib import Path

import dragoman
import pytest
from dragoman import testing
from dragoman.testing import tiers
from dragoman.testing.base import Suite
from dragoman.testing.gaps import case_names
from dragoman.testing.values import ARRAYS, NESTED, VALUES

DOCS = Path(__file__).parents[3] / "docs"
KIT = (DOCS / "conformance-kit.md").read_text(encoding="utf-8")


def test_every_tier_is_on_the_page():
    assert set(re.findall(r"pytest -m (kit_\w+)", KIT)) == set(tiers.TIERS)


@pytest.mark.parametrize(
    "case", ["a_value_is_exact[nan]", "a_month_is_not_thirty_days", "comments_are_told_as_declared"]
)
def test_the_gaps_of_the_page_are_cases(case: str):
    assert f'"{case}"' in KIT
    assert case in case_names(testing.DialectConformance)


@pytest.mark.parametrize(
    "name", ["first_two", "engine_lacks", "literals", "types", "is_idle", "failing_query", "slow_query"]
)
def test_what_the_page_says_may_be_overridden_is_there(name: str):
    assert f"`{name}`" in KIT
    assert hasattr(Suite, name)


def test_the_numbers_of_the_versioning_page_are_where_it_says():
    page = (DOCS / "versioning.md").read_text(encoding="utf-8")
    assert "`dragoman.CONTRACT`" in page
    assert "`dragoman.testing.KIT`" in page
    assert isinstance(dragoman.CONTRACT, int)
    assert isinstance(testing.KIT, int)


def test_the_public_names_are_sorted_and_there():
    assert testing.__all__ == sorted(testing.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(testing, name) for name in testing.__all__)


def test_every_value_is_on_the_page():
    section = KIT.partition("## The values")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` ", section, re.M) == [*VALUES, *ARRAYS, *NESTED]
