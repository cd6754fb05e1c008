"""The doctor's findings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["danger", "warning", "note"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a role could do if all protections failed, and the SQL or setting that prevents it.

    - `severity`: danger (data could be changed, read beyond the role's own, or the host reached), warning (a limit is
      missing), note (worth knowing).
    - `subject`: a short stable name such as `superuser` or `write_grants`.
    """

    severity: Severity
    subject: str
    message: str
    remedy: str
