"""Cached, searchable metadata of one database: names, keys, join paths."""

from dragoman.catalog.catalog import Catalog, Direction
from dragoman.catalog.compact import compact
from dragoman.catalog.full import drop_empty, full, summary
from dragoman.catalog.granted import GrantedCatalog, GrantedPlaces, Permissions
from dragoman.catalog.insight import Insight
from dragoman.catalog.joins import Step
from dragoman.catalog.names import Namespace, near
from dragoman.catalog.places import Places, place_database, withheld
from dragoman.catalog.search import Match, MatchKind, kind_of
from dragoman.catalog.snapshot import SchemaKey, Snapshot, did_you_mean, quote_name

__all__ = [
    "Catalog",
    "Direction",
    "GrantedCatalog",
    "GrantedPlaces",
    "Insight",
    "Match",
    "MatchKind",
    "Namespace",
    "Permissions",
    "Places",
    "SchemaKey",
    "Snapshot",
    "Step",
    "compact",
    "did_you_mean",
    "drop_empty",
    "full",
    "kind_of",
    "near",
    "place_database",
    "quote_name",
    "summary",
    "withheld",
]
