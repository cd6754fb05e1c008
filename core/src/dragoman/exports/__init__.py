"""Results as files: CSV, JSON lines, Parquet, Arrow and XLSX."""

from dragoman.exports.formats import FORMATS, export, format_of

__all__ = ["FORMATS", "export", "format_of"]
