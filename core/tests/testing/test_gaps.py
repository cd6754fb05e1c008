"""Gaps: declared with a reason, for cases that exist, and strict."""

import pytest
from dragoman import Capability
from dragoman.testing import DialectConformance, never, not_implemented, not_yet
from dragoman.testing.gaps import case_names

CASE = "an_empty_result_has_its_columns"


def subclass(**gaps):
    return type("TestSome", (DialectConformance,), {"gaps": gaps})


@pytest.mark.parametrize("kind", [never, not_yet, not_implemented])
def test_a_gap_needs_a_reason(kind):
    with pytest.raises(TypeError, match="reason"):
        kind(" ")


def test_a_gap_in_a_case_that_is_not_there_is_an_error_that_names_the_near_one():
    with pytest.raises(TypeError, match=CASE):
        subclass(an_empty_result_has_its_column=never("there are none"))


@pytest.mark.parametrize("case", [CASE, "a_value_is_exact", "a_value_is_exact[nan]"])
def test_a_gap_names_a_case_or_one_of_its_values(case: str):
    assert subclass(**{case: not_yet("release 9")}).gaps[case].reason == "not yet: release 9"


def test_every_case_is_a_sentence_of_its_own():
    names = [name for name in case_names(DialectConformance) if "[" not in name]
    assert len(names) == len(set(names)) > 60
    assert all(name.count("_") >= 2 for name in names)


def test_what_the_engine_lacks_cannot_be_declared():
    class TestSome(DialectConformance):
        engine_lacks = frozenset({Capability.PRIMARY_KEYS})

    with pytest.raises(ValueError, match=r"PRIMARY_KEYS: TestSome\.engine_lacks .* Remove it from one"):
        TestSome.statements("sqlite")
