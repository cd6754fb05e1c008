"""A dialect's options are checked against what it declares, and come to it complete."""

import pytest
from dragoman import ConfigurationError, Database, Secret
from dragoman.plugins import Plugins

SOURCE = """
import enum, pathlib
from dataclasses import dataclass, field, replace
from typing import Literal

@dataclass(frozen=True)
class Options:
    token: Secret
    ssl: bool = True
    mode: Literal["ro", "rw"] = "ro"
    size: int | None = None
    ratio: float = 0.5
    hosts: list[str] = field(default_factory=list)
    folder: pathlib.Path = pathlib.Path(".")
    limits: dict[str, bool | int | str] = field(default_factory=dict)
    verify: bool | str = True

    def __post_init__(self):
        if self.size == 13:
            raise ValueError(f"unlucky {self.token.reveal()}")

PretendPlugin.dialect = replace(PretendPlugin.dialect, options=Options)
plugin = PretendPlugin()
"""


@pytest.fixture
def prepare(install):
    install("dragoman-odd", SOURCE, dialects={"pretend": "plugin"}, pretend=True)

    def prepared(**options: object):
        return Plugins.discover().prepare(Database(name="x", dialect="pretend", options=options)).options

    return prepared


def test_what_is_not_given_has_its_default(prepare):
    options = prepare(token="t")
    assert (options["ssl"], options["mode"], options["size"], options["hosts"]) == (True, "ro", None, [])
    assert options["token"] == Secret("t")


# As a file gives them, and as the texts of a URL's query.
CONVERTED = [
    ("ssl", False, False),
    ("ssl", "false", False),
    ("ssl", "1", True),
    ("mode", "rw", "rw"),
    ("size", 5, 5),
    ("size", "5", 5),
    ("ratio", "0.25", 0.25),
    ("ratio", 1, 1.0),
    ("hosts", ["a", "b"], ["a", "b"]),
    ("hosts", "a, b", ["a", "b"]),
    ("limits", {"a": 5, "b": True, "c": "x"}, {"a": 5, "b": True, "c": "x"}),
    ("limits", '{"a": 5}', {"a": 5}),
    ("verify", "false", False),
    ("verify", "ca.pem", "ca.pem"),
]


@pytest.mark.parametrize(("key", "given", "taken"), CONVERTED)
def test_a_value_comes_in_its_declared_type(key: str, given: object, taken: object, prepare):
    value = prepare(token="t", **{key: given})[key]
    assert (value, type(value)) == (taken, type(taken))


WRONG = [
    ({"token": "t", "sssl": True}, "unknown option 'sssl'", "Did you mean 'ssl'?"),
    (
        {"token": "t", "zzz": True},
        "unknown option 'zzz'",
        "Known options: folder, hosts, limits, mode, ratio, size, ssl",
    ),
    ({}, "options.token is missing", "Add token under [databases.x.options]"),
    ({"token": "t", "ssl": "hush"}, "options.ssl: expected true or false", "Give ssl as"),
    ({"token": "t", "mode": "hush"}, "options.mode: expected one of ro, rw", "Give mode as"),
    ({"token": "t", "mode": "rww"}, "options.mode: expected one of ro, rw", "Did you mean rw?"),
    ({"token": "t", "size": 1.5}, "options.size: expected a whole number", "Give size as"),
    ({"token": "t", "hosts": [1]}, "options.hosts: expected text", "Give hosts as"),
    ({"token": ["hush"]}, "options.token: expected text", "Give token as"),
    ({"token": "hush", "size": 13}, "refuses them (ValueError)", "documentation"),
]


@pytest.mark.parametrize(("options", "what", "remedy"), WRONG)
def test_an_option_that_does_not_fit_is_named_and_its_value_is_not(options: dict[str, object], what, remedy, prepare):
    with pytest.raises(ConfigurationError) as raised:
        prepare(**options)
    assert raised.value.message.startswith("databases.x.options")
    assert what in raised.value.message
    assert remedy in raised.value.suggestion
    assert "hush" not in f"{raised.value.message} {raised.value.suggestion}"


def test_a_dialect_without_options_takes_none(install):
    install("dragoman-odd", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)
    with pytest.raises(ConfigurationError, match="unknown option 'x'") as raised:
        Plugins.discover().prepare(Database(name="x", dialect="pretend", options={"x": 1}))
    assert raised.value.suggestion == "Known options: none."
