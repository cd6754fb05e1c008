"""Bounding and exact encoding of results."""

from dragoman.results.bounds import Collected, collect
from dragoman.results.encoding import encode

__all__ = ["Collected", "collect", "encode"]
