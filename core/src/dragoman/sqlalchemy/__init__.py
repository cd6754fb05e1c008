"""Base classes for third parties: any SQLAlchemy driver becomes a dialect by naming its URL and its sqlglot name.

No other package imports sqlalchemy. Needs the extra `dragoman[sqlalchemy]`.
"""

from dragoman.sql.standard import STANDARD_FUNCTIONS, STANDARD_RESERVED
from dragoman.sqlalchemy.executor import SQLAlchemyExecutor
from dragoman.sqlalchemy.information_schema import SYSTEM_SCHEMAS, InformationSchemaInspector
from dragoman.sqlalchemy.inspector import SQLAlchemyInspector
from dragoman.sqlalchemy.urls import url_for

__all__ = [
    "STANDARD_FUNCTIONS",
    "STANDARD_RESERVED",
    "SYSTEM_SCHEMAS",
    "InformationSchemaInspector",
    "SQLAlchemyExecutor",
    "SQLAlchemyInspector",
    "url_for",
]
