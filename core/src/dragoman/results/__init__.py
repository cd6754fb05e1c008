"""Bounding and exact encoding of results."""

from dragoman.results.bounds import Bounded, Collected, check_columns, check_stream, collect
from dragoman.results.encoding import encode

__all__ = ["Bounded", "Collected", "check_columns", "check_stream", "collect", "encode"]
