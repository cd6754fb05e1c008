"""Writes the audit's record of a call before its answer is sent."""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import time
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any, cast

from dragoman.audit import AuditFile, Event, Record, StoredAudit, encode, moment
from dragoman.cleanup import finish
from dragoman.config import wants_telemetry
from dragoman.errors import DragomanError, InternalError
from dragoman.gateway.sinks import Sinks
from dragoman.model import Acting, ConfinedRelation, Principal
from dragoman.telemetry import Gauge, Metrics, ModelUse, origin

if TYPE_CHECKING:
    from dragoman.gateway.calls import CallRecord
    from dragoman.gateway.opened import OpenDatabase
    from dragoman.telemetry.tracing import Tracing

_log = logging.getLogger(__name__)
PATIENCE = 15.0
"""Seconds that writing a record may take, to a database, or to a file that another process keeps locked."""
_PAUSE = 0.02
_SECOND = 1.0
_SQL = ("sql", "params")
_VALUES = ("params", "key")
_ADDRESS = ("url",)
"""Matches statements that contain passwords, which are never kept."""
_LONGEST = 65536
"""The most characters of a statement that are kept. A longer one never runs."""
_LARGEST = 8 * _LONGEST


NamesOf = Callable[[Principal], tuple[str, ...]]


class Recorder:
    """Records every finished call: for OpenTelemetry, in the audit, in the counters.

    `sinks`: where the audit goes. `roles`: returns the names of a principal's roles.
    """

    def __init__(self, sinks: Sinks, slow_query: float = 0.0, roles: NamesOf = lambda _: ()) -> None:
        self._slow = slow_query * 1e9
        self._roles = roles
        self.metrics = Metrics()
        self._tracing = _tracing()
        self._sinks = sinks
        self._calls = count(1)
        self._process = os.urandom(6).hex()

    async def open(self) -> None:
        """Open the audit's database. Raises `ConfigurationError` if the audit is required and it cannot be used."""
        await self._sinks.open()

    def change(self, sinks: Sinks) -> Sinks:
        """Use other sinks from now on. Return the former ones, to be closed once no call writes to them."""
        before, self._sinks = self._sinks, sinks
        return before

    async def aclose(self) -> None:
        """Close the audit's files and database, and send what the collector has not received yet."""
        await self._sinks.aclose()
        if self._tracing is not None:
            await asyncio.to_thread(self._tracing.close)

    def record(self, call: CallRecord) -> Coroutine[None, None, None] | None:
        """Record a finished call. If its audit must wait, return the rest as a coroutine to await.

        Raises `InternalError` if the audit requires a record that cannot be written.
        """
        where = origin()
        if where is not None:
            call.trace = where.trace
        if self._tracing is not None:
            call.trace = self._tracing.tell(call, call.runs, where)
        sinks, late = self._sinks, False
        try:
            body = _encode(self._make_record(call)) if sinks.file is not None or sinks.stored is not None else b""
            late = sinks.stored is not None or not (sinks.file is None or self._write(sinks.file, call, body))
            return self._record_late(sinks, call, body) if late else None
        finally:
            if not late:
                self._observe(call)

    async def _record_late(self, sinks: Sinks, call: CallRecord, body: bytes) -> None:
        try:
            if sinks.stored is not None:
                await finish(self._store(sinks.stored, call, body), 2 * PATIENCE)
            if sinks.file is not None:
                await finish(self._write_late(sinks.file, call, body), 2 * PATIENCE)
        finally:
            self._observe(call)

    async def _store(self, stored: StoredAudit, call: CallRecord, body: bytes) -> None:
        call.audit = await _append(stored, body, partial(self._miss_call, call))

    def _observe(self, call: CallRecord) -> None:
        self.metrics.observe(call)
        if self._slow:
            self._tell_slow(call)

    def _tell_slow(self, call: CallRecord) -> None:
        for run in call.runs:
            if run.ended - run.began >= self._slow:
                fields = {"who": call.who, "tool": call.tool, "database": run.database, "hash": call.hash}
                told = {**fields, "seconds": round((run.ended - run.began) / 1e9, 3), "trace": call.trace}
                _log.warning("slow query", extra={"query": {name: value for name, value in told.items() if value}})

    async def announce(self, event: Event, detail: str) -> None:
        """Record what happens next. Raises `InternalError` if the audit requires a record that cannot be written."""
        body, miss = _encode_event(event, detail), partial(self._miss, event)
        if self._sinks.stored is not None:
            await _append(self._sinks.stored, body, miss)
        self._append_event(body, miss)

    def note(self, event: Event, detail: str) -> None:
        """Record an event of the gateway itself. A failure is logged."""
        body, miss = _encode_event(event, detail), partial(_log_missing, event)
        if self._sinks.stored is not None:
            task = asyncio.create_task(_append(self._sinks.stored, body, miss))
            self._sinks.notes.add(task)
            task.add_done_callback(self._sinks.notes.discard)
        self._append_event(body, miss)

    def _append_event(self, body: bytes, miss: Callable[[str], None]) -> None:
        """Append a record to the audit's file, if there is one, or tell `miss` why it cannot be."""
        if self._sinks.file is not None:
            try:
                self._sinks.file.append(body, _SECOND)
            except OSError as error:
                miss(str(error.strerror))

    async def _write_late(self, file: AuditFile, call: CallRecord, body: bytes) -> None:
        """Write a record once the process that keeps the files locked releases them. A stopped process does not."""
        until = time.monotonic() + PATIENCE
        while not self._write(file, call, body, patience=0.0):
            if time.monotonic() > until:
                return self._miss_call(call, "another process keeps its files locked")
            await asyncio.sleep(_PAUSE)

    def _write(self, file: AuditFile, call: CallRecord, body: bytes, **patience: float) -> bool:
        """Write a record. Return False while another process keeps the files locked."""
        try:
            call.audit = str(file.append(body, **patience))
        except BlockingIOError:
            return False
        except OSError as error:
            self._miss_call(call, str(error.strerror))
        return True

    def _miss_call(self, call: CallRecord, why: str) -> None:
        """Report that a call could not be recorded. Raises `InternalError` if the record is required."""
        if self._sinks.audit.required:
            call.outcome = InternalError.code
        self._miss("call", why)

    def _miss(self, event: Event, why: str) -> None:
        _log_missing(event, why)
        if self._sinks.audit.required:
            done = "answered" if event == "call" else "made"
            raise InternalError(
                f"The {event} could not be recorded, and so is not {done}.",
                suggestion="Tell the administrator that the audit cannot be written.",
            ) from None

    def _make_record(self, call: CallRecord) -> Record:
        who, full, sql = call.principal, self._sinks.audit.text == "full", call.sql or _statement(call)
        return Record(
            ts=moment(time.time()),
            call=f"{self._process}-{next(self._calls)}",
            principal=who.name,
            issuer=who.issuer,
            subject=who.subject,
            client=who.client,
            token=who.token,
            roles=self._roles(who),
            database=call.database or "",
            acting=_tell_acting(call.acting),
            tool=call.tool,
            hash=(call.hash or hash_statement(sql)) if self._sinks.audit.text != "off" else "",
            sql=sql[:_LONGEST] if full else "",
            params=list(call.params) if self._sinks.audit.values and call.params else None,
            arguments=self._arguments(call) if full else None,
            relations=tuple(dict.fromkeys(call.relations)),
            columns=tuple(dict.fromkeys(call.columns)),
            verdict="refused" if call.refused else "allowed",
            filters=_once(_filter(each) for each in call.confined),
            masks=_once(mask for each in call.confined for mask in _masks(each)),
            rows=call.rows,
            bytes=call.bytes,
            ms=call.ms,
            outcome=call.outcome,
            trace=call.trace,
            model=None if call.model_use is None else self._model(call.model_use),
        )

    def _model(self, use: ModelUse) -> dict[str, Any]:
        """Return what a call used of a language model, with its statements as far as the configuration keeps them."""
        facts = {name: getattr(use, name) for name in ("name", "calls", "input_tokens", "output_tokens", "cost")}
        attempts: list[dict[str, str]] = []
        for sql, outcome in use.attempts:
            kept = {"sql": sql[:_LONGEST]} if self._sinks.audit.text == "full" else {}
            hashed = {"hash": hash_statement(sql)} if self._sinks.audit.text != "off" else {}
            attempts.append({**hashed, **kept, "outcome": outcome})
        return {**facts, "attempts": attempts}

    def _arguments(self, call: CallRecord) -> dict[str, Any] | None:
        hidden = (*_SQL, *_ADDRESS, *(() if self._sinks.audit.values else _VALUES))
        arguments: Any = call.arguments
        if not isinstance(arguments, Mapping):
            return None
        given = cast("Mapping[str, Any]", arguments)
        return {
            name: value
            for name, value in given.items()
            if name not in hidden and value is not None and _is_argument(name, value, call.known)
        } or None


