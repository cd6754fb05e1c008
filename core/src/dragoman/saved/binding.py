"""Translates `:name` in a saved query to the placeholders of its database."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dragoman.errors import InvalidSql
from dragoman.saved.queries import SavedQuery
from dragoman.sql import Lexicon
from dragoman.sql.text import named_parameters
from dragoman.words import nearest


def bind(query: SavedQuery, values: Mapping[str, Any], lexicon: Lexicon, placeholder: str) -> tuple[str, list[Any]]:
    """Return the SQL with `$1` or `?` for each `:name`, and the values in this order.

    Raises `InvalidSql` for a name that the file does not declare.
    """
    sql = ""
    params: list[Any] = []
    places: dict[str, int] = {}
    end = 0
    for token in named_parameters(query.sql, lexicon):
        name = token.text[1:]
        if name not in values:
            raise _refuse_undeclared(query, name, values)
        if placeholder == "?" or name not in places:
            params.append(values[name])
            places[name] = len(params)
        written = "?" if placeholder == "?" else f"${places[name]}"
        sql += query.sql[end : token.start] + written
        end = token.end
    return sql + query.sql[end:], params


def _refuse_undeclared(query: SavedQuery, name: str, declared: Mapping[str, Any]) -> InvalidSql:
    near = nearest(name, declared)
    remedy = f"Did you mean :{near[0]}?" if near else f"Add the line `-- param: {name} text`."
    return InvalidSql(f"{query.name} uses :{name}, which it does not declare.", suggestion=remedy)
