"""SQL as text and as a tree. No other package imports sqlglot."""

from dragoman.sql.lexicon import Lexicon
from dragoman.sql.statement import Statement

__all__ = ["Lexicon", "Statement"]
