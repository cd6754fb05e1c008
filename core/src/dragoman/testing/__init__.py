"""The conformance kits for plugins: a class to subclass for a dialect, and one for a policy that hides something.

Needs the extra `dragoman[testing]`. Every failed assertion names the cause and the next step.
"""

from typing import Any

from dragoman.testing.base import Suite
from dragoman.testing.bounds import BoundCases
from dragoman.testing.capabilities import CapabilityCases
from dragoman.testing.catalog import CatalogCases
from dragoman.testing.doctoring import DoctorCases
from dragoman.testing.errors import ErrorCases
from dragoman.testing.gaps import Gap, check_gaps, never, not_implemented, not_yet
from dragoman.testing.lifecycle import LifecycleCases
from dragoman.testing.parts import PartCases
from dragoman.testing.policies import PolicyConformance
from dragoman.testing.profiles import ProfileCases
from dragoman.testing.reach import ReachCases
from dragoman.testing.rows import RowCases
from dragoman.testing.safety import SafetyCases
from dragoman.testing.schemas import SchemaCases
from dragoman.testing.tiers import KIT, capability, recommended, required
from dragoman.testing.tools import ToolCases
from dragoman.testing.values import ValueCases
from dragoman.testing.work import WorkCases

__all__ = [
    "KIT",
    "DialectConformance",
    "Gap",
    "PolicyConformance",
    "Suite",
    "capability",
    "never",
    "not_implemented",
    "not_yet",
    "recommended",
    "required",
]


class DialectConformance(
    CatalogCases,
    SchemaCases,
    ProfileCases,
    ValueCases,
    BoundCases,
    ErrorCases,
    WorkCases,
    SafetyCases,
    ReachCases,
    PartCases,
    ToolCases,
    RowCases,
    CapabilityCases,
    DoctorCases,
    LifecycleCases,
):
    """Every case of the contract, over the dialect's real entry point and a live database.

    A subclass gives the class-scoped classmethod fixture `database`, and overrides of `Suite`'s data where its dialect
    differs. `gaps` names the cases it must fail, each with `never`, `not_yet` or `not_implemented`.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        check_gaps(cls, cls.gaps)
