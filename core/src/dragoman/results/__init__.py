"""Bounding and exact encoding of results."""

from dragoman.results.bounds import collect
from dragoman.results.encoding import encode

__all__ = ["collect", "encode"]
