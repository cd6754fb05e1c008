"""Whether the database takes what roles leave of its tables: tried at the start, before anybody asks."""

from __future__ import annotations

from dataclasses import replace

from dragoman.access import Misfit, Permission, as_condition, as_conditions
from dragoman.catalog import GrantedCatalog
from dragoman.errors import DragomanError
from dragoman.gateway.confining import UNFIT, Confiner, Prepare
from dragoman.model import ConfinedRelation

TOGETHER = 16
"""Parts of relations that the database is asked to compile in one statement."""
_ONE_ROW = "Leave out aggregates, window functions and what returns sets; a filter may have them in a subquery."


async def try_parts(
    catalog: GrantedCatalog, confiner: Confiner, prepare: Prepare, compiled: set[ConfinedRelation]
) -> list[Misfit]:
    """Return what of a role's filters and masks the database cannot compile. Raises `ConnectionFailed`.

    Those that do not compile together are halved, until it is known which. Those that do are added to `compiled`, and
    what is there already is not asked again: who is interrupted goes on where they were.
    """
    permissions = (await catalog.permissions()).values()
    confined = [(permission, permission.confined) for permission in permissions if permission.confined]
    parts = [(permission, part) for permission, part in confined if part not in compiled]
    left = [parts[start : start + TOGETHER] for start in range(0, len(parts), TOGETHER)][::-1]
    found: list[Misfit] = []
    while left:
        some = left.pop()
        try:
            await prepare(await confiner.trial(*(as_conditions(part) for _, part in some)))
        except UNFIT as error:
            middle = len(some) // 2
            if middle:
                left += (some[middle:], some[:middle])
            else:
                found.append(await _explain(*some[0], error, confiner, prepare))
        else:
            compiled.update(part for _, part in some)
    return found


async def _explain(
    permission: Permission, part: ConfinedRelation, error: DragomanError, confiner: Confiner, prepare: Prepare
) -> Misfit:
    """Return what is wrong with a part that does not compile."""
    wrong, why = await _find_of_rows(part, confiner, prepare), error.message.removesuffix(".")
    if wrong is None:
        message = f"the filter or a mask does not fit {part.relation}: {why}"
        return Misfit(permission.keys[0], message, error.suggestion)
    message = f"the {wrong} must be an expression of one row of {part.relation}: {why}"
    return Misfit(permission.keys[0], message, _ONE_ROW)


async def _find_of_rows(part: ConfinedRelation, confiner: Confiner, prepare: Prepare) -> str | None:
    """Return which expression compiles as what is shown, and not as a condition on one row."""
    first = replace(part.columns[0], expression=None)
    masks = {f"mask of {column.name}": column.expression for column in part.columns}
    for name, expression in {"filter": part.filter, **masks}.items():
        if expression is None:
            continue
        shown = replace(part, columns=(replace(first, expression=expression),), filter=None)
        condition = replace(part, columns=(first,), filter=as_condition(expression))
        if await _compiles(shown, confiner, prepare) and not await _compiles(condition, confiner, prepare):
            return name
    return None


async def _compiles(part: ConfinedRelation, confiner: Confiner, prepare: Prepare) -> bool:
    try:
        await prepare(await confiner.trial(part))
    except UNFIT:
        return False
    return True
