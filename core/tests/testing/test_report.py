"""What a run of the kit prints at its end, and which cases count."""

import pytest
from dragoman.testing import DialectConformance, tiers
from dragoman.testing.gaps import case_names

SUITE = """
import pytest
from dragoman import Capability
from dragoman.testing import capability, never, not_implemented, not_yet, recommended, required
from dragoman.testing.base import Suite

class TestOdd(Suite):
    gaps = {gaps}

    @required
    def test_one_thing_holds(self): ...

    @required
    @pytest.mark.parametrize("value", ["a", "b"])
    def test_another_thing(self, value): assert {holds}, "It came as 3. Have the driver hand out 4."

    @recommended(Capability.COMMENTS)
    def test_comments_are_told(self): assert {comments}, "No comments. Tell them."

    @required(since="99.1")
    def test_what_will_count_later(self): assert {later}, "Not ready."
"""


@pytest.fixture
def report(pytester: pytest.Pytester):
    def run(*options: str, gaps="{}", holds=True, comments=True, later=True) -> tuple[pytest.RunResult, str]:
        pytester.makepyfile(SUITE.format(gaps=gaps, holds=holds, comments=comments, later=later))
        result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--strict-markers", *options)
        return result, "\n".join(result.outlines).partition(" conformance kit ")[2]

    return run


def test_a_suite_that_holds_conforms(report):
    result, text = report()
    assert result.ret == 0
    assert f"{tiers.KIT}, contract 1" in text
    assert "TestOdd: conforms\n" in text
    assert "required      4 hold" in text


def test_a_failure_is_told_once_with_its_cases_and_the_next_step(report):
    result, text = report(holds=False)
    assert result.ret == 1
    assert "TestOdd: does not conform: 2 cases of the required tier" in text
    assert "fails: another_thing[a], another_thing[b]\n      It came as 3. Have the driver hand out 4.\n" in text
    assert 'next: fix it: `pytest -k "another_thing and a"`' in text
    assert 'gaps = {"another_thing[a]": never("why")}' in text


def test_beyond_the_required_tier_a_failure_fails_the_run_and_the_suite_conforms(report):
    result, text = report(comments=False)
    assert result.ret == 1
    assert "TestOdd: conforms; 1 case beyond the required tier\n" in text


@pytest.mark.parametrize(
    ("kind", "verdict", "step"),
    [
        ("never", "conforms\n", None),
        ("not_yet", "does not conform yet: 2 cases", "check again at the next release"),
        ("not_implemented", "does not conform yet: 2 cases", "implement what the plugin could do: another_thing[a]"),
    ],
)
def test_a_gap_shows_its_reason_and_counts_by_its_kind(report, kind: str, verdict: str, step: str | None):
    result, text = report(holds=False, gaps=f"{{'another_thing': {kind}('it has only threes')}}")
    assert result.ret == 0
    assert f"TestOdd: {verdict}" in text
    assert "declared as a gap: another_thing[a], another_thing[b]" in text
    assert ": it has only threes" in text
    assert ("next: " in text) == (step is not None)
    assert step is None or step in text


def test_a_case_of_a_later_release_warns_and_does_not_fail(report):
    result, text = report(later=False)
    assert result.ret == 0
    assert "TestOdd: conforms\n" in text
    assert "does not count yet: what_will_count_later\n      counts from dragoman 99.1 on" in text
    assert "Not ready." in text
    assert "fix what_will_count_later before" in text


def test_one_tier_can_be_run_alone(report):
    result, text = report("-m", "kit_recommended")
    result.assert_outcomes(passed=1, deselected=4)
    assert "no case of the required tier ran" in text


def test_a_run_without_the_kit_says_nothing_about_it(pytester: pytest.Pytester):
    pytester.makepyfile("def test_one(): ...")
    assert "conformance kit" not in pytester.runpytest_inprocess("-p", "no:cacheprovider").stdout.str()


def test_every_case_has_one_tier():
    for name in {case.partition("[")[0] for case in case_names(DialectConformance)}:
        marks = [mark for mark in getattr(DialectConformance, f"test_{name}").pytestmark if mark.name in tiers.TIERS]
        assert len(marks) == 1, name


@pytest.mark.parametrize(
    ("since", "version", "due"),
    [("0.2", "0.1.9", "0.2"), ("0.2", "0.2.0", None), ("0.10", "0.9.1", "0.10"), ("1.0", "1.0rc1", None)],
)
def test_a_case_counts_from_its_release_on(since: str, version: str, due: str | None):
    assert tiers.not_due(tiers.required(since=since).mark, version) == due
