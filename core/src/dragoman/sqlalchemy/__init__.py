"""Base classes for third parties: any SQLAlchemy driver becomes a dialect by naming its URL and its sqlglot name.

The only importer of sqlalchemy. Needs the extra `dragoman[sqlalchemy]`.
"""

from dragoman.sqlalchemy.executor import SQLAlchemyExecutor
from dragoman.sqlalchemy.functions import STANDARD_FUNCTIONS
from dragoman.sqlalchemy.information_schema import InformationSchemaInspector
from dragoman.sqlalchemy.inspector import SQLAlchemyInspector

__all__ = ["STANDARD_FUNCTIONS", "InformationSchemaInspector", "SQLAlchemyExecutor", "SQLAlchemyInspector"]
