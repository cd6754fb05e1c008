"""Documentation of a database from elsewhere: markdown, dbt artifacts, Ossie models."""

from dragoman.meaning.described import DescribedInspector
from dragoman.meaning.reading import read_meaning, stamps
from dragoman.meaning.values import ColumnText, Example, Meaning, Note, TableText, WrittenKey

__all__ = [
    "ColumnText",
    "DescribedInspector",
    "Example",
    "Meaning",
    "Note",
    "TableText",
    "WrittenKey",
    "read_meaning",
    "stamps",
]
