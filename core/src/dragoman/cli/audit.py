"""`dragoman audit`: verify the records of calls, show the last ones, or summarize them."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from dragoman.cli.common import add_json_argument, add_source_arguments, load_configuration
from dragoman.cli.output import print_table, put
from dragoman.errors import ConfigurationError

if TYPE_CHECKING:
    from dragoman.audit import Link, Record
    from dragoman.audit.report import Usage
    from dragoman.dialect import AuditStore

T = TypeVar("T")

EXAMPLES = """\
examples:
  dragoman audit verify
  dragoman audit verify --head 1204:9f3ab0c2d4e5f607
  dragoman audit tail -n 50 --json
  dragoman audit report --since 2026-11-01
"""
ACTIONS = {
    "verify": "find every record that was edited, dropped, added or moved",
    "tail": "print the last records",
    "report": "summarize usage by caller and database",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.epilog = EXAMPLES
    commands = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    for name, summary in ACTIONS.items():
        action = commands.add_parser(name, help=summary, description=summary)
        action.add_argument("--path", help="the audit's files, instead of the configured ones")
        add_source_arguments(action)
        add_json_argument(action)
        if name == "verify":
            action.add_argument(
                "--head",
                action="append",
                default=[],
                metavar="SEQ:SEAL",
                help="a record that must exist, as the log names it under `audit`; repeatable",
            )
        elif name == "tail":
            action.add_argument("-n", "--lines", type=int, default=10, help="how many records (10)")
        else:
            action.add_argument(
                "--since",
                default="",
                metavar="TIME",
                help="records from TIME on (2026-11-01, or 2026-11-01T09:30, UTC)",
            )
            action.add_argument("--until", default="", metavar="TIME", help="records before TIME")


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    return {"verify": _verify, "tail": _tail, "report": _report}[arguments.action](arguments)


def _place(arguments: argparse.Namespace) -> Path | AuditStore:
    """Return the audit: its files, or else its database."""
    from dragoman.plugins import Plugins

    if arguments.path:
        return _files(Path(arguments.path))
    audit = load_configuration(arguments).audit
    if audit.path is not None:
        return _files(audit.path)
    if audit.database is not None:
        return Plugins.discover().audit_store(audit.database)
    raise ConfigurationError(
        "No audit is configured.", suggestion="Set audit.path or audit.url, or name files with --path."
    )


def _files(path: Path) -> Path:
    from dragoman.audit.file import audit_files

    if not audit_files(path):
        raise ConfigurationError(f"There are no audit files of {path}.", suggestion="Check audit.path.")
    return path


def _verify(arguments: argparse.Namespace) -> int:
    import dataclasses

    from dragoman.audit import verify_files, verify_stored

    place, heads = _place(arguments), [_head(text) for text in arguments.head]
    if isinstance(place, Path):
        found = verify_files(place, heads)
    else:
        found = asyncio.run(_read(place, lambda lines: verify_stored(lines, heads)))
    if arguments.json:
        put(json.dumps(dataclasses.asdict(found)))
        return 1 if found.faults else 0
    for note in found.notes:
        put(f"note: {note}")
    for fault in found.faults:
        put(f"{fault.file}:{fault.line}: {fault.what}")
    intact = "all are unchanged" if not found.faults else f"{len(found.faults)} faults"
    put(f"{found.records} records from number {found.begins} to {found.head}: {intact}")
    return 1 if found.faults else 0


async def _read(store: AuditStore, reader: Callable[[AsyncIterator[tuple[int, str]]], Awaitable[T]]) -> T:
    await store.open()
    try:
        return await reader(store.lines())
    finally:
        await store.aclose()


def _records(arguments: argparse.Namespace, since: str = "", until: str = "") -> Iterable[Record]:
    from dragoman.audit import records, stored_records

    place = _place(arguments)
    if isinstance(place, Path):
        return records(place, since, until)
    return asyncio.run(_read(place, lambda lines: stored_records(lines, since, until)))


def _head(text: str) -> Link:
    from dragoman.audit import Link

    number, _, seal = text.partition(":")
    if not number.isdecimal() or len(seal) < 16:
        raise ConfigurationError(f"--head {text!r} is not a record.", suggestion="Write it as in the log: SEQ:SEAL.")
    return Link(int(number), seal)


def _tail(arguments: argparse.Namespace) -> int:
    last: deque[Record] = deque(_records(arguments), maxlen=max(arguments.lines, 0))
    if arguments.json:
        for record in last:
            put(json.dumps(_as_dict(record), ensure_ascii=False))
        return 0
    told = [_as_dict(record) for record in last]
    acting = ("acting",) if any(each.get("acting") for each in told) else ()
    columns = ("ts", "principal", "tool", "database", *acting, "outcome", "rows", "ms", "sql")
    print_table(columns, [[str(each.get(column, "")) for column in columns] for each in told])
    return 0


def _as_dict(record: Record) -> dict[str, Any]:
    import msgspec

    told: dict[str, Any] = msgspec.to_builtins(record)
    return told


def _report(arguments: argparse.Namespace) -> int:
    from dragoman.audit import report

    made = report(_records(arguments, _moment(arguments.since), _moment(arguments.until)))
    told = [_summarize(principal, database, usage) for (principal, database), usage in sorted(made.usage.items())]
    if arguments.json:
        put(json.dumps(told, ensure_ascii=False))
        return 0
    acting = ("acting",) if any(each["acting"] for each in told) else ()
    columns = ("principal", "database", *acting, "calls", "refused", "rows", "bytes", "ms", "outcomes", "relations")
    print_table(columns, [[_format(each[column]) for column in columns] for each in told])
    return 0


def _moment(text: str) -> str:
    """Return a time as records have theirs, so that texts compare as times do. None stays empty."""
    for rest in ("", "-01", "-01-01") if text else ():  # a month or a year is its first day
        with suppress(ValueError, OverflowError):
            told = datetime.fromisoformat(text + rest)
            moment = told.astimezone(UTC) if told.tzinfo else told
            return moment.replace(tzinfo=None).isoformat(timespec="microseconds")
    if text:
        raise ConfigurationError(f"{text!r} is not a time.", suggestion="Write 2026-11-01, or 2026-11-01T09:30 (UTC).")
    return ""


def _summarize(principal: str, database: str, usage: Usage) -> dict[str, Any]:
    return {
        "principal": principal,
        "database": database,
        "acting": dict(usage.acting.most_common(5)),
        "calls": usage.calls,
        "refused": usage.refused,
        "rows": usage.rows,
        "bytes": usage.bytes,
        "ms": round(usage.ms, 1),
        "outcomes": dict(usage.outcomes.most_common()),
        "relations": dict(usage.relations.most_common(5)),
    }


def _format(value: Any) -> str:
    if isinstance(value, dict):
        counts = cast("dict[str, int]", value)
        return ", ".join(f"{name} {number}" for name, number in counts.items())
    return str(value)
