"""Results as files: CSV, JSON lines, Parquet, Arrow, XLSX and pictures."""

from dragoman.exports.formats import CHARTS, FORMATS, PICTURES, export, format_of

__all__ = ["CHARTS", "FORMATS", "PICTURES", "export", "format_of"]
