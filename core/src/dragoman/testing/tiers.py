"""Three tiers of cases, as pytest marks: `pytest -m kit_required` runs one of them.

Required: without it the dialect is wrong. Recommended: without it agents or operators miss something. Capability: what
is declared works, what is not is refused cleanly. Marks name the capabilities they are about, and `since`, the release
of dragoman in which a case that was added later begins to count: before it, a failure is a warning in the report.
"""

from __future__ import annotations

import importlib.metadata
import re
from typing import Final

import pytest

KIT: Final = 1
"""The version of the kit: one more whenever a case is added or asks for more than it did, from the first release on."""

required = pytest.mark.kit_required
recommended = pytest.mark.kit_recommended
capability = pytest.mark.kit_capability
TIERS: Final = {mark.name: mark.name.removeprefix("kit_") for mark in (required, recommended, capability)}


def tier_of(item: pytest.Item) -> pytest.Mark | None:
    """Return the mark that says a case's tier; None for a test that is no case of the kit's."""
    return next((mark for mark in item.iter_markers() if mark.name in TIERS), None)


def not_due(mark: pytest.Mark | None, version: str | None = None) -> str | None:
    """Return the release in which a case begins to count, when that is later than this dragoman (or `version`)."""
    since = mark.kwargs.get("since") if mark else None
    if since is None or _release(version or importlib.metadata.version("dragoman")) >= _release(since):
        return None
    return str(since)


def _release(version: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", version)[:2])
