"""What callers have of a relation: columns, filters and masks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dragoman.model.callers import NO_CLAIMS, Claims
from dragoman.model.relations import Relation


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL with places where values are bound: `texts[0]`, `values[0]`, `texts[1]`, ... and finally a text.

    `values` are names of facts about a caller: `user`, `groups`, `claim.NAME`.
    """

    texts: tuple[str, ...]
    values: tuple[str, ...] = ()

    def write(self, place: Callable[[str], str]) -> str:
        """Return the SQL, with the result of `place` for each name where its value is bound."""
        return self.texts[0] + "".join(
            place(value) + text for value, text in zip(self.values, self.texts[1:], strict=True)
        )


class Spelled(Expression):
    """A column's own value as text. It hides nothing: any mask counts before it."""

    __slots__ = ()


class Mixed(Expression):
    """In some rows a column's own value, in others something else."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedColumn:
    """A column as callers have it: `expression` over the relation's own columns. None: as it is stored."""

    name: str
    type: str
    expression: Expression | None = None

    @property
    def mask(self) -> Expression | None:
        """What is shown instead of its own value. None: its own value, be it as text."""
        return None if isinstance(self.expression, Spelled) else self.expression

    @property
    def mixed(self) -> bool:
        """Whether some rows show its own value. It compares and sorts as the stored column then, in every row."""
        return isinstance(self.expression, Mixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfinedRelation:
    """What callers have of a relation: these columns, in the rows where `filter` holds. None: in every row.

    `key`: the columns of its primary key, if callers have all of them as they are stored, and
    the database ensures that no two rows agree in them.
    """

    relation: Relation
    columns: tuple[ConfinedColumn, ...]
    filter: Expression | None = None
    key: tuple[str, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether its rows and these columns show what is stored, be it as text."""
        return self.filter is None and all(column.mask is None for column in self.columns)

    @property
    def values(self) -> tuple[str, ...]:
        """The names of the values that its expressions bind, each once."""
        return tuple(dict.fromkeys(name for each in self.expressions for name in each.values))

    @property
    def expressions(self) -> tuple[Expression, ...]:
        """The expressions of it: the filter first, then those of columns."""
        expressions = (self.filter, *(column.expression for column in self.columns))
        return tuple(each for each in expressions if each is not None)

    def write_columns(self, quote: Callable[[str], str], write: Callable[[Expression], str]) -> str:
        """Return the list of columns for a SELECT. `quote` writes a name, `write` an expression."""
        return ", ".join(
            quote(column.name) if column.expression is None else f"({write(column.expression)}) AS {quote(column.name)}"
            for column in self.columns
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confinement:
    """What a caller has of the relations in a statement that it does not have completely.

    - `values`: JSON values, by the names in the expressions.
    - `lead`: the number of characters at the beginning of the statement that stay before anything put around it.
    """

    relations: tuple[ConfinedRelation, ...]
    values: Claims = NO_CLAIMS
    lead: int = 0
