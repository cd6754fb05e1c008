"""Results as files: CSV, JSON lines, Parquet, Arrow, XLSX and pictures.

Names load on first use: a list of tools needs only the names of formats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.lazy import load_names

if TYPE_CHECKING:
    from dragoman.exports.fields import Field, fields_of, label, suiting
    from dragoman.exports.formats import (
        CHARTS,
        FORMATS,
        MEDIA_TYPES,
        PICTURES,
        READ_TWICE,
        TEXTS,
        export,
        format_of,
        working_folder,
    )

__all__ = [
    "CHARTS",
    "FORMATS",
    "MEDIA_TYPES",
    "PICTURES",
    "READ_TWICE",
    "TEXTS",
    "Field",
    "export",
    "fields_of",
    "format_of",
    "label",
    "suiting",
    "working_folder",
]

_HOMES = {
    "CHARTS": "formats",
    "FORMATS": "formats",
    "Field": "fields",
    "MEDIA_TYPES": "formats",
    "PICTURES": "formats",
    "READ_TWICE": "formats",
    "TEXTS": "formats",
    "export": "formats",
    "fields_of": "fields",
    "format_of": "formats",
    "label": "fields",
    "suiting": "fields",
    "working_folder": "formats",
}

__getattr__ = load_names(__name__, _HOMES)