def _log_missing(event: Event, why: str) -> None:
    _log.error("the audit record of a %s could not be written: %s", event, why)


async def _append(stored: StoredAudit, body: bytes, miss: Callable[[str], None]) -> str:
    """Append a record to the audit's database. Return its place, or "" after `miss` was told why there is none."""
    try:
        async with asyncio.timeout(PATIENCE):
            return str(await stored.append(body))
    except DragomanError as error:
        miss(error.message)
    except TimeoutError:
        miss("the audit's database took too long")
    return ""


def _statement(call: CallRecord) -> str:
    """Return the statement that was sent to a tool that takes one: it may have been refused before any query began."""
    arguments: Any = call.arguments
    if not isinstance(arguments, Mapping) or not call.known or "sql" not in call.known:
        return ""
    sql = cast("Mapping[str, Any]", arguments).get("sql")
    return sql if isinstance(sql, str) else ""


def _is_argument(name: str, value: Any, known: Collection[str] | None) -> bool:
    """Return whether a tool has such an argument. Any other one, such as a misspelt `params`, may hold a secret."""
    if known is None or name in _VALUES:
        return True
    items: list[Any] = value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]
    return name in known and all(isinstance(item, str | int | float) for item in items)


def _encode(record: Record) -> bytes:
    """Return a record as JSON.

    Data of a caller that JSON cannot hold, or that is too long, is kept as shortened text.
    """
    try:
        body = encode(record)
        if len(body) < _LARGEST:
            return body
    except (ValueError, TypeError, OverflowError, RecursionError):
        pass
    record.sql, record.params = ascii(record.sql)[:_LONGEST], None
    record.arguments = {"text": _plain(record.arguments)[:_LONGEST]}
    for name in ("principal", "issuer", "subject", "client", "database", "acting", "tool", "trace"):
        setattr(record, name, ascii(getattr(record, name))[1:-1])
    return encode(record)


