"""Runs callers' SQL in worker processes that can be killed. Their rows arrive encoded and are passed on."""

from __future__ import annotations

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import Column, ConnectionFailed, Database, ExplainOptions, Finding, Plan, Request
from dragoman.workers import Columns, Run, Told, WorkerExecutor

from dragoman_sqlite import confining
from dragoman_sqlite.doctor import examine
from dragoman_sqlite.files import file_of
from dragoman_sqlite.frames import Confine, Setup
from dragoman_sqlite.options import Options
from dragoman_sqlite.values import storable

MEBIBYTE = 1024 * 1024


class SQLiteExecutor(WorkerExecutor):
    """Reads one database file."""

    def __init__(self, database: Database) -> None:
        self._path = file_of(database)
        options = Options(**database.options)
        setup = Setup(
            path=str(self._path),
            functions=sorted(database.allow_functions),
            memory=options.memory_mb * MEBIBYTE,
            length=options.max_value_kb * 1024,
        )
        super().__init__(database, "dragoman_sqlite.worker", setup)

    def check(self) -> None:
        """Check that the file exists and is a file."""
        check_file(self._path, self.database.name)

    def columns(self, report: Columns) -> list[Column]:
        """Return columns from a report. SQLite knows the types only of columns of tables."""
        return [Column(name, type or "any") for name, type in zip(report.names, report.types, strict=True)]

    def parameters(self, values: Sequence[Any]) -> list[Any]:
        """Return parameters with those that SQLite cannot store converted."""
        return storable(values)

    def order(self, request: Request, **more: Any) -> Run:
        """Return the order for a request, with the views that confine it."""
        if request.confinement is not None:
            bound = confining.values(request.confinement)
            more["confine"] = Confine(confining.SCHEMA, confining.HIDDEN, confining.views(request.confinement), bound)
        return super().order(request, **more)

    async def explain(self, request: Request, options: ExplainOptions) -> Plan:
        """Return EXPLAIN QUERY PLAN, with the bytecode if verbose. SQLite estimates neither cost nor rows.

        Bytecode names pages of the file and counts changes of its schema, so who sees a part of it gets none.
        """
        verbose = options.verbose and not options.reads
        report = await self.ask(self.order(request, task="plan", analyze=options.analyze, verbose=verbose))
        assert isinstance(report, Told)
        text = options.format == "text"
        return Plan(
            plan=plan_text(report) if text else plan_tree(report),
            format=options.format,
            actual_time_ms=report.elapsed_ms,
            warnings=tuple(report.warnings),
            notices=("SQLite does not count buffers.",) if options.buffers else (),
        )

    async def doctor(self) -> Sequence[Finding]:
        """Return what could happen to the file if every guard failed. Opens nothing but the file."""
        self.check()
        return examine(self.database, self._path)


def plan_text(told: Told) -> str:
    """Return the steps as an indented tree, as SQLite's shell prints them, and the bytecode below."""
    depth = {0: -1}
    lines: list[str] = []
    for step, parent, detail in told.plan["steps"]:
        depth[step] = depth.get(parent, -1) + 1
        lines.append("  " * depth[step] + detail)
    bytecode = ["", "addr opcode p1 p2 p3 p4 p5 comment", *(" ".join(map(str, row)) for row in told.plan["bytecode"])]
    return "\n".join(lines + (bytecode if told.plan["bytecode"] else []))


def plan_tree(told: Told) -> list[dict[str, Any]] | dict[str, Any]:
    """Return the steps as nested objects with `detail` and `steps`; with bytecode, an object of both."""
    nodes: dict[int, dict[str, Any]] = {0: {"steps": []}}
    for step, parent, detail in told.plan["steps"]:
        nodes[step] = {"detail": detail}
        nodes.get(parent, nodes[0]).setdefault("steps", []).append(nodes[step])
    tree: list[dict[str, Any]] = nodes[0]["steps"]
    return {"plan": tree, "bytecode": told.plan["bytecode"]} if told.plan["bytecode"] else tree


def check_file(path: Path, name: str) -> None:
    """Raise `ConnectionFailed`, which never shows the path, unless `path` is a file: opening a pipe would block."""
    try:
        str(path).encode()  # SQLite accepts only names in UTF-8
        mode = path.stat().st_mode
    except FileNotFoundError:
        raise _unreachable(
            name, "its file does not exist", "Check `url`; a relative path starts at the configuration's folder."
        ) from None
    except OSError:
        raise _unreachable(
            name, "its file may not be read", "Check the permissions of the file and its folders."
        ) from None
    except ValueError:
        raise _unreachable(name, "its path contains characters that SQLite does not accept", "Check `url`.") from None
    if not stat.S_ISREG(mode):
        remedy = (
            "Check `url`: the path stands behind three slashes, as in sqlite:///shop.db, an absolute one behind four."
        )
        raise _unreachable(name, "its path is not a file", remedy)


def _unreachable(name: str, why: str, remedy: str) -> ConnectionFailed:
    return ConnectionFailed(f"The database {name!r} cannot be read: {why}.", suggestion=remedy)
