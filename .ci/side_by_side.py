"""Runs commands side by side, one more than there are processors; fails if one of them fails, and shows what it said.

Each line of the input is a name and a command, the longest first: `types  uv run mypy`. One that begins with `#` is
left out. A line is printed when a command begins and when it ends; what a command printed is kept, and shown at the end
if it failed, or still ran when the whole was ended from outside.

Tests run while other programs keep every processor busy. A run of pytest in which at most three tests failed runs those
once more, alone, when all else has ended. The output names what passes then as passed alone; what fails again fails the
whole. After `MINUTES`, 80 unless the environment has another number, whatever still runs is ended and has failed: CI
would end it a little later, and might not say what it was.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

AT_ONCE = int(os.environ.get("JOBS") or 1 + max(2, os.cpu_count() or 2))
"""More than there are processors: tests wait for servers and programs. With more still, tests miss their deadlines."""
SECONDS = 60 * float(os.environ.get("MINUTES") or 80)
"""How long the whole may take."""
PATIENT = "400"
"""Seconds that a test without a timeout of its own may take beside other programs. A contributor's run gives it 120."""
STUCK = os.environ.get("STUCK") or "1200"
"""Seconds after which the process of a test ends, once each thread has said where it is.

pytest-timeout ends a test by an error in whatever runs at that moment. If that is something else, the test waits on.
"""
SHOWN = 30_000
"""Of what one command printed, the characters that are shown: its end."""
AGAIN = 3
"""The most tests of one command that run once more. More are no matter of a busy machine."""
_COUNTED = re.compile(r"\d+ (passed|failed|error)")


@dataclass
class Job:
    """A command, where its output goes, and its exit status once it has ended."""

    name: str
    command: list[str]
    output: Path
    process: subprocess.Popen[bytes] | None = None
    status: int | None = None

    def run(self) -> None:
        """Run the command to its end."""
        began = time.monotonic()
        say(f"{self.name}: {shlex.join(self.command)}")
        with self.output.open("wb") as output:
            nothing = subprocess.DEVNULL
            self.process = subprocess.Popen(self.command, stdin=nothing, stdout=output, stderr=subprocess.STDOUT)
            _, status, used = os.wait4(self.process.pid, 0)
            self.status = os.waitstatus_to_exitcode(status)
        took = f"{time.monotonic() - began:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor time"
        say(f"{self.name}: {self.verdict} after {took}; {self.summary()}")

    def set_options(self) -> None:
        """Have pytest keep the names of failed tests in a place of this job's own, and end a test that is stuck."""
        if "pytest" in self.command:
            stuck = (f"faulthandler_timeout={STUCK}", "faulthandler_exit_on_timeout=true")
            options = (f"cache_dir={self.cache}", f"timeout={PATIENT}", *stuck)
            self.command += [part for option in options for part in ("-o", option)]

    def failed_tests(self) -> list[str]:
        """Return the names of the tests that failed, as pytest kept them."""
        names = self.cache / "v/cache/lastfailed"
        return list(json.loads(names.read_text(encoding="utf-8"))) if names.exists() else []

    def run_failures_again(self) -> None:
        """Run the failed tests once more, if they are few; the command passes if they do."""
        tests = self.failed_tests()
        if self.status != 1 or not 0 < len(tests) <= AGAIN:
            return
        first = self.printed()
        self.command += ["--last-failed", "--last-failed-no-failures", "none"]
        self.run()
        word = "PASSED ALONE, failed beside other programs" if self.status == 0 else "failed alone too"
        say(f"{self.name}: {word}: {', '.join(tests)}")
        say(f"{self.name}: what it printed at first:\n{first}")

    @property
    def cache(self) -> Path:
        """The folder where pytest keeps what failed."""
        return self.output.with_suffix(".cache")

    @property
    def verdict(self) -> str:
        """How it ended."""
        return "did not end" if self.status is None else "passed" if self.status == 0 else f"FAILED ({self.status})"

    def summary(self) -> str:
        """Return the last line it printed, or that in which a test run says how many tests it had."""
        lines = self.printed().strip().splitlines() or [""]
        return next((line for line in reversed(lines) if _COUNTED.search(line)), lines[-1])[:200]

    def printed(self) -> str:
        """Return the end of what it printed so far."""
        text = self.output.read_text(encoding="utf-8", errors="replace") if self.output.exists() else ""
        return text[-SHOWN:]


def say(line: str) -> None:
    print(f"== {line}", flush=True)


def main() -> int:
    """Run the jobs of the input; return the status of the whole."""
    with tempfile.TemporaryDirectory() as folder:
        lines = [line.split(None, 1) for line in sys.stdin if line.strip() and not line.startswith("#")]
        jobs = [Job(name, shlex.split(command), Path(folder, name)) for name, command in lines]
        signal.signal(signal.SIGTERM, lambda *_: give_up(jobs))
        alarm = threading.Timer(SECONDS, give_up, [jobs])
        alarm.daemon = True
        alarm.start()
        for job in jobs:
            job.set_options()
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(Job.run, jobs))
        for job in jobs:
            job.run_failures_again()
        return show_failures(jobs)


def give_up(jobs: list[Job]) -> None:
    """End what runs, and the whole, after it has shown how far everything came."""
    show_failures(jobs)
    for job in jobs:
        if job.process and job.status is None:
            job.process.terminate()
    os._exit(1)


def show_failures(jobs: list[Job]) -> int:
    """Print what each command that did not pass has printed; return 0 if all passed, and 1 otherwise."""
    failed = [job for job in jobs if job.status != 0]
    for job in failed:
        print(f"\n== {job.name} {job.verdict}. The end of what it printed:\n{job.printed()}", flush=True)
    say(f"failed: {', '.join(job.name for job in failed)}" if failed else "everything passed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
