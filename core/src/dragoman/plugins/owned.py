"""The objects that serve one database: those that its dialect returned, and those that policies made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.dialect import Executor, Inspector, Validator, WrappedExecutor, WrappedInspector


@dataclass(frozen=True, slots=True)
class Parts:
    """The objects that serve a database.

    - `executor`, `inspector`: for use, as the policies wrap them.
    - `owned`: closed after them in any case.
    - `own_inspector`, `own_executor`, `own_validators`: the dialect's, for checks that no policy may remove.
    - `validators`: the dialect's, then the policies'. Both got the dialect's own executor and inspector.
    - `vetoes_values`: a policy changes or refuses what queries return and does not override `Inspector.profiles`. The
      catalog must then not show the same values.
    """

    executor: Executor
    inspector: Inspector
    own_executor: Executor
    own_inspector: Inspector
    own_validators: Sequence[Validator]
    validators: Sequence[Validator]
    owned: Sequence[Executor | Inspector]
    vetoes_values: bool = False

    @property
    def hides(self) -> bool:
        """Whether a policy wraps the dialect's inspector. Callers then know only what the wrapper reports."""
        return bool(self.owned) and not any(self.inspector is each for each in self.owned)


def speaks_for_values(inspector: Inspector, before: Inspector) -> bool:
    """Return whether the inspector that a policy returned for `before` has a `profiles` of its own."""
    passes_on = isinstance(inspector, WrappedInspector) and type(inspector).profiles is WrappedInspector.profiles
    return inspector is not before and not passes_on


class _ClosedOnce:
    """Passes on only the first `aclose`: policies may close what they wrap, and the gateway closes it in any case."""

    inner: Any
    _closed = False

    async def aclose(self) -> None:
        """Close it unless that was done already."""
        if not self._closed:
            self._closed = True
            await self.inner.aclose()


class OwnedExecutor(_ClosedOnce, WrappedExecutor):
    """The dialect's executor as policies see it."""


class OwnedInspector(_ClosedOnce, WrappedInspector):
    """The dialect's inspector as policies see it."""
