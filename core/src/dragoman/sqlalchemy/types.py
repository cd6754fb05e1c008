"""Types as columns tell them."""

from __future__ import annotations

import re
from typing import Final

_LABELS: Final = re.compile(r"('[^']*')")


def spell_type(type_: str) -> str:
    """Return a type as columns tell it: in lower case, but for what stands between quotes, as an enum's labels do."""
    return "".join(part if part.startswith("'") else part.lower() for part in _LABELS.split(type_))
