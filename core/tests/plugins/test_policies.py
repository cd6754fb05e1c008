"""Policies: every installed one is in force, with the options the configuration gives it, and answers for itself."""

from pathlib import Path

import pytest
from dragoman import ConfigurationError, Database, DialectError, Gateway, UnsafeSql
from dragoman.config import Configuration, load, show

POLICY = """
from dataclasses import dataclass
from dragoman import *

@dataclass(frozen=True)
class Options:
    word: str
    more: tuple[str, ...] = ()
    token: Secret = Secret("")

class NoWord(Validator):
    def __init__(self, words):
        self.words = words

    async def check(self, statement, call):
        for word in self.words:
            if word in statement.text:
                raise UnsafeSql(f"{word} is not said here.")

class Silence(PolicyPlugin):
    options = Options

    def __init__(self, words=()):
        self.words = words

    def configure(self, options):
        return Silence((options.word, *options.more))

    def further_validators(self, database, executor, inspector):
        return [NoWord(self.words)]

plugin = Silence()
"""
DATABASE = "[databases.x]\ndialect = 'pretend'\n"


@pytest.fixture(autouse=True)
def dialect(install):
    install("dragoman-pretend", "plugin = PretendPlugin()", dialects={"pretend": "plugin"}, pretend=True)


@pytest.fixture
def silence(install):
    install("dragoman-silence", POLICY, policies={"silence": "plugin"})


def configuration(tmp_path: Path, policies: str, **environ: str) -> Configuration:
    file = tmp_path / "dragoman.toml"
    file.write_text(DATABASE + policies)
    return load(file, environ=environ)


@pytest.mark.usefixtures("silence")
async def test_a_policy_gets_the_options_of_its_section(tmp_path: Path):
    async with Gateway.open(configuration(tmp_path, "[policies.silence]\nword = 'hush'\nmore = ['shh']")) as gateway:
        for statement in ("SELECT 'hush'", "SELECT 'shh'"):
            with pytest.raises(UnsafeSql, match="is not said here"):
                await gateway.query("x", statement)
        assert (await gateway.query("x", "SELECT 'x'")).row_count == 1


@pytest.mark.usefixtures("silence")
async def test_options_come_from_the_environment_too(tmp_path: Path):
    variables = {"DRAGOMAN_POLICIES__SILENCE__WORD": "hush", "DRAGOMAN_POLICIES__SILENCE__MORE": "a1, b2"}
    async with Gateway.open(configuration(tmp_path, "", **variables)) as gateway:
        for word in ("hush", "a1", "b2"):
            with pytest.raises(UnsafeSql):
                await gateway.query("x", f"SELECT '{word}'")


@pytest.mark.usefixtures("silence")
async def test_two_gateways_have_two_policies(tmp_path: Path):
    first = configuration(tmp_path, "[policies.silence]\nword = 'one'")
    second = configuration(tmp_path, "[policies.silence]\nword = 'two'")
    async with Gateway.open(first) as one, Gateway.open(second) as two:
        assert (await one.query("x", "SELECT 'two'")).row_count == 1
        assert (await two.query("x", "SELECT 'one'")).row_count == 1
        with pytest.raises(UnsafeSql):
            await one.query("x", "SELECT 'one'")


WRONG = [
    ("", "policies.silence.word is missing", "Add word under [policies.silence]"),
    ("[policies.silence]\nwrod = 'x'", "policies.silence: unknown option 'wrod'", "Did you mean 'word'?"),
    ("[policies.silence]\nword = 3", "policies.silence.word: expected text", "Give word as"),
    ("[policies.silense]\nword = 'x'", "policies.silense: no policy of that name", "Did you mean 'silence'?"),
    ("[policies]\nsilence = 3", "policies.silence: expected a table", ""),
]


@pytest.mark.usefixtures("silence")
@pytest.mark.parametrize(("policies", "what", "remedy"), WRONG)
async def test_options_that_do_not_fit_stop_the_start(policies: str, what: str, remedy: str, tmp_path: Path):
    with pytest.raises(ConfigurationError) as raised:
        async with Gateway.open(configuration(tmp_path, policies)):
            pass
    assert what in raised.value.message
    assert remedy in raised.value.suggestion


async def test_a_section_for_a_policy_that_is_not_installed_stops_the_start(tmp_path: Path):
    with pytest.raises(ConfigurationError, match="no policy of that name is installed"):
        async with Gateway.open(configuration(tmp_path, "[policies.silence]\nword = 'x'")):
            pass


async def test_a_policy_that_two_distributions_claim_stops_the_start(install):
    for distribution in ("dragoman-first", "dragoman-second"):
        install(distribution, POLICY, policies={"silence": "plugin"})
    with pytest.raises(DialectError, match=r"policy 'silence' is claimed by .*dragoman-first and dragoman-second"):
        async with Gateway.open([Database(name="x", dialect="pretend")]):
            pass


@pytest.mark.parametrize(
    ("body", "what"),
    [
        ("return None", "returned NoneType, not a PolicyPlugin"),
        ("return Odd", "returned the class Odd, not a PolicyPlugin: return an instance"),
        ("raise KeyError('hush')", "raised KeyError"),
    ],
)
async def test_a_policy_that_cannot_take_its_options_is_named(body: str, what: str, install):
    source = (
        f"from dragoman import *\nclass Odd(PolicyPlugin):\n    def configure(self, options): {body}\npolicy = Odd()"
    )
    install("dragoman-odd", source, policies={"odd": "policy"})
    with pytest.raises(DialectError) as raised:
        async with Gateway.open([Database(name="x", dialect="pretend")]):
            pass
    assert raised.value.message == f"The hook configure of 'odd' of dragoman-odd 1.0 {what}."
    assert "Upgrade dragoman-odd or report it" in raised.value.suggestion


async def test_with_policies_about_a_dialect_s_fault_is_the_dialect_s(silence, install, tmp_path: Path):
    source = "class Odd(PretendPlugin):\n    @hookimpl\n    def executor(self, database): return 3\nplugin = Odd()"
    source = (
        f"from dataclasses import replace\nPretendPlugin.dialect = replace(PretendPlugin.dialect, name='odd')\n{source}"
    )
    install("dragoman-odd", source, dialects={"odd": "plugin"}, pretend=True)
    given = configuration(tmp_path, "[databases.y]\ndialect = 'odd'\n[policies.silence]\nword = 'hush'")
    async with Gateway.open(given) as gateway:
        with pytest.raises(DialectError, match=r"The hook executor of 'odd' of dragoman-odd 1.0 returned int"):
            gateway.database("y")


def test_options_are_shown_with_their_secrets_masked(tmp_path: Path):
    shown = show(configuration(tmp_path, "[policies.silence]\nword = 'x'\ntoken = 'hush'"))
    assert shown["policies"] == {"silence": {"word": "x", "token": "***"}}


def test_a_password_in_an_option_that_is_a_url_is_masked(tmp_path: Path):
    given = "more = ['https://me:hu@sh@log.example/x', 'https://log.example:443/me@x', 'a:b@c']"
    shown = show(configuration(tmp_path, f"[policies.silence]\n{given}"))
    assert shown["policies"]["silence"]["more"] == [
        "https://me:***@log.example/x",
        "https://log.example:***@x",
        "a:b@c",
    ]
