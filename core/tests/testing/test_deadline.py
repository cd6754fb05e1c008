"""A case that hangs is a failure with a name, and a fixture that fails is one failure."""

import sys

import pytest

SUITE = """
import threading
import time
import pytest
from dragoman.testing import required
from dragoman.testing import deadline

deadline.GRACE = {grace}

class TestHanging:
    deadline = 0.3

    @pytest.fixture(scope="class")
    @classmethod
    def built(cls):
        {building}

    @required
    def test_hanging(self, built):
        {hanging}

    @required
    def test_another(self, built):
        pass

    @required
    def test_a_third(self, built):
        pass
"""
FORGOTTEN = {
    "a thread": "threading.Thread(target=time.sleep, args=(30,)).start()",
    "a thread of a pool": "__import__('concurrent.futures').futures.ThreadPoolExecutor(1).submit(time.sleep, 30)",
}


@pytest.fixture
def run(pytester: pytest.Pytester):
    def run(hanging: str = "pass", building: str = "pass", grace: float = 20.0):
        pytester.makepyfile(SUITE.format(hanging=hanging, building=building, grace=grace))
        return pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider", "-p", "no:timeout")

    return run


def test_a_case_that_waits_forever_fails_and_the_others_run(run):
    outcome = run("threading.Event().wait()")
    assert outcome.parseoutcomes() == {"failed": 1, "passed": 2}
    outcome.stdout.fnmatch_lines(["*Hung: test_hanging did not end within 0.3 seconds*"])


def test_a_driver_that_does_not_give_its_thread_back_ends_the_run_with_a_name(run):
    deaf = "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM]); threading.Event().wait()"
    outcome = run(deaf, grace=0.3)
    assert outcome.ret == 70
    outcome.stderr.fnmatch_lines(["*test_hanging hangs, and the driver does not release its thread*"])


def test_a_fixture_that_fails_is_one_failure(run):
    outcome = run(building="raise RuntimeError('no server')")
    assert outcome.parseoutcomes() == {"errors": 1, "skipped": 2}
    outcome.stdout.fnmatch_lines(
        [
            "*: was not judged: the fixtures of its cases failed",
            "*could not begin: *",
            "*no server",
            "*next: fix the fix*",
        ]
    )
    outcome.stdout.no_fnmatch_line("*never(*")


@pytest.mark.parametrize("what", ["a thread", pytest.param("a thread of a pool", marks=pytest.mark.full)])
def test_a_thread_that_never_ends_does_not_keep_the_run_from_ending(what: str, run):
    outcome = run(FORGOTTEN[what])
    assert outcome.ret == 0
    outcome.stderr.fnmatch_lines(["*threads of the driver keep this process from ending*"])


def test_a_run_inside_another_program_does_not_end_that_program(pytester: pytest.Pytester):
    """A test of this very suite ran the kit in its own process; ten seconds later the whole run was gone, with 0."""
    suite = SUITE.format(hanging="pass", building="pass", grace=20)
    pytester.makepyfile(test_inner=suite)
    program = """
import threading, pytest
import dragoman.pytest_plugin
dragoman.pytest_plugin.LEAVING = 0
assert pytest.main(["-q", "-p", "no:cacheprovider", "test_inner.py"]) == 0
[leaving] = [each for each in threading.enumerate() if each.name == "kit-leaving"]
leaving.join(1)
print("still here", flush=True)
"""
    outcome = pytester.run(sys.executable, "-c", program)
    outcome.stdout.fnmatch_lines(["still here"])
