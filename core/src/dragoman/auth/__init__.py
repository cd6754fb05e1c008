"""Checks bearer tokens and says who calls. Knows nothing of HTTP servers; imports its libraries on first use."""

from __future__ import annotations

from dragoman.auth.refusals import InvalidToken, IssuerUnreachable

__all__ = ["InvalidToken", "IssuerUnreachable"]
