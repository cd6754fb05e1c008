"""Monitoring of a gateway: counters for Prometheus, spans and metrics for OpenTelemetry, the caller's trace.

Names load on first use, since a log line needs only the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.telemetry.context import TRACE_KEYS, Origin, coming_from, origin, trace_id
    from dragoman.telemetry.metrics import CONTENT_TYPE, Gauge, Metrics
    from dragoman.telemetry.observed import ModelUse, Observed, Run

__all__ = [
    "CONTENT_TYPE",
    "TRACE_KEYS",
    "Gauge",
    "Metrics",
    "ModelUse",
    "Observed",
    "Origin",
    "Run",
    "coming_from",
    "origin",
    "trace_id",
]

_HOMES = {
    "TRACE_KEYS": "context",
    "Origin": "context",
    "coming_from": "context",
    "origin": "context",
    "trace_id": "context",
    "CONTENT_TYPE": "metrics",
    "Gauge": "metrics",
    "Metrics": "metrics",
    "ModelUse": "observed",
    "Observed": "observed",
    "Run": "observed",
}

__getattr__ = load_names(__name__, _HOMES)
