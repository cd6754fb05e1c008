"""An empty variable opens nothing: what keeps somebody out has a value, or its key is left out."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from dragoman.config import keys, load
from dragoman.config.readers import Reader, Wrong
from dragoman.errors import ConfigurationError
from dragoman.model import Secret

OPENS_NOTHING = {
    "SERVER": "host tools allowed_hosts allowed_origins queries_dir prompts_dir state_dir",
    "STATIC_TOKEN": "name groups",
    "AUDIT": "",
    "AUTH": "client_id client_secret user_claim groups_claim",
    "DATABASE": "url dialect host database schema user password description allow_functions allow_relations act_as",
    "KNOWLEDGE": "show_values reports files",
    "ROLE": "groups principals tokens scopes tools",
    "GRANT": "database filter",
    "ROLE_LIMITS": "",
}
"""The keys whose readers may take an empty text: it grants less, or a later check refuses it."""


def _takes(reader: Reader, value: object) -> bool:
    try:
        reader(value)
    except Wrong:
        return False
    return True


@pytest.mark.parametrize("section", OPENS_NOTHING)
def test_no_key_that_closes_something_takes_an_empty_text(section: str):
    readers: dict[str, Reader] = getattr(keys, section)
    taken = {key for key, reader in readers.items() for empty in ("", Secret(""), [""]) if _takes(reader, empty)}
    assert taken <= set(OPENS_NOTHING[section].split())


DATABASE = '[databases.shop]\nurl = "sqlite:///shop.db"\n'
ROLE = f'{DATABASE}[roles.r]\ngroups = ["g"]\n[[roles.r.grants]]\ndatabase = "shop"\ntables = ["*"]\n'
AUTH = f'{DATABASE}[server.auth]\nissuer = "https://i"\njwks_url = "https://i/k"\n'


def _closing() -> Iterator[tuple[str, str]]:
    for before, closing in (
        (f"{DATABASE}[server]\n", "token trusted_proxies tls_cert"),
        (f"{DATABASE}[audit]\n", "path url"),
        (AUTH, "audience"),
        (f'{AUTH}audience = ["https://g/mcp"]\n', "scopes"),
        (DATABASE, "schemas"),
        (f"{DATABASE}[databases.shop.knowledge]\n", "hide_values"),
        (ROLE, "deny deny_columns columns"),
    ):
        yield from ((before, key) for key in closing.split())


@pytest.mark.parametrize("value", ["${EMPTY}", "${NONE:-}", " "])
@pytest.mark.parametrize(("before", "key"), [*_closing()], ids=[key for _, key in _closing()])
def test_an_empty_variable_stops_the_start(before: str, key: str, value: str, tmp_path: Path):
    (tmp_path / "dragoman.toml").write_text(f'{before}{key} = "{value}"\n')
    if (key, value) not in {("path", " "), ("tls_cert", " ")}:  # the name of a file
        with pytest.raises(ConfigurationError):
            load(folder=tmp_path, environ={"HOME": str(tmp_path), "EMPTY": ""})


def test_a_database_may_still_undo_the_schemas_of_the_defaults(tmp_path: Path):
    (tmp_path / "dragoman.toml").write_text(f'[defaults]\nschemas = ["a"]\n{DATABASE}schemas = []\n')
    assert load(folder=tmp_path, environ={"HOME": str(tmp_path)}).databases["shop"].schemas == ()
