"""Results as files: CSV, JSON lines, Parquet, Arrow, XLSX and pictures."""

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
