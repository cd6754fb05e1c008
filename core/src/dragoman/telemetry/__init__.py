"""Watching a gateway: counters for Prometheus, spans and metrics for OpenTelemetry, the caller's trace."""

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
