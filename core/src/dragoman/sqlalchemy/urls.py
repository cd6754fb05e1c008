"""From a configured database to the URL SQLAlchemy opens it by."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy

from dragoman.model import Database


def url_for(database: Database, driver: str, query: Mapping[str, str] | None = None) -> sqlalchemy.URL:
    """Return the URL of `database` through a driver as SQLAlchemy names it, such as `mysql+asyncmy`.

    Without a host the database is a file, relative to `database.folder`. `query` are the driver's own options.
    """
    if database.host is None:
        file = str(database.folder / database.database) if database.database else None
        return sqlalchemy.URL.create(driver, database=file, query=query or {})
    return sqlalchemy.URL.create(
        driver,
        username=database.user,
        password=database.password.reveal() if database.password else None,
        host=database.host,
        port=database.port,
        database=database.database,
        query=query or {},
    )
