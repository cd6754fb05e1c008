"""Bounding and exact encoding of results."""

from dragoman.results.bounds import Bounded, Collected, collect
from dragoman.results.encoding import encode

__all__ = ["Bounded", "Collected", "collect", "encode"]
