"""The pytest plugin that loads when dragoman is installed: the kit's marks, and a report after a run that used the kit.

It imports nothing of dragoman before a case of the kit has run, so that other test suites pay nothing for it.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from _pytest.terminal import TerminalReporter

MARKS = (
    "kit_required: a dialect that fails this case is wrong",
    "kit_recommended(*capabilities): without this case, agents or administrators miss something",
    "kit_capability(*capabilities): a case that checks whether the declaration is true",
)
TIERS = {mark.partition(":")[0].partition("(")[0]: mark.partition(":")[0].partition("(")[0][4:] for mark in MARKS}
FACTS = "dragoman_kit"
FAILED = pytest.StashKey[dict[int, tuple[str, BaseException]]]()
STDERR = pytest.StashKey[int]()
LEAVING = 10.0
"""Seconds that the process gets to end after a run."""
SHOWN = 6
"""The number of cases that are named per failure. The rest are counted."""


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks and the report."""
    for mark in MARKS:
        config.addinivalue_line("markers", mark)
    config.stash[STDERR] = os.dup(2)  # output to stderr is captured later, and lost if a case hangs
    config.pluginmanager.register(Report(), "dragoman-kit-report")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None]:
    """Report a fixture that fails for a whole class only once: skip the cases after the first."""
    if not any(mark.name in TIERS for mark in item.iter_markers()):
        return (yield)
    try:
        return (yield)
    except Exception as error:
        # pytest keeps the error of a fixture, and raises the same one for every case that uses it.
        first = item.session.stash.setdefault(FAILED, {}).setdefault(id(error), (item.name, error))[0]
        if first == item.name:
            raise
    pytest.skip(f"its fixtures failed for {first} already")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Limit the time of a case of the kit, its fixtures included."""
    seconds = getattr(getattr(item, "cls", None), "deadline", None)
    if seconds is None or not any(mark.name in TIERS for mark in item.iter_markers()):
        return (yield)
    from dragoman.testing.deadline import Hung, limit_time

    try:
        with limit_time(seconds, item.name, item.config.stash[STDERR]):
            return (yield)
    except Hung as error:  # between two phases, where no report records it
        pytest.exit(str(error), returncode=1)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the process after a run of the kit, even if a driver's thread never ends."""
    report = config.pluginmanager.get_plugin("dragoman-kit-report")
    if report is None or not report.used:
        return
    threading.Thread(target=_end, args=(report.status, config.stash[STDERR]), name="kit-leaving", daemon=True).start()


def _end(status: int, stderr: int) -> None:
    """End the process if it does not end by itself.

    The main thread must have ended first. A run inside another program, such as the test of another run, leaves that
    program alone.
    """
    from dragoman.testing.deadline import end_process, is_leaving

    while not is_leaving(threading.main_thread()):
        time.sleep(0.1)
    time.sleep(LEAVING)
    end_process("threads of the driver keep this process from ending", status, stderr)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add what the report needs to know about a case. It travels between processes as JSON."""
    report = yield
    mark = next((mark for mark in item.iter_markers() if mark.name in TIERS), None)
    if mark is not None:
        dialect = getattr(item, "funcargs", {}).get("dialect")
        facts = {
            "suite": item.parent.name if item.parent else "",
            "case": item.name.removeprefix("test_"),
            "tier": TIERS[mark.name],
            "capabilities": [capability.name for capability in mark.args],
            "declared": None if dialect is None else sorted(each.name for each in dialect.capabilities),
            "lacking": sorted(each.name for each in getattr(getattr(item, "cls", None), "engine_lacks", ())),
            "message": "" if call.excinfo is None else _quote(call.excinfo.value),
        }
        setattr(report, FACTS, facts)
    return report


def _quote(error: BaseException) -> str:
    """Return an assertion's own message, without what pytest adds below it; of another error, the type too."""
    text = str(error).partition("\nassert ")[0].strip()
    return text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}"


@dataclass(slots=True)
class Outcome:
    """The outcome of one case.

    `state`: holds, gap, soon (a failure that does not count yet), fails, skipped, or broken (its fixtures failed).
    """

    tier: str
    capabilities: Sequence[str]
    state: str = "holds"
    message: str = ""


class Suite:
    """The cases of one class, the capabilities its dialect declares, and the gaps of the engine."""

    def __init__(self) -> None:
        self.cases: dict[str, Outcome] = {}
        self.declared: set[str] | None = None
        self.lacking: set[str] = set()

    def take(self, facts: Mapping[str, Any], report: pytest.TestReport) -> None:
        """Record one phase of one case."""
        outcome = self.cases.setdefault(facts["case"], Outcome(facts["tier"], facts["capabilities"]))
        if facts["declared"] is not None:
            self.declared = set(facts["declared"])
        self.lacking = set(facts["lacking"])
        state, reason = _state(report), getattr(report, "wasxfail", "")
        if state != "holds" and outcome.state not in {"fails", "broken"}:
            told = {"gap": reason, "soon": f"{reason}: {facts['message']}"}.get(state, facts["message"])
            outcome.state, outcome.message = state, told or str(report.longrepr)

    def in_state(self, state: str, tier: str | None = None) -> dict[str, Outcome]:
        """Return the cases that ended in a state, by name."""
        return {
            name: outcome
            for name, outcome in self.cases.items()
            if outcome.state == state and tier in (None, outcome.tier)
        }


def _state(report: pytest.TestReport) -> str:
    if report.failed:
        return "broken" if report.when == "setup" else "fails"
    if report.skipped:
        reason = getattr(report, "wasxfail", None)
        return "skipped" if reason is None else "soon" if reason.startswith("counts from") else "gap"
    return "holds"


