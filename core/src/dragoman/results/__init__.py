"""Bounding and exact encoding of results."""

from dragoman.results.bounds import Bounded, Collected, Collector, check_columns, check_stream, truncation
from dragoman.results.encoding import encode

__all__ = ["Bounded", "Collected", "Collector", "check_columns", "check_stream", "encode", "truncation"]
