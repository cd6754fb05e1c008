"""OpenTelemetry: a span for every call and one for every statement it ran, and the duration of both.

The SDK is imported only if `OTEL_*` variables ask for it, and reads them itself. Spans are made when a call has ended,
from times noted before, so tracing costs nothing while the call runs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, Span, SpanKind, StatusCode, get_current_span
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from dragoman._version import VERSION
from dragoman.telemetry.context import Origin
from dragoman.telemetry.observed import Observed, Run

FLUSH = 1.0
"""Seconds that sending the rest may take when the gateway closes."""
_SYSTEMS = {"postgres": "postgresql"}
"""OpenTelemetry's names of databases, where they differ from the dialect's."""
_PROPAGATOR = TraceContextTextMapPropagator()
_NOWHERE = Origin()


class Tracing:
    """Sends calls to an OpenTelemetry collector."""

    def __init__(self) -> None:
        resource = Resource.create({"service.name": "dragoman", "service.version": VERSION} | _given_name())
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("dragoman", VERSION)
        reader = PeriodicExportingMetricReader(OTLPMetricExporter())
        self._meters = MeterProvider(resource=resource, metric_readers=[reader], shutdown_on_exit=False)
        meter = self._meters.get_meter("dragoman", VERSION)
        self._calls = meter.create_histogram("mcp.server.operation.duration", "s", "Duration of calls of tools")
        self._statements = meter.create_histogram("db.client.operation.duration", "s", "Duration of statements")

    def tell(self, call: Observed, runs: Sequence[Run], origin: Origin | None) -> str:
        """Report a call that has ended; return its trace id, 32 hexadecimal digits."""
        where = origin or _NOWHERE
        ended = time.time_ns()
        attributes = _call_attributes(call, where)
        parent = _parent(where)
        span = self._tracer.start_span(
            f"tools/call {call.tool}",
            context=parent,
            kind=SpanKind.SERVER,
            attributes=attributes,
            links=_links(where),
            start_time=ended - int(call.ms * 1e6),
        )
        self._calls.record(call.ms / 1000, _without(attributes, "jsonrpc.request.id"))
        for run in runs:
            self._tell_run(run, span)
        _end(span, call.outcome, ended)
        return f"{span.get_span_context().trace_id:032x}"

    def _tell_run(self, run: Run, parent: Span) -> None:
        from opentelemetry.trace import set_span_in_context

        attributes = _run_attributes(run)
        span = self._tracer.start_span(
            attributes["db.query.summary"],
            context=set_span_in_context(parent),
            kind=SpanKind.CLIENT,
            attributes=attributes,
            start_time=run.began,
        )
        _end(span, run.outcome, run.ended)
        self._statements.record((run.ended - run.began) / 1e9, _without(attributes, "db.query.summary"))

    def close(self) -> None:
        """Send the rest, within a few seconds, and stop. Blocks.

        A daemon thread does it, because the SDK's own timeouts do not hold if no collector listens.
        """
        closing = [threading.Thread(target=each.shutdown, daemon=True) for each in (self._provider, self._meters)]
        for thread in closing:
            thread.start()
        end = time.monotonic() + FLUSH
        for thread in closing:
            thread.join(max(end - time.monotonic(), 0))


def _given_name() -> dict[str, Any]:
    """Return the service's name from `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`, if they set it."""
    given = dict(Resource.create().attributes)
    return {} if str(given.get("service.name", "")).startswith("unknown_service") else given


def _parent(origin: Origin) -> Any:
    traceparent = origin.traceparent or origin.linked
    return _PROPAGATOR.extract({"traceparent": traceparent, "tracestate": origin.tracestate}) if traceparent else None


def _links(origin: Origin) -> list[Link]:
    """Return a link to the HTTP request's own trace, if the message in it belongs to another trace."""
    if not origin.traceparent or not origin.linked:
        return []
    return [Link(get_current_span(_PROPAGATOR.extract({"traceparent": origin.linked})).get_span_context())]


def _call_attributes(call: Observed, origin: Origin) -> dict[str, Any]:
    told = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": origin.version,
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": call.tool,
        "jsonrpc.request.id": origin.request,
        "network.transport": origin.transport,
        "error.type": "" if call.outcome == "ok" else "tool_error",
        "dragoman.outcome": call.outcome,
        "dragoman.database": call.database or "",
    }
    return {name: value for name, value in told.items() if value}


def _run_attributes(run: Run) -> dict[str, Any]:
    told = {
        "db.system.name": _SYSTEMS.get(run.dialect, run.dialect),
        "db.namespace": run.database,
        "db.collection.name": run.relations[0] if len(run.relations) == 1 else "",
        "db.operation.name": "SELECT",
        "db.query.summary": " ".join(("SELECT", *run.relations))[:255],
        "db.response.status_code": run.status,
        "error.type": "" if run.outcome == "ok" else run.outcome,
    }
    return {name: value for name, value in told.items() if value}


def _without(attributes: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in attributes.items() if key != name}


def _end(span: Span, outcome: str, ended: int) -> None:
    if outcome != "ok":
        span.set_status(StatusCode.ERROR, outcome)
    span.end(ended)