class Report:
    """Gathers outcomes, in the process that writes to the terminal, and prints them suite by suite."""

    def __init__(self) -> None:
        self._suites: defaultdict[str, Suite] = defaultdict(Suite)
        self.status = 1

    @property
    def used(self) -> bool:
        """Whether the kit was used at all."""
        return bool(self._suites)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Store how the run ended."""
        self.status = int(exitstatus)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of one test."""
        facts = getattr(report, FACTS, None)
        if facts is not None:
            self._suites[facts["suite"]].take(facts, report)

    def pytest_terminal_summary(self, terminalreporter: TerminalReporter) -> None:
        """Print the report when the kit was used."""
        if not self._suites:
            return
        from dragoman.dialect import CONTRACT
        from dragoman.testing.tiers import KIT

        terminalreporter.section(f"dragoman conformance kit {KIT}, contract {CONTRACT}")
        for name, suite in self._suites.items():
            for line in lines(name, suite):
                terminalreporter.write_line(line)


def lines(name: str, suite: Suite) -> Iterator[str]:
    """Yield the report of one suite, line by line."""
    yield f"{name}: {_verdict(suite)}"
    for tier in TIERS.values():
        counts = {state: len(suite.in_state(state, tier)) for state in ("holds", "gap", "soon", "fails")}
        if any(counts.values()):
            words = {"holds": "hold", "gap": "declared as gaps", "soon": "fail and do not count yet", "fails": "fail"}
            yield f"  {tier:<14}" + ", ".join(f"{count} {words[state]}" for state, count in counts.items() if count)
    yield from _capabilities(suite)
    for state, title in (
        ("broken", "could not begin"),
        ("fails", "fails"),
        ("soon", "does not count yet"),
        ("gap", "declared as a gap"),
    ):
        for message, cases in _by_message(suite.in_state(state)).items():
            yield f"  {title}: {_list_cases(cases)}"
            yield from (f"      {line}" for line in message.splitlines())
    yield from (f"  next: {step}" for step in _next(suite))


def _verdict(suite: Suite) -> str:
    if suite.in_state("broken"):
        return "was not judged: the fixtures of its cases failed"
    if failing := len(suite.in_state("fails", "required")):
        return f"does not conform: {_cases(failing)} of the required tier"
    unfinished = [one for one in suite.in_state("gap", "required").values() if not one.message.startswith("never")]
    if unfinished:
        return f"does not conform yet: {_cases(len(unfinished))} of the required tier could pass and are gaps"
    if not suite.in_state("holds", "required"):
        return "no case of the required tier ran"
    others = len(suite.in_state("fails"))
    return "conforms" + (f"; {_cases(others)} beyond the required tier" if others else "")


def _cases(count: int) -> str:
    return f"{count} case{'s' if count > 1 else ''}"


def _capabilities(suite: Suite) -> Iterator[str]:
    """Yield a line each for capabilities that hold, that fail, and that are recommended but not declared."""
    if suite.declared is None:
        return
    of_tier: dict[str, set[str]] = {tier: set() for tier in TIERS.values()}
    failing: set[str] = set()
    for outcome in suite.cases.values():
        of_tier[outcome.tier] |= set(outcome.capabilities)
        failing |= set(outcome.capabilities) if outcome.state == "fails" else set()
    known = set[str]().union(*of_tier.values())
    for title, names in (
        ("can", (suite.declared & known) - failing),
        ("cannot", known - suite.declared - failing),
        ("in doubt", failing),
        ("worth adding", of_tier["recommended"] - suite.declared - suite.lacking),
    ):
        if names:
            yield f"  {title:<14}" + ", ".join(sorted(names))


def _by_message(outcomes: Mapping[str, Outcome]) -> dict[str, list[str]]:
    found: defaultdict[str, list[str]] = defaultdict(list)
    for name, outcome in outcomes.items():
        found[outcome.message].append(name)
    return found


def _list_cases(cases: Sequence[str]) -> str:
    return ", ".join(cases[:SHOWN]) + (f" and {len(cases) - SHOWN} more" if len(cases) > SHOWN else "")


def _select(case: str) -> str:
    """Return what `pytest -k` takes to run one case, with its example if that is a word."""
    name, _, example = case.rstrip("]").partition("[")
    return f'"{name} and {example}"' if re.fullmatch(r"\w+", example) else name


def _next(suite: Suite) -> Iterator[str]:
    """Yield the next steps for the author."""
    if broken := suite.in_state("broken"):
        yield f"fix the fixtures of the class: `pytest -x -k {next(iter(broken)).partition('[')[0]}` runs them."
    if failing := suite.in_state("fails"):
        first = next(iter(suite.in_state("fails", "required") or failing))
        yield (
            f"fix it: `pytest -k {_select(first)}` runs the first alone. If the engine cannot do this by its"
            f' nature, declare a gap: gaps = {{"{first}": never("why")}}.'
        )
    gaps = suite.in_state("gap")
    if open_ends := [name for name, gap in gaps.items() if gap.message.startswith("not implemented")]:
        yield f"implement what the plugin could do: {_list_cases(open_ends)}."
    if watched := [name for name, gap in gaps.items() if gap.message.startswith("not yet")]:
        yield f"check again at the next release of the engine or the driver: {_list_cases(watched)}."
    if soon := suite.in_state("soon"):
        yield f"fix {_list_cases(list(soon))} before the release named above."
