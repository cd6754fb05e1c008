import json
import subprocess
import sys

import pytest
from dragoman.cli.check import LONGEST

from .conftest import Dragoman


def test_an_allowed_statement_exits_0(dragoman: Dragoman) -> None:
    outcome = dragoman("check", "SELECT count(*) FROM anything", "--dialect", "sqlite")
    assert (outcome.code, outcome.out, outcome.err) == (0, "allowed\n", "")


def test_a_refused_statement_exits_1_with_the_reason_on_stderr(dragoman: Dragoman) -> None:
    outcome = dragoman("check", "DROP TABLE t", "--dialect", "sqlite")
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("WRITE_OPERATION_DENIED: ")


@pytest.mark.parametrize("argument", [[], ["-"]])
def test_the_statement_may_come_from_stdin(dragoman: Dragoman, argument: list[str]) -> None:
    assert dragoman("check", *argument, "--dialect", "sqlite", stdin=b"SELECT 1").code == 0
    assert dragoman("check", *argument, "--dialect", "sqlite", stdin=b"DELETE FROM t").code == 1


def test_json_is_one_verdict(dragoman: Dragoman) -> None:
    outcome = dragoman("check", "DROP TABLE t", "--dialect", "sqlite", "--json")
    verdict = json.loads(outcome.out)
    assert (outcome.code, verdict["allow"], verdict["code"]) == (1, False, "WRITE_OPERATION_DENIED")


@pytest.mark.parametrize("argv", [["check", "SELECT 1"], ["check", "SELECT 1", "--dialect", "nosuch"]])
def test_without_a_known_dialect_it_is_a_usage_error(dragoman: Dragoman, argv: list[str]) -> None:
    outcome = dragoman(*argv)
    assert outcome.code == 2
    assert "dialect" in outcome.err


LINES: list[tuple[bytes, str | None]] = [
    (b'{"dialect": "sqlite", "sql": "SELECT 1"}', None),
    (b'{"dialect": "sqlite", "sql": "DROP TABLE t"}', "WRITE_OPERATION_DENIED"),
    (b'{"dialect": "sqlite", "sql": ""}', "INVALID_SQL"),
    (b'{"dialect": "sqlite", "sql": "\\ud800"}', "INVALID_SQL"),
    (b'{"dialect": "sqlite", "sql": 5}', "PARAMETER_ERROR"),
    (b'{"dialect": "sqlite"}', "PARAMETER_ERROR"),
    (b'{"dialect": null, "sql": "SELECT 1"}', "PARAMETER_ERROR"),
    (b'{"sql": "SELECT 1"}', "PARAMETER_ERROR"),
    (b'{"dialect": "nosuch", "sql": "SELECT 1"}', "DIALECT_ERROR"),
    (b'{"dialect": "sqlite", "sql": "SELECT 1"', "PARAMETER_ERROR"),
    (b"", "PARAMETER_ERROR"),
    (b"[]", "PARAMETER_ERROR"),
    (b"null", "PARAMETER_ERROR"),
    (b"\xff\xfe", "PARAMETER_ERROR"),
    (b"\x00", "PARAMETER_ERROR"),
    (b"[" * 100_000, "PARAMETER_ERROR"),
    (b'{"dialect": "sqlite", "sql": "' + b"(" * 100_000 + b'"}', "INVALID_SQL"),
    (b'{"dialect": "sqlite", "sql": "SELECT ' + b"a" * 60_000 + b'()"}', "UNSAFE_SQL"),
    (b'{"dialect": "sqlite", "sql": "SELECT 2"}', None),
]


def test_every_line_gets_its_verdict_in_order_whatever_it_holds(dragoman: Dragoman) -> None:
    outcome = dragoman("check", "--jsonl", stdin=b"\n".join(line for line, _ in LINES))
    verdicts = [json.loads(line) for line in outcome.out.splitlines()]
    assert outcome.code == 0
    assert [verdict["code"] for verdict in verdicts] == [code for _, code in LINES]
    assert all(verdict["allow"] is (code is None) for verdict, (_, code) in zip(verdicts, LINES, strict=True))
    assert all(verdict.keys() == {"allow", "code", "reason"} for verdict in verdicts)
    assert all(len(verdict["reason"] or "") < 3_000 for verdict in verdicts)
    assert not any("the parameters against the statement" in (verdict["reason"] or "") for verdict in verdicts)


def test_dialect_is_the_default_of_lines_that_do_not_say(dragoman: Dragoman) -> None:
    outcome = dragoman("check", "--jsonl", "--dialect", "sqlite", stdin=b'{"sql": "SELECT 1"}\n')
    assert json.loads(outcome.out)["allow"] is True


def test_each_answer_is_flushed_before_the_next_line_is_read() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "check", "--jsonl"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin
    assert process.stdout
    with process:
        for line, code in LINES[:2]:
            process.stdin.write(line + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["code"] == code
        process.stdin.close()
        assert process.wait(timeout=30) == 0


@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_line_that_is_too_long_gets_one_answer_and_is_not_kept(dragoman: Dragoman, end: bytes) -> None:
    long = b'{"dialect": "sqlite", "sql": "SELECT 1"}' + b" " * 3 * LONGEST
    good = b'{"dialect": "sqlite", "sql": "SELECT 1"}'
    for lines in ([long, good], [good, long], [long[:LONGEST], good], [good]):
        outcome = dragoman("check", "--jsonl", stdin=b"\n".join(lines) + end)
        allowed = [json.loads(line)["allow"] for line in outcome.out.splitlines()]
        assert allowed == [len(line) < LONGEST for line in lines]


@pytest.mark.parametrize("command", [["check", "-", "--dialect", "sqlite"], ["query", "shop", "-"]])
def test_a_stdin_that_never_ends_is_too_long_a_statement(command: list[str]) -> None:
    with open("/dev/zero", "rb") as zero:
        process = subprocess.run(
            [sys.executable, "-m", "dragoman", *command, "--url", "shop=sqlite:///nowhere.db"],
            stdin=zero,
            capture_output=True,
            check=False,
            timeout=60,
        )
    assert (process.returncode, process.stdout) == (1, b"")
    assert b"INVALID_SQL" in process.stderr
