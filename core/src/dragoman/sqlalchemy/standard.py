"""Words that need quotes as names in nearly every engine."""

from __future__ import annotations

from typing import Final

from sqlalchemy.sql.compiler import RESERVED_WORDS

STANDARD_RESERVED: Final = frozenset(RESERVED_WORDS)
"""For `Dialect.reserved`, in lower case; add the engine's own."""
