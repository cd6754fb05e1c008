"""Who calls: checks bearer tokens. Knows nothing of HTTP servers; imports what it needs when it is needed."""

from __future__ import annotations

from dragoman.auth.refusals import InvalidToken, IssuerUnreachable

__all__ = ["InvalidToken", "IssuerUnreachable"]
