"""Cached, searchable metadata of one database: names, keys, join paths."""

from dragoman.catalog.catalog import NO_PARTS, Catalog, Direction, Parts
from dragoman.catalog.compact import compact
from dragoman.catalog.full import drop_empty, full, summary
from dragoman.catalog.granted import GrantedCatalog, GrantedPlaces, Permissions
from dragoman.catalog.insight import Insight
from dragoman.catalog.joins import Step
from dragoman.catalog.listing import Entry, Listing, SchemaKey
from dragoman.catalog.names import Namespace, near
from dragoman.catalog.places import Places, place_database, withhold
from dragoman.catalog.search import Match, MatchKind
from dragoman.catalog.snapshot import Snapshot, did_you_mean, quote_name
from dragoman.catalog.watch import CONFIRMED
from dragoman.catalog.whole import WholeCatalog

__all__ = [
    "CONFIRMED",
    "NO_PARTS",
    "Catalog",
    "Direction",
    "Entry",
    "GrantedCatalog",
    "GrantedPlaces",
    "Insight",
    "Listing",
    "Match",
    "MatchKind",
    "Namespace",
    "Parts",
    "Permissions",
    "Places",
    "SchemaKey",
    "Snapshot",
    "Step",
    "WholeCatalog",
    "compact",
    "did_you_mean",
    "drop_empty",
    "full",
    "near",
    "place_database",
    "quote_name",
    "summary",
    "withhold",
]
