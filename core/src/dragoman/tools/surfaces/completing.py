"""Completions: possible values of an argument of a prompt or of a resource's address."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final

from dragoman.errors import DragomanError
from dragoman.exports import FORMATS
from dragoman.gateway import Gateway
from dragoman.gateway.opened import OpenDatabase
from dragoman.model import Principal
from dragoman.tools import saved_queries
from dragoman.tools.surfaces import uris
from dragoman.tools.surfaces.reading import reports_of
from dragoman.tools.surfaces.surfaces import COMPLETE, Surfaces

MOST = 100
"""The most values of one completion, as the protocol says."""


@dataclass(frozen=True, slots=True)
class Completion:
    """The best values, at most a hundred, and the number of all matches."""

    values: tuple[str, ...] = ()
    total: int = 0


async def complete(
    surfaces: Surfaces, principal: Principal, argument: str, value: str, given: Mapping[str, str], uri: str | None
) -> Completion:
    """Return the possible values of an argument. `given`: the other arguments so far.

    `uri`: its template, for resources.

    Returns nothing if the caller may not know them, or a database does not answer.
    """
    async with surfaces.gateway.call(COMPLETE, principal, given.get("database")) as record:
        gateway = surfaces.gateway.for_principal(principal)
        if uri is not None and uri not in {template.uri for template in surfaces.templates(principal)}:
            return Completion()
        look = _LOOKS.get(_kind_of(argument, uri))
        if look is None:  # the audit does not name an unknown argument: it may be any text
            return Completion()
        record.arguments = {"argument": argument, "uri": uri}
        try:
            candidates = await look(gateway, principal, given)
        except DragomanError as error:
            record.outcome = error.code
            return Completion()
        found = _fitting(candidates, value)
        record.bytes = sum(len(each.encode()) for each in found.values)
        return found


def _kind_of(argument: str, uri: str | None) -> str:
    """Return the kind of thing an argument names. `name` is a query's or a result's, depending on its address."""
    if argument != "name":
        return argument
    return {uris.QUERY.uri: "query", uris.RESULT.uri: "result", uris.EXPORT.uri: "result"}.get(uri or "", "")


async def _databases(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return gateway.names


async def _schemas(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return dict.fromkeys(schema for schema, _ in await _names(gateway.database(given.get("database"))))


async def _tables(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    names, schema = await _names(gateway.database(given.get("database"))), given.get("schema")
    return dict.fromkeys(name for place, name in names if schema in (None, place))


async def _reports(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return reports_of(gateway, gateway.resolve_name(given.get("database")))


async def _queries(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return await saved_queries.visible(gateway, principal)


async def _formats(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return FORMATS


async def _results(gateway: Gateway, principal: Principal, given: Mapping[str, str]) -> Collection[str]:
    return [kept.name for kept in gateway.kept.of(principal)]


_LOOKS: Final = {
    "database": _databases,
    "schema": _schemas,
    "table": _tables,
    "what": _reports,
    "query": _queries,
    "format": _formats,
    "result": _results,
}
"""What looks for the possible values of each kind of argument."""


async def _names(opened: OpenDatabase) -> list[tuple[str, str]]:
    """Return the schema, as in SQL, and the stored name of every listed relation, without waiting for columns."""
    listing = await opened.catalog.listing()
    return [
        (listing.namespace.join(key.catalog, key.name), entry.name)
        for key, entries in listing.schemas.items()
        for entry in entries
        if not (entry.system or entry.part)
    ]


def _fitting(candidates: Collection[str], value: str) -> Completion:
    """Return the candidates that begin with the typed text, then those that contain it."""
    typed = value[:100].lower()
    folded = [(candidate, candidate.lower()) for candidate in candidates]
    begin = [candidate for candidate, fold in folded if fold.startswith(typed)]
    hold = [candidate for candidate, fold in folded if typed in fold and not fold.startswith(typed)]
    fitting = [*begin, *hold]
    return Completion(tuple(fitting[:MOST]), len(fitting))
