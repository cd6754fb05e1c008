"""Plants users' code in every kind of object and every place where a query may reach it.

Planted code leaves a file when it runs, even in a read-only transaction, for a superuser. A planting is SQL that
creates it in the schema `planted`, and queries that make an unprotected server run it. `vehicle`: the kind of object
that contains the code. `place`: where a query meets it.
"""

from __future__ import annotations

from collections.abc import Iterator

from dragoman_postgres.testing.plantings import functions, values, vehicles
from dragoman_postgres.testing.plantings.planting import SCHEMA, Planting

__all__ = ["SCHEMA", "Planting", "plantings"]


def plantings() -> Iterator[Planting]:
    """Yield every kind of object in every place where it can be, and objects that have only one place."""
    yield from vehicles.in_every_place()
    yield from vehicles.returned_types()
    yield from vehicles.plant_folded()
    yield from values.checks_and_comparisons()
    yield from values.casts_that_are_named()
    yield from values.operator_classes()
    yield from functions.by_name()
    yield from functions.bodies()
    yield from functions.members()
    yield from functions.namesakes()
    yield from functions.fillers()
    yield from functions.of_the_system()
