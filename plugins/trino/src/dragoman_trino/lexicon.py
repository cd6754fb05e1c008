"""Trino's lexer, for the core's guard of texts."""

from dragoman import Lexicon

LEXICON = Lexicon(marks="{}$:")
