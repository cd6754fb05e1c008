"""Why a bearer token does not sign anybody in."""

from __future__ import annotations


class InvalidToken(Exception):
    """The token is not accepted, and asking again will not change it. The text is a sentence without the token."""
