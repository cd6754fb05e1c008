from pathlib import Path

import pytest
from dragoman.config import load
from dragoman.errors import ConfigurationError
from dragoman.model import Secret

OLDER = {
    "PG_HOST": "db.example",
    "PG_PORT": "6432",
    "PG_DATABASE": "My-App",
    "PG_USER": "reader",
    "PG_PASSWORD": "p@ss/word",
    "PG_POOL_SIZE": "7",
    "PG_STATEMENT_TIMEOUT": "2500",
    "PG_DEFAULT_SCHEMA": "sales",
}
LIBPQ = {"PGHOST": "/run/pg", "PGDATABASE": "shop", "PGUSER": "u", "PGPASSWORD": "p", "PGSSLMODE": "verify-full"}


def configure(folder: Path, environ: dict[str, str], *urls: str):
    return load(folder=folder, environ={"HOME": str(folder), **environ}, urls=urls).databases


def test_the_variables_of_earlier_servers_are_a_database(tmp_path: Path) -> None:
    (database,) = configure(tmp_path, OLDER).values()
    assert (database.name, database.dialect, database.host, database.port) == (
        "my_app",
        "postgres",
        "db.example",
        6432,
    )
    assert (database.database, database.schema, database.user) == ("My-App", "sales", "reader")
    assert (database.password, database.pool_size, database.timeout) == (Secret("p@ss/word"), 7, 2.5)


def test_libpq_s_variables_are_a_database_and_yield_to_the_others(tmp_path: Path) -> None:
    (database,) = configure(tmp_path, LIBPQ).values()
    assert (database.name, database.host, database.user) == ("shop", "/run/pg", "u")
    assert dict(database.options) == {"sslmode": "verify-full"}
    (both,) = configure(tmp_path, {**LIBPQ, **OLDER}).values()
    assert (both.host, both.user) == ("db.example", "reader")


def test_a_service_alone_is_enough(tmp_path: Path) -> None:
    (database,) = configure(tmp_path, {"PGSERVICE": "shop"}).values()
    assert (database.name, dict(database.options)) == ("postgres", {"service": "shop"})


def test_anything_else_that_is_configured_comes_first(tmp_path: Path) -> None:
    assert set(configure(tmp_path, OLDER, "a=sqlite:///a.db")) == {"a"}
    assert set(configure(tmp_path, {**OLDER, "DATABASE_URL": "sqlite:///b.db"})) == {"b"}


def test_a_password_alone_names_no_database(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no database"):
        configure(tmp_path, {"PGPASSWORD": "p", "PGUSER": "u"})


@pytest.mark.parametrize(("variable", "value"), [("PG_PORT", "many"), ("PG_STATEMENT_TIMEOUT", "soon")])
def test_a_wrong_value_is_told_by_its_variable(tmp_path: Path, variable: str, value: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        configure(tmp_path, {**OLDER, variable: value})
    assert variable in str(error.value)
    assert "p@ss" not in str(error.value)
