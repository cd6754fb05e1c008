"""What serves one database: what its dialect returned, and what the policies made of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dragoman.dialect import Executor, Inspector, Validator, WrappedExecutor, WrappedInspector


@dataclass(frozen=True, slots=True)
class Parts:
    """`executor` and `inspector`: to be used, as the policies wrap them. `owned`: what is closed after them anyway.

    `own_inspector` and `own_executor`: the dialect's, for checks that no policy may take away.

    `validators`: the dialect's, then the policies'; both were given the dialect's own executor and inspector.

    `vetoes_values`: a policy changes or refuses what queries return and says nothing of `Inspector.profiles`: what the
    catalog knows of the same values must not get past it.
    """

    executor: Executor
    inspector: Inspector
    own_executor: Executor
    own_inspector: Inspector
    validators: Sequence[Validator]
    owned: Sequence[Executor | Inspector]
    vetoes_values: bool = False

    @property
    def hides(self) -> bool:
        """Whether a policy stands before the dialect's inspector: what that then tells is all there is for callers."""
        return bool(self.owned) and not any(self.inspector is each for each in self.owned)


def speaks_for_values(inspector: Inspector, before: Inspector) -> bool:
    """Whether the inspector that a policy returned for `before` has a `profiles` of its own."""
    passes_on = isinstance(inspector, WrappedInspector) and type(inspector).profiles is WrappedInspector.profiles
    return inspector is not before and not passes_on


class _ClosedOnce:
    """Passes on the first `aclose` only: policies may close what they wrap, and the gateway closes it anyway."""

    inner: Any
    _closed = False

    async def aclose(self) -> None:
        """Close it unless that is done."""
        if not self._closed:
            self._closed = True
            await self.inner.aclose()


class OwnedExecutor(_ClosedOnce, WrappedExecutor):
    """The dialect's executor as policies see it."""


class OwnedInspector(_ClosedOnce, WrappedInspector):
    """The dialect's inspector as policies see it."""
