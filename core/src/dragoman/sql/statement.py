"""A statement: the text that is judged and sent, and what can be told of it."""

from __future__ import annotations


class Statement:
    """A statement as sent."""
