"""Results that live on: rows kept in files as they were encoded, read again in pages."""

from dragoman.kept.pages import Pages

__all__ = ["Pages"]
