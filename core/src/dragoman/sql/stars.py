"""What `*` stands for beside USING, where one SQL means other columns than another."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from dragoman.errors import Unsupported

TRINO = frozenset({"trino", "presto", "athena"})
"""In these `t.*` leaves out the columns of USING, which belong to no table there."""
ORDER = "Beside USING, * has the columns in another order in SQLite: name the columns."


def check_stars(tree: exp.Expr, source: str, target: str) -> list[str]:
    """Return the notices about each `*` beside USING. Raises `Unsupported` if the target would give other columns."""
    joined = [node for node in tree.find_all(exp.Select) if _shares_columns(node)]
    stars = [column for node in joined for column in node.expressions if column.is_star]
    if (source in TRINO) != (target in TRINO) and any(isinstance(star, exp.Column) for star in stars):
        raise Unsupported(
            f"t.* beside USING means other columns in {source} than in {target}.",
            suggestion="Name the columns, or write ON a.x = b.x.",
        )
    plain = any(isinstance(star, exp.Star) for star in stars)
    return [ORDER] if plain and "sqlite" in (source, target) else []


def _shares_columns(select: Any) -> bool:
    joins = select.args.get("joins") or ()
    return any(join.args.get("using") or join.method == "NATURAL" for join in joins)
