"""The doctor: reports findings that an administrator can act on, and changes nothing."""

from __future__ import annotations

from typing import Any

from dragoman.errors import ConnectionFailed, DragomanError
from dragoman.gateway import Gateway
from dragoman.gateway.doctor import SEVERITIES
from dragoman.model import Database, Finding
from dragoman.testing import sample
from dragoman.testing.base import PLANTED, OpenDatabase, Suite, advise_on, ask
from dragoman.testing.tiers import recommended


class DoctorCases(Suite):
    """Cases for the executor's part of `dragoman doctor`."""

    @recommended
    async def test_the_doctor_tells_findings_and_changes_nothing(self, gateway: Gateway, opened: OpenDatabase) -> None:
        before = await _rows(gateway)
        findings = await _examine(opened)
        for finding in findings:
            assert isinstance(finding, Finding), f"`Executor.doctor` gave {finding!r}, not a Finding."
            assert finding.severity in SEVERITIES, f"The severity {finding.severity!r} is none of {SEVERITIES}."
            told = (finding.subject, finding.message, finding.remedy)
            assert all(told), f"{finding!r} must name its subject, what could happen and how to prevent it."
            assert finding.subject.isidentifier(), f"{finding.subject!r} must be a short stable name: `write_grants`."
        assert await _rows(gateway) == before, "The doctor changed the sample: it must only read."

    @recommended
    async def test_the_doctor_of_an_unreachable_database_fails_without_secrets(self, database: Database) -> None:
        async with Gateway.open([self.unreachable(database)]) as gateway:
            try:
                told = str(await _examine(gateway.database()))
            except ConnectionFailed as error:
                told = f"{error.message} {error.suggestion}"
        assert PLANTED not in told, "A finding shows the password or the path."


async def _examine(opened: OpenDatabase) -> Any:
    try:
        return await opened.executor.doctor()
    except DragomanError:
        raise
    except Exception as error:
        raise AssertionError(advise_on(error)) from error


async def _rows(gateway: Gateway) -> list[Any]:
    tables = (sample.GENRE, sample.TRACK, sample.RATING)
    return [sorted(map(str, (await ask(gateway, f"SELECT * FROM {table}")).rows)) for table in tables]
