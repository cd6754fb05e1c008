"""Three tiers of cases, as pytest marks: `pytest -m kit_required` runs one of them.

- Required: a dialect that fails such a case is wrong.
- Recommended: without it, agents or administrators miss something.
- Capability: what is declared works, and what is not declared is refused with a clear error.

Marks name the capabilities that they are about. `since` names the release of dragoman in which a case that was added
later begins to count. Before it, a failure is a warning in the report.
"""

from __future__ import annotations

import importlib.metadata
import re
from typing import Final

import pytest

KIT: Final = 1
"""The version of the kit. It increases whenever a case is added or becomes stricter, from the first release on."""

required = pytest.mark.kit_required
recommended = pytest.mark.kit_recommended
capability = pytest.mark.kit_capability
TIERS: Final = {mark.name: mark.name.removeprefix("kit_") for mark in (required, recommended, capability)}


def tier_of(item: pytest.Item) -> pytest.Mark | None:
    """Return the mark with a case's tier; None for a test that is not a case of the kit."""
    return next((mark for mark in item.iter_markers() if mark.name in TIERS), None)


def not_due(mark: pytest.Mark | None, version: str | None = None) -> str | None:
    """Return the release in which a case begins to count, if that is later than this dragoman (or `version`)."""
    since = mark.kwargs.get("since") if mark else None
    if since is None or _release(version or importlib.metadata.version("dragoman")) >= _release(since):
        return None
    return str(since)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
