"""What `*` stands for beside USING, where one SQL means other columns than another."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dragoman.errors import Unsupported

TRINO = frozenset({"trino", "presto", "athena"})
"""In these `t.*` leaves out the columns of USING, which belong to no table there."""
IN_PLACE = frozenset({"sqlite", "duckdb"})
"""In these `*` has the columns of USING where the first table has them; in the others they come first."""
ORDER = "Beside USING, * has the columns in another order in {source} than in {target}: name the columns."


def check_stars(tree: exp.Expr, source: str, target: str) -> list[str]:
    """Return the notices about each `*` beside USING. Raises `Unsupported` if the target would give other columns."""
    is_told = False
    for select in tree.find_all(exp.Select):
        stars = [column for column in select.expressions if column.is_star]
        sharing = _find_sharing(select) if stars else set[str]()
        if (source in TRINO) != (target in TRINO) and any(star.text("table").lower() in sharing for star in stars):
            raise Unsupported(
                f"t.* beside USING means other columns in {source} than in {target}.",
                suggestion="Name the columns, or write ON a.x = b.x.",
            )
        is_told = is_told or (bool(sharing) and any(isinstance(star, exp.Star) for star in stars))
    differs = is_told and (source in IN_PLACE) != (target in IN_PLACE)
    return [ORDER.format(source=source, target=target)] if differs else []


def _find_sharing(select: exp.Select) -> set[str]:
    """Return the names of the relations that USING or NATURAL joins, and of those before them."""
    first = select.args.get("from_")
    names, sharing = _find_names(first.this) if first else (set[str](), set[str]())
    return _join(names, sharing, select)[1] - {""}


def _find_names(relation: Any) -> tuple[set[str], set[str]]:
    """Return the names of a relation, which may be joins in parentheses, and those that share columns in it."""
    names, sharing = {relation.alias_or_name.lower()}, set[str]()
    if isinstance(relation, exp.Subquery) and isinstance(relation.this, exp.Table | exp.Subquery):
        inner, sharing = _find_names(relation.this)
        names |= inner
    return _join(names, sharing, relation)


def _join(names: set[str], sharing: set[str], joined: Any) -> tuple[set[str], set[str]]:
    for join in joined.args.get("joins") or ():
        more, shared = _find_names(join.this)
        names, sharing = names | more, sharing | shared
        if join.args.get("using") or join.method == "NATURAL":
            sharing = sharing | names
    return names, sharing
