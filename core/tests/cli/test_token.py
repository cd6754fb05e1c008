"""`dragoman token` and `--as`: who calls, from the command line."""

import json
import os
import subprocess
import sys
import tomllib
from datetime import UTC, datetime, timedelta

import pytest
from dragoman.auth.tokens import hash_token
from dragoman.cli.common import principal
from dragoman.config import load

from .conftest import Dragoman

DATABASE = '[databases.shop]\nurl = "sqlite:///shop.db"\n'


def test_what_it_prints_is_an_entry_of_the_configuration_and_the_token_stands_apart(dragoman: Dragoman, folder):
    made = dragoman("token", "create", "reports", "--group", "analysts", "--group", "ops", "--expires", "90d")
    assert made.code == 0
    token = made.err.splitlines()[-1]
    assert token not in made.out
    (folder / "dragoman.toml").write_text(f"{DATABASE}\n{made.out}")
    (entry,) = load(folder=folder, environ={}).server.tokens
    assert (entry.name, entry.hash, entry.groups) == ("reports", hash_token(token), {"analysts", "ops"})
    assert entry.expires is not None
    assert abs(entry.expires - datetime.now(UTC) - timedelta(days=90)) < timedelta(minutes=5)


def test_two_tokens_are_never_the_same_and_json_has_both_halves(dragoman: Dragoman):
    made = [json.loads(dragoman("token", "create", "ci", "--json").out) for _ in range(2)]
    assert made[0]["token"] != made[1]["token"]
    assert made[0]["entry"] == {"name": "ci", "hash": hash_token(made[0]["token"])}


@pytest.mark.parametrize("words", [["a b"], [""], ["ci", "--expires", "90"], ["ci", "--expires", "0d"], []])
def test_what_is_no_name_or_age_is_refused(dragoman: Dragoman, words: list[str]):
    assert dragoman("token", "create", *words).code == 2


def test_two_entries_of_one_name_and_bad_values_are_told_with_their_keys(folder):
    good = f'[[server.tokens]]\nname = "ci"\nhash = "{hash_token("x")}"\n'
    bad = '[[server.tokens]]\nname = "cd"\nhash = "drg_secretsecret"\nexpires = "soon"\ngroup = ["a"]\n'
    (folder / "dragoman.toml").write_text(f"{DATABASE}{good}{good}{bad}[[server.tokens]]\nname = 'x'\n")
    with pytest.raises(Exception, match="second token of that name") as error:
        load(folder=folder, environ={})
    told = str(error.value)
    assert "server.tokens.2.hash: expected sha256:" in told
    assert "server.tokens.2.expires: expected a date" in told
    assert "server.tokens.2.group: unknown key. Did you mean groups?" in told
    assert "server.tokens.3: hash missing" in told
    assert "secretsecret" not in told


def test_config_show_prints_the_entries_as_configuration(dragoman: Dragoman, folder):
    entry = f'[[server.tokens]]\nname = "ci"\nhash = "{hash_token("x")}"\nexpires = 2027-01-31\n'
    (folder / "dragoman.toml").write_text(DATABASE + entry)
    shown = tomllib.loads(dragoman("config", "show").out)
    assert shown["server"]["tokens"][0]["expires"] == "2027-01-31T00:00:00+00:00"


def test_as_names_a_user_and_groups():
    ada = principal("ada: analysts ,ops")
    assert (ada.name, ada.subject, ada.groups) == ("ada", "ada", {"analysts", "ops"})
    assert principal("ada").groups == frozenset()


@pytest.mark.usefixtures("configured")
def test_a_query_is_called_by_whom_as_names():
    # In a process of its own: logging, once set up, would stay so for the tests that follow.
    command = [sys.executable, "-m", "dragoman", "query", "shop", "select 1", "--as", "ada:analysts"]
    environ = os.environ | {"DRAGOMAN_SERVER__LOG_LEVEL": "info"}
    asked = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert '"ada"' in asked.stderr


def test_as_needs_a_name_and_is_not_for_http(dragoman: Dragoman):
    assert dragoman("query", "shop", "select 1", "--as", ":analysts").code == 2
    refused = dragoman("serve", "sqlite:///shop.db", "--transport", "http", "--as", "ada")
    assert refused.code == 2
    assert "--as is for stdio" in refused.err