def _encode_event(event: Event, detail: str) -> bytes:
    return encode(Record(ts=moment(time.time()), event=event, detail=detail))


def _plain(arguments: Any) -> str:
    try:
        return ascii(arguments)
    except RecursionError:
        return "..."


def _tracing() -> Tracing | None:
    """Return the exporter to a collector, if OpenTelemetry's variables name one."""
    if not wants_telemetry():
        return None
    try:
        from dragoman.telemetry.tracing import Tracing
    except ImportError:
        _log.warning("OTEL_* names a collector, and the SDK is not installed: install dragoman[otel]")
        return None
    return Tracing()


def hash_statement(sql: str) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a statement; nothing if it is empty."""
    return hashlib.sha256(sql.encode(errors="surrogatepass")).hexdigest()[:16] if sql else ""


def gauges(opened: Mapping[str, OpenDatabase], version: int) -> list[Gauge]:
    """Return the state of databases and of the configuration, for Prometheus."""
    used = tuple(({"database": name}, float(each.running)) for name, each in opened.items())
    sizes = tuple(({"database": name}, float(each.config.pool_size)) for name, each in opened.items())
    up = tuple(({"database": name}, float(each.health.known.state != "unreachable")) for name, each in opened.items())
    return [
        Gauge("pool_in_use", "Statements that run on a database now.", used),
        Gauge("pool_size", "Statements that may run concurrently on a database.", sizes),
        Gauge("database_up", "0 where the last call or probe did not reach the database.", up),
        Gauge(
            "config_version", "How often a configuration was applied, the first one included.", (({}, float(version)),)
        ),
    ]


def _tell_acting(acting: Acting | None) -> str:
    """Return the identity for which a database acts, and the names of its settings, never their values."""
    if acting is None:
        return ""
    who = f"user {acting.user}" if acting.user else f"role {acting.role}" if acting.role else "session"
    names = ", ".join(name for name, _ in acting.settings)
    return f"{who} ({names})" if names else who


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))


def _filter(part: ConfinedRelation) -> str:
    """Return the condition on a relation's rows, with the names of the caller's values instead of the values."""
    return f"{part.relation}: {part.filter.write(lambda name: f'${name}')}" if part.filter else ""


def _masks(part: ConfinedRelation) -> list[str]:
    return [f"{part.relation}.{column.name}" for column in part.columns if column.mask is not None]
