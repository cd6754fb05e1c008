from collections.abc import Callable
from pathlib import Path

import pytest
from dragoman.config import load
from dragoman.errors import ConfigurationError

FINDER = """
from dragoman import EnvironmentDatabase
def find(environ):
    if "ODD_HOST" not in environ: return None
    values = {"dialect": "odd", "host": environ["ODD_HOST"], "port": environ.get("ODD_PORT", "1")}
    return EnvironmentDatabase(name="odd", values=values, variables={("host",): "ODD_HOST", ("port",): "ODD_PORT"})
def broken(environ):
    raise RuntimeError("hunter2")
"""
Install = Callable[..., object]


def configure(folder: Path, **environ: str):
    return load(folder=folder, environ={"HOME": str(folder), **environ})


def test_a_plugin_finds_its_database_in_the_variables_of_another_tool(install: Install, tmp_path: Path) -> None:
    install("dragoman-odd", FINDER, environment={"odd": "find"})
    configuration = configure(tmp_path, ODD_HOST="h", ODD_PORT="7")
    assert (configuration.databases["odd"].host, configuration.databases["odd"].port) == ("h", 7)
    assert configuration.sources["databases.odd.host"] == "environment"
    assert set(configuration.variables) == {"ODD_HOST", "ODD_PORT"}


def test_a_value_such_a_database_cannot_have_is_told_by_its_variable(install: Install, tmp_path: Path) -> None:
    install("dragoman-odd", FINDER, environment={"odd": "find"})
    with pytest.raises(ConfigurationError, match="environment: ODD_PORT: expected a whole number"):
        configure(tmp_path, ODD_HOST="h", ODD_PORT="many")


def test_no_plugin_is_asked_where_a_database_is_configured(install: Install, tmp_path: Path) -> None:
    install("dragoman-odd", FINDER, environment={"odd": "broken"})
    assert set(configure(tmp_path, DATABASE_URL="sqlite:///b.db").databases) == {"b"}


def test_a_plugin_that_fails_is_named_without_what_it_said(install: Install, tmp_path: Path) -> None:
    install("dragoman-odd", FINDER, environment={"odd": "broken"})
    with pytest.raises(ConfigurationError, match=r"dragoman-odd failed to read .* \(RuntimeError\)") as error:
        configure(tmp_path)
    assert "hunter2" not in str(error.value)
