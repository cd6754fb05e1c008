"""docs/configuration.md is the whole truth: every key with its default and its variable, and nothing else."""

import dataclasses
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from dragoman.config import Audit, Auth, ModelSettings, Server, load
from dragoman.config.keys import (
    AUDIT,
    AUTH,
    DATABASE,
    DECLARED_KEY,
    GRANT,
    KNOWLEDGE,
    MODEL,
    ROLE,
    ROLE_LIMITS,
    SERVER,
    STATIC_TOKEN,
)
from dragoman.model import Database, KnowledgeSettings

PAGE = (Path(__file__).parents[3] / "docs" / "configuration.md").read_text(encoding="utf-8")
SECTIONS = {
    "[server]": SERVER,
    "[[server.tokens]]": STATIC_TOKEN,
    "[audit]": AUDIT,
    "[server.auth]": AUTH,
    "[databases.NAME]": DATABASE,
    "[databases.NAME.knowledge]": KNOWLEDGE,
    "[[databases.NAME.keys]]": DECLARED_KEY,
    "[model]": MODEL,
    "[roles.NAME]": ROLE,
    "[[roles.NAME.grants]]": GRANT,
    "[roles.NAME.limits]": ROLE_LIMITS,
}


def rows(section: str) -> Iterator[list[str]]:
    """Yield the table rows below a heading, as cells."""
    text = PAGE.split(f"## `{section}`\n")[1].split("\n## ")[0]
    for line in text.splitlines():
        if line.startswith("| `"):
            yield [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_is_documented_and_no_other(section: str) -> None:
    assert [cells[0].strip("`") for cells in rows(section)] == list(SECTIONS[section])


@pytest.mark.parametrize(
    ("section", "values"),
    [
        ("[server]", Server),
        ("[server.auth]", Auth),
        ("[audit]", Audit),
        ("[model]", ModelSettings),
        ("[databases.NAME]", Database),
        ("[databases.NAME.knowledge]", KnowledgeSettings),
    ],
)
def test_documented_defaults_are_the_real_ones(section: str, values: type[Any]) -> None:
    fields = {field.name: field.default for field in dataclasses.fields(values)}
    for name, _, shown, *_ in rows(section):
        default = fields[name.strip("`")]
        if re.fullmatch(r"`.*`", shown) and default is not dataclasses.MISSING:
            told: Any = tomllib.loads(f"x = {shown.strip('`')}")["x"]
            assert (tuple(told) if isinstance(told, list) else told) == (
                tuple(default) if isinstance(default, tuple | frozenset) else default
            ), name
        else:
            assert default in (None, "", dataclasses.MISSING), name


@pytest.mark.parametrize(
    ("section", "prefix"),
    [
        ("[server]", "SERVER"),
        ("[server.auth]", "SERVER__AUTH"),
        ("[audit]", "AUDIT"),
        ("[databases.NAME]", "DATABASES__NAME"),
        ("[databases.NAME.knowledge]", "DATABASES__NAME__KNOWLEDGE"),
    ],
)
def test_documented_variables_follow_their_keys(section: str, prefix: str) -> None:
    for cells in rows(section):
        assert cells[3] == f"`DRAGOMAN_{prefix}__{cells[0].strip('`').upper()}`"


def test_the_example_loads(tmp_path: Path) -> None:
    example = PAGE.split("## An example\n\n```toml\n")[1].split("```")[0]
    (tmp_path / "dragoman.toml").write_text(example)
    configuration = load(folder=tmp_path, environ={"SHOP_PASSWORD": "x", "TRINO_PASSWORD": "y"})
    assert list(configuration.databases) == ["shop", "lake"]
