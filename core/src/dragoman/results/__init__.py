"""Bounding and exact encoding of results. Names load on first use: a worker process only encodes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.results.bounds import Bounded, Collected, Collector, check_columns, check_stream, truncation
    from dragoman.results.encoding import encode

__all__ = ["Bounded", "Collected", "Collector", "check_columns", "check_stream", "encode", "truncation"]

_BOUNDS = ("Bounded", "Collected", "Collector", "check_columns", "check_stream", "truncation")
__getattr__ = load_names(__name__, {"encode": "encoding", **dict.fromkeys(_BOUNDS, "bounds")})
